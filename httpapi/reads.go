package httpapi

import (
	"errors"
	"slices"

	"posttrade/blotter"
	"posttrade/matcher"
	"posttrade/matcher/gate"
)

// accountScope returns the accounts that a list shows: the one that was asked for, the caller's
// accounts, or all (nil).
//
// Where entitlements are not enforced every caller sees all accounts.
func (x *exchange) accountScope(asked bool, accountID uint32) (accounts []uint32, p problem) {
	claims := x.claims
	if !x.m.Enforced {
		claims.Admin = true
	}
	return accountScope(&claims, asked, accountID)
}

// accountScope is that of a caller whose claims are verified. The slice is the caller's own: claims
// are shared, and must not be sorted in place. An account that was asked for need not exist.
func accountScope(c *gate.Claims, asked bool, accountID uint32) (accounts []uint32, p problem) {
	switch {
	case asked && !c.Entitled(accountID):
		return nil, problemEntitled
	case asked:
		return []uint32{accountID}, problem{}
	case !c.Admin:
		return append([]uint32{}, c.Accounts...), problem{} // never nil: nil is all
	}
	return nil, problem{}
}

// listOrders is GET /orders.
//
// A page is by number, ascending. A ticker that no security has gives an empty page, as a filter
// that nothing matches does. What was read is durable before it is sent.
func (x *exchange) listOrders() problem {
	if p := x.admit(); p.status != 0 {
		return p
	}
	var (
		filter   blotter.OrderFilter
		page     = newListQuery(cursorOrders)
		security []byte
	)
	if p := x.eachParameter(func(name string, value []byte) (ok bool) {
		switch name {
		case "status":
			filter.Statuses, ok = statusFilter(string(value))
		case "security":
			security, ok = value, len(value) <= matcher.TickerBytes
		default:
			ok = page.read(name, value) && page.after <= matcher.MaxOrderNumber
		}
		return ok
	}); p.status != 0 {
		return p
	}
	accounts, p := x.accountScope(page.asked, page.account)
	if p.status != 0 {
		return p
	}
	filter.Accounts = accounts
	var next uint64
	x.rows = x.rows[:0]
	known := true
	if security != nil {
		filter.SecurityID, known = x.m.Gate.Security(security)
	}
	if known {
		x.rows, next = x.views.Orders(filter, page.after, page.limit, x.rows)
	}
	if p := x.shown(); p.status != 0 {
		return p
	}
	b := append(x.begin(), `{"items":[`...)
	b = appendEach(b, x.rows, x.appendRow)
	return x.send(200, endList(b, cursorOrders, next))
}

// statusFilter reads open, all or the name of a state.
//
// ok is false for any other word. all is no filter.
func statusFilter(value string) (blotter.StatusSet, bool) {
	switch value {
	case "open":
		return blotter.OpenOrders, true
	case "all":
		return 0, true
	}
	status, ok := statusOf(value)
	return blotter.StatusOf(status), ok
}

// endList closes a list answer; next 0 is its last page. next is where the following page begins,
// as each list defines it.
func endList(b []byte, list byte, next uint64) []byte {
	b = append(b, `],"nextCursor":`...)
	if next == 0 {
		return append(b, "null}"...)
	}
	return append(appendCursor(b, list, next), '}')
}

// showOrder is GET /orders/{orderId}.
func (x *exchange) showOrder(id []byte) problem {
	if p := x.admit(); p.status != 0 {
		return p
	}
	if p := x.noParameters(); p.status != 0 {
		return p
	}
	row, p := x.ownOrder(id)
	if p.status != 0 {
		return p
	}
	if p := x.shown(); p.status != 0 {
		return p
	}
	return x.send(200, x.appendRow(x.begin(), &row))
}

// showBook is GET /book/{security}. It needs no token: the depth of a book belongs to no account.
//
// The copy costs no lock of the writer, and in rare cases a wait of ReadTimeout at most. Both sides
// are as of the book's sequence, and the answer waits until that one is durable.
func (x *exchange) showBook(ticker []byte) problem {
	depth := uint64(defaultPage)
	if p := x.eachParameter(func(name string, value []byte) (ok bool) {
		if name == "depth" {
			depth, ok = number(value, 1, maxPage)
		}
		return ok
	}); p.status != 0 {
		return p
	}
	id, ok := x.m.Gate.Security(ticker)
	if !ok {
		return problemSecurity(ticker)
	}
	book, err := x.views.Depth(id, int(depth), x.m.ReadTimeout)
	switch {
	case errors.Is(err, blotter.ErrBusy):
		return problemInflight
	case errors.Is(err, blotter.ErrSecurity):
		return problemSecurity(ticker) // the gate knows it, the views do not yet
	case err != nil:
		return x.notShown()
	}
	if p := x.durable(book.Sequence); p.status != 0 {
		return p
	}
	return x.send(200, appendBook(x.begin(), ticker, &book))
}

// appendBook appends the document of a book.
func appendBook[T string | []byte](b []byte, ticker T, book *blotter.Depth) []byte {
	b = append(b, `{"security":`...)
	b = appendString(b, ticker)
	b = append(b, `,"sequence":`...)
	b = appendUint(b, book.Sequence)
	b = append(b, `,"bids":`...)
	b = appendLevels(b, book.Bids)
	b = append(b, `,"asks":`...)
	return append(appendLevels(b, book.Asks), '}')
}

