package httpapi

import (
	"cmp"
	"context"
	"slices"

	"posttrade/journal/asof"
	"posttrade/matcher"
)

// creditQuery is the query of GET /credit.
type creditQuery struct {
	accounts    []uint32 // nil: all
	from, limit uint64   // from is the first account of the page
}

// creditQuery reads the query and compares it with the caller's claims.
func (x *exchange) creditQuery() (q creditQuery, p problem) {
	var account uint64
	asked := false
	q.limit = defaultPage
	p = x.eachParameter(func(name string, value []byte) (ok bool) {
		switch name {
		case "accountId":
			account, ok = number(value, 0, 1<<32-1)
			asked = ok
		case "limit":
			q.limit, ok = number(value, 1, maxPage)
		case "cursor":
			q.from, ok = parseCursor(value, cursorCredit)
		}
		return ok
	})
	if p.status == 0 {
		q.accounts, p = x.accountScope(asked, uint32(account))
	}
	return q, p
}

// listCredit is GET /credit. The running engine is asked for nothing: an engine for the past is
// brought to the durable head, so all accounts are of one sequence.
//
// It costs a replay from the nearest warm shadow, so it may be 503 BUSY like the endpoints of the
// past.
func (x *exchange) listCredit() problem {
	if p := x.admit(); p.status != 0 {
		return p
	}
	if x.m.AsOf == nil {
		return problemRoute
	}
	q, p := x.creditQuery()
	if p.status != 0 {
		return p
	}
	ctx, cancel := context.WithTimeout(x.m.lasting, queryTimeout)
	defer cancel()
	moment, p := x.present(ctx)
	if p.status != 0 {
		return p
	}
	defer moment.Release()
	x.asOf, x.marked = moment.InputSeq(), true
	return x.sendCredit(&q, moment.Engine())
}

// present loads the moment of the durable head, which has in it what was durable when the request
// came. A member's journal may have it a moment later, and sends no signal.
//
// The wait ends with that of await. The caller releases the moment.
func (x *exchange) present(ctx context.Context) (*asof.Moment, problem) {
	for {
		if head := x.m.AsOf.Head(); head >= x.asOf {
			return x.m.moment(ctx, head)
		}
		if p := x.m.lookAgain(x.late); p.status != 0 {
			return nil, p
		}
	}
}

// listPastCredit is GET /as-of/{inputSeq}/credit.
func (x *exchange) listPastCredit(moment *asof.Moment) problem {
	q, p := x.creditQuery()
	if p.status != 0 {
		return p
	}
	return x.sendCredit(&q, moment.Engine())
}

// sendCredit answers with a page of accounts, ascending by id. A cursor is the first account of the
// next page.
//
// It goes through all accounts of the engine for each page. An account with no orders and no trades
// is in it too.
func (x *exchange) sendCredit(q *creditQuery, e *matcher.Engine) problem {
	var rows []matcher.AccountInfo
	e.EachAccount(func(a matcher.AccountInfo) bool {
		if uint64(a.ID) >= q.from && (q.accounts == nil || slices.Contains(q.accounts, a.ID)) {
			rows = append(rows, a)
		}
		return true
	})
	slices.SortFunc(rows, func(a, b matcher.AccountInfo) int { return cmp.Compare(a.ID, b.ID) })
	next := uint64(0)
	if len(rows) > int(q.limit) {
		next = uint64(rows[q.limit].ID)
		rows = rows[:q.limit]
	}
	b := append(x.begin(), `{"items":[`...)
	for i := range rows {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"accountId":`...)
		b = append(appendUint(b, uint64(rows[i].ID)), `,"creditUsed":`...)
		b = append(appendDecimal(b, rows[i].CreditUsed), `,"creditLimit":`...)
		b = append(appendDecimal(b, rows[i].CreditLimit), '}')
	}
	return x.send(200, endList(b, cursorCredit, next))
}
