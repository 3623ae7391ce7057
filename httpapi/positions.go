package httpapi

import (
	"context"
	"math"
	"slices"
	"sync"

	"posttrade/blotter"
	"posttrade/journal/asof"
	"posttrade/sidecars/export"
)

// positionQuery is the query of GET /positions.
//
// after is the cursor: account in the upper half, security in the lower; 0 for a first page.
type positionQuery struct {
	accountID, after, limit uint64
	asked                   bool // for one account
	file                    exportQuery
}

// positionQuery reads the query. A moment of the past is neither another day nor a file.
func (x *exchange) positionQuery() (q positionQuery, p problem) {
	q.limit = defaultPage
	p = x.eachParameter(func(name string, value []byte) (ok bool) {
		switch name {
		case "accountId":
			q.accountID, ok = number(value, 0, 1<<32-1)
			q.asked = ok
		case "limit":
			q.limit, ok = number(value, 1, maxPage)
		case "cursor":
			q.after, ok = parseCursor(value, cursorPositions)
		}
		if !x.past {
			ok = q.file.read(name, value, ok)
		}
		return ok
	})
	if p.status == 0 {
		p = q.file.check()
	}
	return q, p
}

// listPositions is GET /positions.
//
// Positions of now are those of the views; asOf loads a moment of its own, which is released when
// what the page or the file shows was read from it.
func (x *exchange) listPositions() problem {
	if p := x.admit(); p.status != 0 {
		return p
	}
	q, p := x.positionQuery()
	if p.status != 0 {
		return p
	}
	accounts, p := x.accountScope(q.asked, uint32(q.accountID))
	if p.status != 0 {
		return p
	}
	if q.file.day == nil {
		return x.sendPositions(&q, accounts, x.views, func() {})
	}
	moment, p := x.endOf(&q.file)
	if p.status != 0 {
		return p
	}
	x.asOf, x.marked, x.past = moment.InputSeq(), true, true
	return x.sendPositions(&q, accounts, moment.Views(), moment.Release)
}

// endOf loads the state at the end of a day, or as it is now when the day has not ended.
//
// The moment is the last command before the day's end in Deps.Zone. The caller releases it.
func (x *exchange) endOf(e *exportQuery) (*asof.Moment, problem) {
	if x.m.AsOf == nil {
		return nil, badParameter("asOf", "this server keeps no past")
	}
	ctx, cancel := context.WithTimeout(x.m.lasting, queryTimeout)
	defer cancel()
	inputSeq, err := x.m.AsOf.Before(ctx, e.until(x.m.Zone))
	if err != nil {
		return nil, x.m.notLoaded(err)
	}
	return x.m.moment(ctx, inputSeq)
}

// sendPositions answers with a page of positions, or with a file of all of them. done is called
// when views are not read any more.
//
// done is called in every case, once.
func (x *exchange) sendPositions(q *positionQuery, accounts []uint32, views *blotter.Views,
	done func()) problem {
	if q.file.format != 0 {
		return x.exportPositions(&q.file, accounts, views, done)
	}
	defer done()
	page, next := positionPage(views, accounts, q.after, int(q.limit))
	if p := x.shown(); p.status != 0 {
		return p
	}
	b := append(x.begin(), `{"items":[`...)
	for i, position := range page {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"accountId":`...)
		b = appendUint(b, uint64(position.AccountID))
		b = append(b, `,"security":`...)
		b = appendString(b, x.m.Gate.Ticker(position.SecurityID))
		b = append(b, `,"quantity":`...)
		b = appendInt(b, position.Qty)
		b = append(b, `,"averageCost":`...)
		b = append(appendDecimal(b, position.AverageCost), '}')
	}
	return x.send(200, endList(b, cursorPositions, next))
}

// exportPositions answers with a file of all positions of accounts. Those of now are read a page at
// a time, each durable before it is written.
//
// The file is written on a goroutine of its own, which outlives the handler: it must not touch x.
func (x *exchange) exportPositions(e *exportQuery, accounts []uint32, views *blotter.Views,
	done func()) problem {
	m, past, done := x.m, x.past, sync.OnceFunc(done)
	return m.sendFile(&x.serviceRequest, e, "positions",
		func(_ context.Context, f file) (uint64, error) {
			w := export.Positions(f.format, f.out, m.Gate.Ticker)
			if past {
				err := writeMoment(f, w, views, accounts, done)
				return w.Rows(), err
			}
			for after, more := uint64(0), true; more; {
				page, next := positionPage(views, accounts, after, maxPage)
				if head := m.Seen(); m.Durable.Durable() < head &&
					m.Durable.WaitDurable(head, m.ReadTimeout) != nil {
					return 0, errNotDurable
				}
				f.begin()
				if err := w.Write(page); err != nil {
					return 0, err
				}
				after, more = next, next != 0
			}
			return w.Rows(), w.Close()
		}, done)
}

// writeMoment writes the positions of a moment of the past.
//
// There are few such moments, and a client may take long to read a file. So all rows are read
// first, 24 bytes each, and done is called before anything is written.
func writeMoment(f file, w *export.Writer[blotter.Position], views *blotter.Views,
	accounts []uint32, done func()) error {
	rows, _ := positionPage(views, accounts, 0, math.MaxInt)
	done()
	f.begin()
	if err := w.Write(rows); err != nil {
		return err
	}
	return w.Close()
}

// positionPage returns up to limit positions after the cursor after, by account and security, and
// the cursor of the next page. A cursor is the account and the security of the last position shown.
//
// Accounts that are not known have no positions. The order is by ids, so a page continues correctly
// although positions change between two requests. It allocates the page.
func positionPage(views *blotter.Views, accounts []uint32, after uint64,
	limit int) (page []blotter.Position, next uint64) {
	if accounts == nil {
		for _, a := range views.Accounts() {
			accounts = append(accounts, a.ID)
		}
	}
	slices.Sort(accounts)
	var held []blotter.Position
	for _, account := range slices.Compact(accounts) {
		if uint64(account) < after>>32 {
			continue
		}
		held = views.Positions(account, held[:0])
		for _, p := range held {
			at := uint64(p.AccountID)<<32 | uint64(p.SecurityID)
			if at <= after {
				continue
			}
			if len(page) == limit {
				last := page[limit-1]
				return page, uint64(last.AccountID)<<32 | uint64(last.SecurityID)
			}
			page = append(page, p)
		}
	}
	return page, 0
}
