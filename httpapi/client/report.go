package client

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"net/url"
	"strconv"
)

// Report is a regulatory report that is streamed: lines of JSON, one record each. Read returns
// io.EOF only when the report is whole and equals what the server made.
type Report struct {
	FromSeq, ToSeq uint64 // the range that it covers

	body io.ReadCloser
	resp *http.Response
	// sum is over every byte that was read, newlines included: the server's checksum is over the same
	// bytes.
	sum hash.Hash
	// last is the last byte read: a report ends with a newline, or it was cut.
	last byte
	// n counts the newlines so far, which are the records.
	n uint64
}

// RegulatoryReport asks the order-matcher for every lifecycle event in a range of input sequences,
// both inclusive; 0 leaves a bound open. It needs an admin token. Only ctx limits the time of a
// report. The caller must close the report.
//
// The server clips the range to the durable head; FromSeq and ToSeq say to what. Errors: a 400 for
// a range that is empty then, a 429 when as many reports as may be are being made.
func (c *Client) RegulatoryReport(ctx context.Context, fromSeq, toSeq uint64) (*Report, error) {
	v := url.Values{}
	setCount(v, "fromSeq", fromSeq)
	setCount(v, "toSeq", toSeq)
	const path = "/regulatory/report"
	resp, err := c.stream(ctx, path, v, http.Header{"Accept": {"application/x-ndjson"}})
	if err != nil {
		return nil, err
	}
	report := &Report{body: resp.Body, resp: resp, sum: sha256.New(), last: '\n'}
	for name, bound := range map[string]*uint64{"X-Report-From-Seq": &report.FromSeq,
		"X-Report-To-Seq": &report.ToSeq} {
		if *bound, err = strconv.ParseUint(resp.Header.Get(name), 10, 64); err != nil {
			return nil, fmt.Errorf("%w: GET %s: header %s: %w", ErrAnswer, path, name,
				errors.Join(err, report.Close()))
		}
	}
	return report, nil
}

// Read implements io.Reader. In place of io.EOF it returns an ErrAnswer when count or checksum
// differ from the trailers. A connection that ends early is the transport's error.
func (r *Report) Read(b []byte) (int, error) {
	n, err := r.body.Read(b)
	r.sum.Write(b[:n])
	for _, ch := range b[:n] {
		if ch == '\n' {
			r.n++
		}
	}
	if n > 0 {
		r.last = b[n-1]
	}
	if err == io.EOF {
		if bad := r.check(); bad != nil {
			return n, bad
		}
	}
	return n, err
}

// check compares a report that has ended with the values in its trailers.
func (r *Report) check() error {
	count, sum := r.resp.Trailer.Get("X-Report-Count"), r.resp.Trailer.Get("X-Report-Sha256")
	if r.last != '\n' || count != strconv.FormatUint(r.n, 10) || sum != r.SHA256() {
		return fmt.Errorf("%w: report of %d records with sha256 %s, the server says %q with %q",
			ErrAnswer, r.n, r.SHA256(), count, sum)
	}
	return nil
}

// Count is the number of records read.
func (r *Report) Count() uint64 { return r.n }

// SHA256 is the sum of what was read, in hexadecimal. It may be asked for at any time; it is the
// server's value once Read has returned io.EOF.
func (r *Report) SHA256() string { return hex.EncodeToString(r.sum.Sum(nil)) }

// Close ends the report, whole or not. It ends the connection of a report that was not read to its
// end.
func (r *Report) Close() error { return r.body.Close() }
