package httpapi

import (
	"context"
	"time"

	"posttrade/matcher"
	"posttrade/matcher/note"
	"posttrade/sidecars/store"
)

// StoreTrades reads the rows of a database.
//
// Any goroutine may use it. Each method is one read transaction: what it returns is of one moment.
type StoreTrades struct{ DB *store.DB }

// Trade implements Trades.
func (s StoreTrades) Trade(ctx context.Context, id string) (t store.Trade, found bool, err error) {
	err = s.DB.Read(ctx, func(tx *store.Tx) (err error) {
		t, found, err = tx.Trade(id)
		return err
	})
	return t, found, err
}

// Trades implements Trades.
//
// All rows are in memory at once: f.Limit bounds them. Rows that were given up are no trades of an
// accepted history: GET /recon/breaks shows them, as orphans.
func (s StoreTrades) Trades(ctx context.Context,
	f store.TradeFilter) (rows []store.Trade, err error) {
	if f.BeforeSeq == 0 {
		f.BeforeSeq = store.FirstVoid
	}
	err = s.DB.Read(ctx, func(tx *store.Tx) error {
		rows = rows[:0] // drop the rows of a first attempt
		return tx.Trades(f, func(t *store.Trade) error {
			rows = append(rows, *t)
			return nil
		})
	})
	return rows, err
}

// tradeQuery is the query of GET /trades.
//
// limit and cursor of filter are for a page; a file has every row.
type tradeQuery struct {
	filter    store.TradeFilter
	accountID uint64
	asked     bool // for one account
	tradeDate *store.Date
	limit     uint64
	cursor    string // as it was sent: the order says what it means
	file      exportQuery
}

// read takes one parameter, if it is one of the query's.
func (t *tradeQuery) read(name string, value []byte) (ok bool) {
	f := &t.filter
	switch name {
	case "accountId":
		t.accountID, ok = number(value, 0, 1<<32-1)
		t.asked = ok
	case "security":
		f.Security, ok = string(value), true
	case "status":
		status, err := store.ParseStatus(string(value))
		f.Status, ok = &status, err == nil
	case "settlementDate":
		date, err := store.ParseDate(string(value))
		f.SettlementDate, ok = &date, err == nil
	case "tradeDate":
		date, err := store.ParseDate(string(value))
		t.tradeDate, ok = &date, err == nil
	case "from":
		f.FromMillis, ok = boundOf(string(value))
	case "to":
		f.ToMillis, ok = boundOf(string(value))
	case "limit":
		t.limit, ok = number(value, 1, maxPage)
	case "cursor":
		t.cursor, ok = string(value), len(value) > 0
	case "order":
		f.Newest = string(value) == "newest"
		ok = f.Newest || string(value) == "oldest"
	}
	return t.file.read(name, value, ok)
}

// list is the one that a cursor of the query belongs to: each order has its own.
func (t *tradeQuery) list() byte {
	if t.filter.Newest {
		return cursorNewest
	}
	return cursorTrades
}

// goOn takes the cursor: a trade sequence that a column can hold.
func (t *tradeQuery) goOn() problem {
	if t.cursor == "" {
		return problem{}
	}
	seq, ok := parseCursor([]byte(t.cursor), t.list())
	if !ok || seq > 1<<63-1 {
		return badParameter("cursor", "it is unknown or its value is not allowed")
	}
	t.filter.GoOn(seq)
	return problem{}
}

// within narrows the query to the trades that were executed on the trade date, and by the end of
// asOf, in zone.
//
// The bounds of the query itself stay where they are narrower.
func (t *tradeQuery) within(zone *time.Location) {
	if t.tradeDate != nil {
		from, to := dayIn(zone, *t.tradeDate)
		t.filter.FromMillis = max(t.filter.FromMillis, from)
		t.before(to)
	}
	if t.file.day != nil {
		t.before(t.file.until(zone))
	}
}

// before narrows the query to the trades that were executed before a time.
func (t *tradeQuery) before(millis int64) {
	millis = max(millis, 1) // 0 would be no bound, and no trade is older
	if f := &t.filter; f.ToMillis == 0 || millis < f.ToMillis {
		f.ToMillis = millis
	}
}