// appendLevels appends one side, best level first.
func appendLevels(b []byte, levels []blotter.Level) []byte {
	b = append(b, '[')
	for i, level := range levels {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendLevel(append(b, '{'), &level)
		b = append(b, '}')
	}
	return append(b, ']')
}

// appendLevel appends the members of a level. The braces are the caller's.
func appendLevel(b []byte, l *blotter.Level) []byte {
	b = append(b, `"price":`...)
	b = appendDecimal(b, l.Px)
	b = append(b, `,"quantity":`...)
	b = appendInt(b, l.Qty)
	b = append(b, `,"orders":`...)
	return appendUint(b, uint64(l.Orders))
}

// problemSecurity is the 404 of a ticker that no security has. The ticker was checked: it is
// printable ASCII.
func problemSecurity(ticker []byte) problem {
	return problem{status: 404, code: CodeSecurityNotFound,
		detail: "no such security: " + string(ticker)}
}

// fillPage reads the parameters of a page of fills, and those of a file of them, if file is not
// nil.
//
// since is 0 for a first page. limit is BlotterPage at most, which is the default too; a caller may
// ask for more, as of every list.
func (x *exchange) fillPage(file *exportQuery) (since uint64, limit int, p problem) {
	n := uint64(maxPage)
	p = x.eachParameter(func(name string, value []byte) (ok bool) {
		switch name {
		case "sinceSeq":
			since, ok = number(value, 0, 1<<63-1)
		case "limit":
			n, ok = number(value, 1, maxPage)
		}
		if file != nil {
			ok = file.read(name, value, ok)
		}
		return ok
	})
	if p.status == 0 && file != nil {
		p = file.check()
	}
	return since, min(int(n), x.m.BlotterPage), p
}

// showBlotter is GET /recon/trades/blotter.
//
// The page is read first, and sent when its last fill is durable. evicted above sinceSeq says that
// the caller has missed fills; the full history has them.
func (x *exchange) showBlotter() problem {
	if p := x.admin(); p.status != 0 {
		return p
	}
	var file exportQuery
	since, limit, p := x.fillPage(&file)
	if p.status != 0 {
		return p
	}
	if file.format != 0 {
		return x.exportBlotter(since, &file)
	}
	until := file.until(x.m.Zone)
	fills, next, evicted := x.m.Blotter.Page(since, limit, x.fills[:0])
	x.fills = fills
	if n := len(fills); n > 0 {
		if p := x.durable(fills[n-1].InputSeq); p.status != 0 {
			return p
		}
	}
	fills = slices.DeleteFunc(fills, func(f matcher.Fill) bool {
		return until != 0 && f.TimeMillis >= until
	})
	b := x.appendEntries(x.begin(), fills, next)
	b = append(b, `,"evicted":`...)
	b = appendUint(b, evicted)
	b = append(b, `,"capacity":`...)
	return x.send(200, append(appendUint(b, uint64(x.m.Blotter.Capacity())), '}'))
}

// appendEntries appends a page of fills, without the closing brace. next is the sinceSeq of the
// page after it.
func (x *exchange) appendEntries(b []byte, fills []matcher.Fill, next uint64) []byte {
	b = append(b, `{"items":[`...)
	b = appendEach(b, fills, x.appendEntry)
	b = append(b, `],"nextSinceSeq":`...)
	return appendUint(b, next)
}

// appendEntry appends an executed fill as the blotter shows it.
func (x *exchange) appendEntry(b []byte, f *matcher.Fill) []byte {
	return append(appendEntryOf(b, f, x.m.Gate.Ticker(f.SecurityID)), '}')
}

// appendEntryOf is appendEntry without the closing brace.
func appendEntryOf(b []byte, f *matcher.Fill, ticker string) []byte {
	b = append(b, `{"id":`...)
	b = appendTradeID(b, f.TradeSeq)
	b = append(b, `,"tradeSeq":`...)
	b = appendUint(b, f.TradeSeq)
	b = appendTerms(append(b, ','), f.AccountID, ticker, f.Side, int64(f.Qty), f.Px)
	b = append(b, `,"execTimeMillis":`...)
	b = appendInt(b, f.TimeMillis)
	b = append(b, `,"orderId":`...)
	b = appendOrderID(b, f.Order())
	b = append(b, `,"sequence":`...)
	return appendUint(b, f.InputSeq)
}

// showHealth is GET /health.
//
// The first condition that holds names the status, in the order of their weight. It is 200 in each:
// the endpoint says how the service is, /readyz decides. Applied is read after durable and never
// shown below it.
func (x *exchange) showHealth() problem {
	m := x.m
	status := "ok"
	switch {
	case m.Failed() != nil:
		status = "failed"
	case m.StorageFull():
		status = "storage-full"
	case m.Held():
		status = "history-ahead"
	case !m.Gate.Ready():
		status = "not-ready"
	}
	durable := m.Durable.Durable()
	h := health{service: m.name, status: status, cluster: m.Cluster, durability: m.Durability,
		applied: max(m.Views.Applied(), durable), durable: durable, projected: m.Projected}
	return x.send(200, h.append(x.begin()))
}
