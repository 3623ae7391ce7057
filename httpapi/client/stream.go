package client

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
)

// stream sends a GET whose answer is read as it comes: the HTTP client of the other requests reads
// a whole answer into memory. The caller closes the body, then calls end. An answer that is not a
// success is a *Problem. After an error of the transport the next request goes to the next member.
func (c *Client) stream(ctx context.Context, path string, header http.Header,
	compressed bool) (answer *http.Response, end func(), err error) {
	at := c.at.Load()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.member(at).host+path, nil)
	if err != nil {
		return nil, nil, fmt.Errorf("client: GET %s: %w", path, err)
	}
	r.Header = header
	if c.bearer != "" {
		r.Header.Set("Authorization", c.bearer)
	}
	transport := &http.Transport{
		DialContext: func(_ context.Context, _, address string) (net.Conn, error) {
			return c.dial(address)
		},
		TLSClientConfig: c.trust.Clone(), DisableCompression: !compressed,
	}
	end = transport.CloseIdleConnections
	answer, err = transport.RoundTrip(r)
	if err != nil {
		c.at.CompareAndSwap(at, at+1)
		end()
		return nil, nil, fmt.Errorf("client: GET %s: %w", path, err)
	}
	if answer.StatusCode == http.StatusOK {
		return answer, end, nil
	}
	defer end()
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, 64<<10))
	if err != nil {
		return nil, nil, fmt.Errorf("client: GET %s: %w", path, err)
	}
	return nil, nil, readProblem(answer.StatusCode, body)
}
