package httpapi

import (
	"context"
	"errors"
	"slices"

	"posttrade/journal/acts"
	"posttrade/matcher"
	"posttrade/matcher/note"
)

// Acts reads the operators' acts; *acts.Reader is one.
//
// Read may be called by any goroutine; its error ErrBusy comes at once.
type Acts interface {
	Read(ctx context.Context, q acts.Query, fn func(*acts.Record) error) error
}

// showActs is GET /audit: the operators' acts, a line of JSON each.
//
// The page is collected in memory, maxPage records at most, and sent whole: a reading that fails
// has a status code. kind must be one of note.Kinds, so that a misspelt one does not look like an
// empty answer. It takes what a walk through the journal takes, at most lastingTimeout.
func (x *exchange) showActs() problem {
	if p := x.admin(); p.status != 0 {
		return p
	}
	if x.m.Acts == nil {
		return problemRoute
	}
	q := acts.Query{Limit: defaultPage}
	if p := x.eachParameter(func(name string, value []byte) (ok bool) {
		switch name {
		case "fromSeq":
			q.From, ok = number(value, 1, 1<<63-1)
		case "limit":
			var n uint64
			n, ok = number(value, 1, maxPage)
			q.Limit = int(n)
		case "subject":
			q.Subject, ok = string(value), true
		case "kind":
			q.Kind, ok = string(value), slices.Contains(note.Kinds, string(value))
		case "accountId":
			q.AccountID, ok = number(value, 1, 1<<32-1)
		case "orderId":
			_, ok = matcher.ParseOrderID(value)
			q.OrderID = string(value)
		}
		return ok
	}); p.status != 0 {
		return p
	}
	ctx, cancel := x.m.long()
	defer cancel()
	b := x.begin()
	err := x.m.Acts.Read(ctx, q, func(r *acts.Record) error {
		b = r.AppendJSON(b)
		return nil
	})
	switch {
	case errors.Is(err, acts.ErrBusy):
		return problemReports
	case err != nil:
		return x.m.failed(err)
	}
	x.send(200, b)
	x.ctx.Response.Header.SetContentType(contentNDJSON)
	x.ctx.Response.Header.Set("Cache-Control", "no-store")
	return problem{}
}
