package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// call is one request on its way.
//
// One goroutine uses it, for one call of do, through all its attempts; status and header are those
// of the last answer.
type call struct {
	method string
	path   string
	query  url.Values
	// body is JSON text; nil for a request without a body, which then has no Content-Type.
	body   []byte
	want   int  // the status code of success; 0: 200
	also   int  // a second status code of success; 0: none
	repeat bool // safe to send again although the outcome is unknown

	timeout time.Duration // overrides the client's; 0: the client's
	secret  string        // master secret, or empty

	status int         // of the answer, once it is there
	header http.Header // of the answer

	unsettled bool // an attempt of a write has an unknown outcome
}

// do sends a request, repeats it where that is safe, and reads the body of a success into answer:
// JSON, or its bytes when answer is a *[]byte.
//
// Errors: a *Problem for an answer that is not a success; ErrAnswer for one that cannot be read;
// errUnsent or errUnsendable when no byte went out; else the transport's, wrapped. The error is
// that of the last attempt. It also wraps errUnsettled where an attempt before may have been
// sequenced and the last one says nothing of it.
func (c *Client) do(ctx context.Context, r *call, answer any) error {
	if r.want == 0 {
		r.want = http.StatusOK
	}
	for attempt := 1; ; attempt++ {
		err := c.round(ctx, r, answer)
		if err == nil || attempt > c.link.retries || !safe(r, err) || ctx.Err() != nil {
			return r.settle(err)
		}
		c.link.pause(ctx, attempt)
	}
}

// round sends a request to one member after the other, from the one in use, until one of them
// answers it.
//
// The next member is asked only after an error that elsewhere recognises, and only when the request
// may be sent again. Other errors of that member would be those of every member. A member that
// could not answer is left for later requests too.
func (c *Client) round(ctx context.Context, r *call, answer any) (err error) {
	l := c.link
	for range l.members {
		at := l.at.Load()
		err = c.once(ctx, l.member(at), r, answer)
		r.unsettled = r.unsettled || r.method != http.MethodGet && Unknown(err)
		if err == nil || !otherMemberMayAnswer(err) || ctx.Err() != nil {
			return err
		}
		l.at.CompareAndSwap(at, at+1) // fails when another goroutine has moved on already
		if !safe(r, err) {
			return err
		}
	}
	return err
}

func (l *link) member(at uint32) member { return l.members[int(at)%len(l.members)] }

// safe reports that the request may be sent again after err.
//
// That is so when nothing was sequenced or sent, or when the call is marked repeat and the outcome
// is unknown. An answer that could be read but not understood is never repeated: the server has
// decided.
func safe(r *call, err error) bool {
	var p *Problem
	if errors.As(err, &p) {
		return p.NotSequenced() || r.repeat && p.Status >= 500
	}
	return errors.Is(err, errUnsent) ||
		r.repeat && !errors.Is(err, ErrAnswer) && !errors.Is(err, errUnsendable)
}

// settle returns the error of the call, err being that of its last attempt.
//
// With "sequenced":false, 401, 403 or 429 the server has decided about the last attempt alone: it
// says so before it looks for an earlier one. Every other answer below 500 stands for them all.
func (r *call) settle(err error) error {
	var p *Problem
	answered := errors.As(err, &p)
	switch {
	case err == nil || !r.unsettled || Unknown(err):
		return err
	case answered && !p.NotSequenced() && p.Status != http.StatusUnauthorized &&
		p.Status != http.StatusForbidden && p.Status != http.StatusTooManyRequests:
		return err
	}
	return fmt.Errorf("%w: %w", err, errUnsettled)
}

// once makes one attempt at one member.
//
// The whole body of the answer is read, whatever its length, within the time-out: the methods whose
// answers may be long use stream.
func (c *Client) once(ctx context.Context, m member, r *call, answer any) error {
	if ctx.Err() != nil { // the transport's own error would not say that nothing was sent
		return fmt.Errorf("client: %s %s: %w: %w", r.method, r.path, errUnsent, context.Cause(ctx))
	}
	timeout := c.link.timeout
	if r.timeout > 0 {
		timeout = r.timeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	req, err := c.request(ctx, m, r)
	if err != nil {
		return err
	}
	resp, err := c.link.http.RoundTrip(req)
	if err != nil {
		return fmt.Errorf("client: %s %s: %w", r.method, r.path, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return fmt.Errorf("client: %s %s: %w", r.method, r.path, err)
	}
	r.status, r.header = resp.StatusCode, resp.Header
	if r.status != r.want && r.status != r.also {
		return readProblem(r.status, body)
	}
	if err := read(body, answer); err != nil {
		return fmt.Errorf("%w: %s %s: %w", ErrAnswer, r.method, r.path, err)
	}
	return nil
}

// request returns the call as the HTTP library sends it.
//
// A read has the headers of After, AfterVersion and Confirmed, every other request that of Because.
// Errors: errUnsent for an address that is none, errUnsendable for a header that cannot be sent.
func (c *Client) request(ctx context.Context, m member, r *call) (*http.Request, error) {
	target := string(m) + r.path
	if len(r.query) > 0 {
		// The services read %20 as a blank, and + as a plus.
		target += "?" + strings.ReplaceAll(r.query.Encode(), "+", "%20")
	}
	req, err := http.NewRequestWithContext(ctx, r.method, target, bytes.NewReader(r.body))
	if err != nil {
		return nil, fmt.Errorf("client: %s %s: %w: %w", r.method, r.path, errUnsent, err)
	}
	if r.method == http.MethodGet {
		maps.Copy(req.Header, c.ask)
	} else {
		maps.Copy(req.Header, c.act)
	}
	if c.link.bearer != "" {
		req.Header.Set("Authorization", c.link.bearer)
	}
	if r.body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if r.secret != "" {
		req.Header.Set("X-Auth-Master-Secret", r.secret)
	}
	if err := sendable(req.Header); err != nil {
		return nil, fmt.Errorf("client: %s %s: %w", r.method, r.path, err)
	}
	return req, nil
}

// read puts the body of a success into answer. A *[]byte takes it as it is, for answers that are no
// JSON.
func read(body []byte, answer any) error {
	if raw, ok := answer.(*[]byte); ok {
		*raw = body
		return nil
	}
	return json.Unmarshal(body, answer)
}

// get reads a resource.
//
// Reads are always safe to repeat.
func (c *Client) get(ctx context.Context, path string, query url.Values, answer any) error {
	return c.do(ctx, &call{method: http.MethodGet, path: path, query: query, repeat: true}, answer)
}

// send makes a call with a JSON body.
//
// It is a POST unless the call says otherwise. A body that does not become JSON is an error before
// anything is sent.
func (c *Client) send(ctx context.Context, r *call, body, answer any) (err error) {
	if r.method == "" {
		r.method = http.MethodPost
	}
	if r.body, err = json.Marshal(body); err != nil {
		return fmt.Errorf("client: %s %s: %w: %w", r.method, r.path, errUnsent, err)
	}
	return c.do(ctx, r, answer)
}

// post sends a request without a body. The request may be repeated. A timeout of 0 is the client's.
func (c *Client) post(ctx context.Context, path string, timeout time.Duration, answer any) error {
	r := call{method: http.MethodPost, path: path, repeat: true, timeout: timeout}
	return c.do(ctx, &r, answer)
}
