package client

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
)

// stream sends a GET whose answer is read as it comes; only ctx limits its time. The caller closes
// the body. An answer that is not a success is a *Problem. After an error of the transport the next
// request goes to the next member.
//
// There is no second attempt: the caller has the body, and only it knows whether a part of it was
// used. Of an error answer at most 64 KiB are read.
func (c *Client) stream(ctx context.Context, path string, query url.Values,
	header http.Header) (*http.Response, error) {
	at := c.link.at.Load()
	r, err := c.request(ctx, c.link.member(at),
		&call{method: http.MethodGet, path: path, query: query})
	if err != nil {
		return nil, err
	}
	maps.Copy(r.Header, header)
	if err := sendable(header); err != nil {
		return nil, fmt.Errorf("client: GET %s: %w", path, err)
	}
	answer, err := c.link.streams.RoundTrip(r)
	if err != nil {
		if ctx.Err() == nil {
			c.link.at.CompareAndSwap(at, at+1)
		}
		return nil, fmt.Errorf("client: GET %s: %w", path, err)
	}
	if answer.StatusCode == http.StatusOK {
		return answer, nil
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, 64<<10))
	if err != nil {
		return nil, fmt.Errorf("client: GET %s: %w", path, err)
	}
	return nil, readProblem(answer.StatusCode, body)
}
