package inspect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"strconv"

	"posttrade/app/settings"
	"posttrade/httpapi"
	"posttrade/journal"
	"posttrade/journal/asof"
)

// Past is the history of a data directory.
type Past struct {
	j      *journal.Journal
	h      *asof.History
	viewer *httpapi.PastViewer // nil until it is used
}

// Open opens the journal in a data directory for reading, up to its head at the call. What a server
// has kept as checkpoints is used.
func Open(dir string) (*Past, error) {
	j, err := journal.Read(filepath.Join(dir, "journal"), journal.VerifyOptions{})
	if err != nil {
		return nil, err
	}
	h, err := asof.New(j, asof.Options{Dir: filepath.Join(dir, "asof")})
	if err != nil {
		return nil, errors.Join(err, j.Close())
	}
	return &Past{j: j, h: h}, nil
}

// Close closes it.
func (p *Past) Close() error { return errors.Join(p.h.Close(), p.j.Close()) }

// History is the history itself.
func (p *Past) History() *asof.History { return p.h }

// paths are the things that can be shown, with the path of the endpoint that shows them.
var paths = map[string]struct {
	path string
	id   string // what a required argument names; empty: none
	list bool   // may be limited to an account, and has pages
}{
	"book":      {"/book/", "ticker", false},
	"positions": {"/positions", "", true},
	"orders":    {"/orders", "", true},
	"order":     {"/orders/", "order id", false},
	"trades":    {"/trades", "", true},
	"contracts": {"/contracts", "", true},
	"contract":  {"/contracts/", "contract id", false},
	"accounts":  {"/accounts", "", false},
	"controls":  {"/risk/control/snapshot", "", false},
}

const showUsage = "book TICKER, positions, orders, order ID, trades, contracts, contract ID," +
	" accounts" +
	" or controls; lists may end with: account NUMBER"

// pathOf is the path, with its query, that arguments ask for.
func pathOf(args []string, depth int) (path string, list bool, err error) {
	if len(args) == 0 {
		return "", false, settings.Usagef("what to show is missing: %s", showUsage)
	}
	what, ok := paths[args[0]]
	if !ok {
		return "", false, settings.Usagef("unknown: %s; there are %s", settings.Printable(args[0]),
			showUsage)
	}
	path, args = what.path, args[1:]
	if what.id != "" {
		if len(args) == 0 {
			return "", false, settings.Usagef("the %s is missing", what.id)
		}
		path, args = path+url.PathEscape(args[0]), args[1:]
	}
	query := url.Values{}
	switch {
	case what.id == "ticker" && depth > 0:
		query.Set("depth", strconv.Itoa(depth))
	case what.list:
		query.Set("limit", "1000")
	}
	if what.list && len(args) > 0 {
		if args[0] != "account" || len(args) < 2 {
			return "", false, settings.Usagef("unexpected argument %s", settings.Printable(args[0]))
		}
		query.Set("accountId", args[1])
		args = args[2:]
	}
	if len(args) > 0 {
		return "", false, settings.Usagef("unexpected argument %s", settings.Printable(args[0]))
	}
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	return path, what.list, nil
}

// Show prints what arguments ask for as it was after a sequence: as a table, or as the JSON of the
// endpoint.
func (p *Past) Show(ctx context.Context, w io.Writer, at uint64, args []string, depth int,
	asJSON bool) error {
	path, list, err := pathOf(args, depth)
	if err != nil {
		return err
	}
	for {
		text, err := p.get(ctx, at, path)
		if err != nil {
			return err
		}
		next := ""
		if list {
			var page struct{ NextCursor *string }
			if err := json.Unmarshal(text, &page); err != nil {
				return err
			}
			if page.NextCursor != nil {
				next = *page.NextCursor
			}
		}
		if asJSON {
			_, err = fmt.Fprintf(w, "%s\n", text)
		} else {
			err = printTable(w, text)
		}
		if err != nil || next == "" {
			return err
		}
		u, err := url.Parse(path)
		if err != nil {
			return err
		}
		query := u.Query()
		query.Set("cursor", next)
		path = u.Path + "?" + query.Encode()
	}
}

// get is the body of an endpoint of the past.
func (p *Past) get(ctx context.Context, at uint64, path string) (text []byte, err error) {
	if p.viewer == nil {
		if p.viewer, err = httpapi.NewPastViewer(ctx, p.h); err != nil {
			return nil, err
		}
	}
	status, text := p.viewer.Show(ctx, at, path)
	if status == 200 {
		return text, nil
	}
	var problem struct{ Detail string }
	if err := json.Unmarshal(text, &problem); err != nil {
		return nil, fmt.Errorf("%s: %d: %w", path, status, err)
	}
	if status == 400 {
		return nil, settings.Usagef("%s", problem.Detail)
	}
	return nil, errors.New(problem.Detail)
}
