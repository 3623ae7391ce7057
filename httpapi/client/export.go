package client

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strconv"
)

// The tables that Export reads. Trades are the trade-processor's; the other two are the
// order-matcher's.
const (
	TableTrades    = "trades"
	TableBlotter   = "blotter"
	TablePositions = "positions"
)

// ExportQuery says what a file is to have.
type ExportQuery struct {
	Table  string // TableTrades, TableBlotter or TablePositions
	Format string // csv or parquet
	AsOf   string // a day, yyyy-MM-dd, at whose end the table is shown; empty: now
	// Filter holds further parameters of the table's list.
	Filter url.Values
}

// Export is a file that is streamed. Read returns io.EOF only when the file is whole.
//
// Rows arrive at the pace of the reader: a slow reader slows the server's side of this file alone.
// One goroutine uses it.
type Export struct {
	body io.ReadCloser
	resp *http.Response
	rows uint64
}

// Export asks for a whole table as a file. Only ctx limits its time. The caller must close it.
//
// Trades need a token, positions need one where entitlements are enforced, and the blotter needs an
// admin token. Errors before the first byte are a *Problem, such as a 429 when the service makes as
// many files as may be, or a 400 for a limit or cursor in Filter.
func (c *Client) Export(ctx context.Context, q ExportQuery) (*Export, error) {
	path, ok := map[string]string{TableTrades: "/trades", TableBlotter: "/recon/trades/blotter",
		TablePositions: "/positions"}[q.Table]
	if !ok {
		return nil, fmt.Errorf("client: export: no table %q", q.Table)
	}
	v := url.Values{}
	maps.Copy(v, q.Filter)
	set(v, "format", q.Format)
	set(v, "asOf", q.AsOf)
	resp, err := c.stream(ctx, path, v, nil)
	if err != nil {
		return nil, err
	}
	return &Export{body: resp.Body, resp: resp}, nil
}

// Read implements io.Reader.
//
// A file that was cut has no trailer: that is an ErrAnswer, or the transport's error, and never
// io.EOF.
func (e *Export) Read(b []byte) (int, error) {
	n, err := e.body.Read(b)
	if err != io.EOF {
		return n, err
	}
	said := e.resp.Trailer.Get("X-Export-Rows")
	var bad error
	if e.rows, bad = strconv.ParseUint(said, 10, 64); bad != nil {
		return n, fmt.Errorf("%w: the file's trailer says %q rows", ErrAnswer, said)
	}
	return n, io.EOF
}

// Rows is how many rows the file has; it is known at its end. Before io.EOF it is 0.
func (e *Export) Rows() uint64 { return e.rows }

// Close ends the file, whole or not.
func (e *Export) Close() error { return e.body.Close() }
