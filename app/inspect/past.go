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
//
// One goroutine uses it. It reads the journal's files and never a server.
type Past struct {
	j *journal.Journal
	h *asof.History
	// The code of the endpoints below /as-of; nil until it is used, because it replays up to the
	// head.
	viewer *httpapi.PastViewer
}

// Open opens the journal in a data directory for reading, up to its head at the call. What a server
// has kept as checkpoints is used.
//
// dir is data.dir, archives the folder of the archives, "" for none. Errors are those of
// journal.Read: no journal there, damage, no permission. It takes no lock.
func Open(dir, archives string) (*Past, error) {
	j, err := journal.Read(filepath.Join(dir, "journal"),
		journal.VerifyOptions{ArchiveDir: archives})
	if err != nil {
		return nil, err
	}
	h, err := asof.New(j, asof.Options{Dir: filepath.Join(dir, "asof")})
	if err != nil {
		return nil, errors.Join(err, j.Close())
	}
	return &Past{j: j, h: h}, nil
}

// Close frees the engines and closes the files. Nothing that came from p may be used afterwards.
func (p *Past) Close() error { return errors.Join(p.h.Close(), p.j.Close()) }

// History is the history itself.
//
// It is closed with the Past.
func (p *Past) History() *asof.History { return p.h }

// paths are the things that can be shown, with the path of the endpoint that shows them.
//
// The key is the first argument of the command. Ids and tickers follow the path, escaped.
var paths = map[string]struct {
	path string
	id   string // what a required argument names; empty: none
	list bool   // may be limited to an account, and has pages
}{
	"book":      {"/book/", "ticker", false},
	"positions": {"/positions", "", true},
	"credit":    {"/credit", "", true},
	"orders":    {"/orders", "", true},
	"order":     {"/orders/", "order id", false},
	"trades":    {"/trades", "", true},
	"contracts": {"/contracts", "", true},
	"contract":  {"/contracts/", "contract id", false},
	"accounts":  {"/accounts", "", false},
	"controls":  {"/risk/control/snapshot", "", false},
}

// showUsage is the end of each message about a missing or unknown argument.
const showUsage = "book TICKER, positions, credit, orders, order ID, trades, contracts, " +
	"contract ID, accounts or controls; lists may end with: account NUMBER"

// pathOf is the path, with its query, that arguments ask for.
//
// depth is the number of levels of a book, 0 for what the endpoint shows without it. list says
// that the document has pages. Every error is a usage error.
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
//
// at is 0 to the head; 0 is the state of the genesis. A list is printed page by page, as a table
// with a heading for each, or as one JSON document a page. Errors: usage errors of arguments, the
// detail of the endpoint's answer, those of the journal, and of w.
func (p *Past) Show(ctx context.Context, w io.Writer, at uint64, args []string, depth int,
	asJSON bool) error {
	path, list, err := pathOf(args, depth)
	if err != nil {
		return err
	}
	return p.pages(ctx, at, path, list, func(text []byte) (enough bool, err error) {
		if asJSON {
			_, err = fmt.Fprintf(w, "%s\n", text)
		} else {
			err = printTable(w, text)
		}
		return false, err
	})
}

// pages calls each with a document, or with every page of a list, until each has enough. The errors
// are those of get and of each.
func (p *Past) pages(ctx context.Context, at uint64, path string, list bool,
	each func(text []byte) (enough bool, err error)) error {
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
		if enough, err := each(text); err != nil || enough || next == "" {
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

// absentError is the detail of a problem document with status 404: what was asked for was not there
// at that sequence.
type absentError string

func (e absentError) Error() string { return string(e) }

// get is the body of an endpoint of the past.
//
// The moment is loaded before the endpoint is asked, because the endpoint would hide the cause of a
// moment that cannot be loaded, such as damage, from clients. An answer other than 200 is an error
// with the detail of its problem document: an absentError for 404, a usage error for 400, because
// that one is about an argument.
func (p *Past) get(ctx context.Context, at uint64, path string) (text []byte, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if p.viewer == nil {
		if p.viewer, err = httpapi.NewPastViewer(ctx, p.h); err != nil {
			return nil, err
		}
	}
	moment, err := p.h.At(ctx, at)
	var beyond *asof.BeyondError
	switch {
	case errors.As(err, &beyond):
		return nil, settings.Usagef("%v", beyond)
	case err != nil:
		return nil, err
	}
	defer moment.Release()
	status, text := p.viewer.Show(ctx, at, path)
	if status == 200 {
		return text, nil
	}
	var problem struct{ Detail string }
	if err := json.Unmarshal(text, &problem); err != nil {
		return nil, fmt.Errorf("%s: %d: %w", path, status, err)
	}
	switch status {
	case 400:
		return nil, settings.Usagef("%s", problem.Detail)
	case 404:
		return nil, absentError(problem.Detail)
	}
	return nil, errors.New(problem.Detail)
}