// tradeQuery reads the query of GET /trades.
func (q *inquiry) tradeQuery() (t tradeQuery, p problem) {
	t.limit = defaultPage
	if p := q.eachParameter(t.read); p.status != 0 {
		return t, p
	}
	if p := t.goOn(); p.status != 0 {
		return t, p
	}
	if t.filter.ToMillis != 0 && t.filter.FromMillis > t.filter.ToMillis {
		return t, problemPeriod
	}
	if p := t.file.check(); p.status != 0 {
		return t, p
	}
	t.within(q.p.Zone)
	t.filter.Accounts, p = accountScope(&q.claims, t.asked, uint32(t.accountID))
	return t, p
}

// listTrades is GET /trades.
//
// A page is by trade sequence, ascending, or with order=newest descending; bookings from outside
// come behind the journal's trades in both orders.
func (q *inquiry) listTrades() problem {
	if p := q.authenticate(); p.status != 0 {
		return p
	}
	query, p := q.tradeQuery()
	if p.status != 0 {
		return p
	}
	filter, limit := query.filter, int(query.limit)
	if query.file.format != 0 {
		return q.exportTrades(filter, &query.file)
	}
	filter.Limit = limit + 1 // one row more shows whether there is a next page
	ctx, cancel := quick()
	defer cancel()
	rows, err := q.p.Trades.Trades(ctx, filter)
	if err != nil {
		return q.p.failed(err)
	}
	next := uint64(0)
	if len(rows) > limit {
		rows = rows[:limit]
		next = rows[limit-1].Seq
	}
	b := append(q.begin(), `{"items":[`...)
	b = appendEach(b, rows, appendTradeRow)
	return q.send(200, endList(b, query.list(), next))
}

// ownTrade finds the trade of a path's id, if the caller may see its account.
//
// 404 comes before 403. Text that is no id of a trade is 404 without a query.
func (q *inquiry) ownTrade(ctx context.Context, id string) (t store.Trade, p problem) {
	if _, ok := matcher.ParseTradeID(id); !ok && !store.ExternalID(id) {
		return t, problemTrade
	}
	t, found, err := q.p.Trades.Trade(ctx, id)
	switch {
	case err != nil:
		return t, q.p.failed(err)
	case !found:
		return t, problemTrade
	case !q.claims.Entitled(t.AccountID):
		return t, problemEntitled
	}
	return t, problem{}
}

// showTrade is GET /trades/{tradeId}.
func (q *inquiry) showTrade(id string) problem {
	if p := q.plain(); p.status != 0 {
		return p
	}
	ctx, cancel := quick()
	defer cancel()
	t, p := q.ownTrade(ctx, id)
	if p.status != 0 {
		return p
	}
	return q.send(200, appendTradeRow(q.begin(), &t))
}

// forceSettlement is POST /trades/{tradeId}/settlement/force. A settled trade stays as it is, so
// the request may be repeated.
//
// The act is on record before the row changes: when the database then fails, the record is there
// all the same. Two requests at once may leave two records.
func (q *inquiry) forceSettlement(id string) problem {
	if p := q.authenticate(); p.status != 0 {
		return p
	}
	if p := q.emptyBody(); p.status != 0 {
		return p
	}
	ctx, cancel := quick()
	defer cancel()
	was, p := q.ownTrade(ctx, id)
	if p.status != 0 {
		return p
	}
	if was.Status == store.Settled { // nothing is done: there is no act
		return q.send(200, appendTradeRow(q.begin(), &was))
	}
	inputSeq, p := q.record(ctx, &act{kind: note.Settlement, object: byTrade{id, was.AccountID},
		old: statusValue{was.Status.String()}, new: statusValue{store.Settled.String()}})
	if p.status != 0 {
		return p
	}
	t, found, err := q.p.Settlement.Force(ctx, id)
	switch {
	case err != nil:
		return q.p.changed(err)
	case !found:
		return problemTrade.under(inputSeq) // the row disappeared between the two reads
	}
	return q.send(200, appendTradeRow(q.begin(), &t))
}
