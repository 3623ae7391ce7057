package store

import (
	"fmt"
	"strings"
)

// SettlementDay counts the trades of one settlement date.
//
// The three counts are disjoint: a trade that was settled by hand is in Forced and not in Settled.
type SettlementDay struct {
	Date    Date
	Due     int64 // not settled yet
	Settled int64 // by the sweep
	Forced  int64 // settled by hand
}

// SettlementDays returns the dates of from to to that have trades of some accounts, ascending.
// accounts is as in a TradeFilter. All counts are of one moment.
//
// from and to are inclusive. A date without trades has no entry. Bookings from outside count, rows
// that were given up do not. The cost grows with the trades between the two dates, and with the
// rows that were given up.
func (t *Tx) SettlementDays(accounts []uint32, from, to Date) (days []SettlementDay, err error) {
	if accounts != nil && len(accounts) == 0 {
		return nil, nil
	}
	sql, args := t.settlementDays(accounts, from, to)
	err = t.Query(sql, func(r *Row) error {
		date, ok := r.Day(0)
		if !ok {
			return nil // edited by hand: reconciliation reports the row
		}
		if len(days) == 0 || days[len(days)-1].Date != date {
			days = append(days, SettlementDay{Date: date})
		}
		switch day, n := &days[len(days)-1], r.Int64(2); r.Int64(1) {
		case 0:
			day.Due = n
		case 1:
			day.Settled = n
		case 2:
			day.Settled, day.Forced = day.Settled-n, n
		}
		return nil
	}, args...)
	return days, err
}

// settlementDays is the statement of SettlementDays: rows of date, part and count, ordered by date
// and part. Part 0 counts what is due, 1 all that has settled, 2 those of part 1 that were settled
// by hand: SettlementDays subtracts part 2 from part 1, so part 1 must come first. Parts 0 and 1
// are counted from their indexes alone. The index of part 1 has the rows that were given up too:
// they are subtracted, and the index of trade_seq finds them. One statement is one moment, on both
// databases.
func (t *Tx) settlementDays(accounts []uint32, from, to Date) (sql string, args []any) {
	args = []any{from, to}
	scope := ""
	if accounts != nil {
		args = append(args, numbers(accounts))
		scope = " and account_id " + t.anyOf("$3")
	}
	var parts []string
	add := func(part int, count, which string) {
		parts = append(parts, fmt.Sprintf("select settlement_date, %d as part, %s as n from trades "+
			"where %s and settlement_date between $1 and $2%s group by settlement_date",
			part, count, which, scope))
	}
	add(0, "count(*)", Due)
	add(1, "count(*)", "status = 'Settled'")
	// The index of what has settled has no trade_seq: this text keeps it from being used.
	add(1, "-count(*)", fmt.Sprintf("'' || status = 'Settled' and trade_seq >= %d", FirstVoid))
	add(2, "count(*)", fmt.Sprintf("status = 'Settled' and trade_seq in "+
		"(select trade_seq from settlement_forces where trade_seq < %d)", FirstVoid))
	return "select settlement_date, part, cast(sum(n) as bigint) from (" +
		strings.Join(parts, " union all ") + ") as counted group by settlement_date, part " +
		"having sum(n) > 0 order by settlement_date, part", args
}
