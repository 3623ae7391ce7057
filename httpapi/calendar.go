package httpapi

import (
	"context"

	"posttrade/sidecars/store"
)

// maxCalendarDays is the most days of an answer. It bounds the answer: a row for a day.
const maxCalendarDays = 400

// SettlementDays implements Trades.
func (s StoreTrades) SettlementDays(ctx context.Context, accounts []uint32,
	from, to store.Date) (days []store.SettlementDay, err error) {
	err = s.DB.Read(ctx, func(tx *store.Tx) (err error) {
		days, err = tx.SettlementDays(accounts, from, to)
		return err
	})
	return days, err
}

// calendarQuery is the query of GET /settlement/calendar.
//
// from and to are both inclusive.
type calendarQuery struct {
	accounts []uint32 // nil: all
	from, to store.Date
}

// calendarQuery reads the query and compares it with the caller's claims.
//
// from is required; without to the answer is of one day.
func (q *inquiry) calendarQuery() (c calendarQuery, p problem) {
	var account uint64
	var asked bool
	c.from, c.to = store.NoDate, store.NoDate
	date := func(value []byte, to *store.Date) bool {
		d, err := store.ParseDate(string(value))
		*to = d
		return err == nil
	}
	if p = q.eachParameter(func(name string, value []byte) (ok bool) {
		switch name {
		case "accountId":
			account, ok = number(value, 0, 1<<32-1)
			asked = ok
		case "from":
			ok = date(value, &c.from)
		case "to":
			ok = date(value, &c.to)
		}
		return ok
	}); p.status != 0 {
		return c, p
	}
	if c.to == store.NoDate {
		c.to = c.from
	}
	switch {
	case c.from == store.NoDate:
		return c, badParameter("from", "it is missing")
	case c.to < c.from:
		return c, problemPeriod
	case c.to-c.from >= maxCalendarDays:
		return c, badParameter("to", "at most 400 days are shown at a time")
	}
	c.accounts, p = accountScope(&q.claims, asked, uint32(account))
	return c, p
}

// showCalendar is GET /settlement/calendar.
//
// All days are counted in one transaction. A day without a trade is not in the answer.
func (q *inquiry) showCalendar() problem {
	if p := q.authenticate(); p.status != 0 {
		return p
	}
	c, p := q.calendarQuery()
	if p.status != 0 {
		return p
	}
	ctx, cancel := quick()
	defer cancel()
	days, err := q.p.Trades.SettlementDays(ctx, c.accounts, c.from, c.to)
	if err != nil {
		return q.p.failed(err)
	}
	b := append(q.begin(), `{"items":[`...)
	b = appendEach(b, days, appendSettlementDay)
	return q.send(200, append(b, `]}`...))
}

// appendSettlementDay writes how many trades settle on a day, and how many have.
func appendSettlementDay(b []byte, day *store.SettlementDay) []byte {
	b = append(b, `{"settlementDate":`...)
	b = append(appendString(b, day.Date.String()), `,"due":`...)
	b = append(appendInt(b, day.Due), `,"settled":`...)
	b = append(appendInt(b, day.Settled), `,"forced":`...)
	return append(appendInt(b, day.Forced), '}')
}
