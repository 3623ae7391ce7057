package httpapi

import (
	"context"
	"time"

	"posttrade/matcher/timetext"
	"posttrade/sidecars/store"
	"posttrade/sidecars/tca"
)

// TCA computes the costs of trades; *tca.TCA is one.
//
// Any goroutine calls it. Report and Summary wait a moment for the price history, and then return
// tca.ErrBehind.
type TCA interface {
	Report(ctx context.Context, t store.Trade) (tca.Report, error)
	Summary(ctx context.Context, q tca.SummaryQuery) (tca.Summary, error)
	Applied() uint64 // everything up to it is in reports and summaries
}

// showTCAReport is GET /tca/report/{tradeId}.
//
// The report is of the row as it is: a row that was edited has costs of its own. A booking from
// outside is 404.
func (q *inquiry) showTCAReport(id string) problem {
	if p := q.plain(); p.status != 0 {
		return p
	}
	ctx, cancel := quick()
	defer cancel()
	t, p := q.ownTrade(ctx, id)
	if p.status != 0 {
		return p
	}
	if t.External() {
		return problemNoCosts
	}
	r, err := q.p.TCA.Report(ctx, t)
	if err != nil {
		return q.p.failed(err)
	}
	return q.send(200, r.AppendJSON(q.begin()))
}

// showTCASummary is GET /tca/summary, of the trades executed in [from, to).
func (q *inquiry) showTCASummary() problem {
	if p := q.authenticate(); p.status != 0 {
		return p
	}
	var (
		query   tca.SummaryQuery
		account uint64
		asked   bool
	)
	if p := q.eachParameter(func(name string, value []byte) (ok bool) {
		switch name {
		case "accountId":
			account, ok = number(value, 0, 1<<32-1)
			asked = ok
		case "from":
			query.FromMillis, ok = boundOf(string(value))
		case "to":
			query.ToMillis, ok = boundOf(string(value))
		}
		return ok
	}); p.status != 0 {
		return p
	}
	if query.ToMillis != 0 && query.FromMillis > query.ToMillis {
		return problemPeriod
	}
	var p problem
	if query.Accounts, p = accountScope(&q.claims, asked, uint32(account)); p.status != 0 {
		return p
	}
	ctx, cancel := quick()
	defer cancel()
	s, err := q.p.TCA.Summary(ctx, query)
	if err != nil {
		return q.p.failed(err)
	}
	return q.send(200, s.AppendJSON(q.begin()))
}

// problemPeriod is the answer to a period that ends before it begins.
var problemPeriod = badParameter("from", "it is after to")

// boundOf reads an RFC 3339 time, or a date as the midnight in UTC at which it begins, and returns
// epoch milliseconds. It rounds a time within a millisecond up to the next one, so that a bound
// never includes what it should exclude. It refuses times up to the epoch: 0 would be no bound.
func boundOf(text string) (millis int64, ok bool) {
	millis, exact, ok := timetext.Parse(text)
	if !ok {
		day, err := time.Parse(time.DateOnly, text)
		millis, exact, ok = day.UnixMilli(), true, err == nil
	}
	if !exact {
		millis++
	}
	return millis, ok && 0 < millis && millis <= timetext.Latest
}
