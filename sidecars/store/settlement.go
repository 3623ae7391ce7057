package store

import "fmt"

// SettlementRules are the rules by which settlement dates were computed for a period.
type SettlementRules struct {
	Rules      string // as the code that computes dates names them; "" = not known
	FirstSeq   uint64 // in force for the trades from this sequence on
	BookedFrom int64  // and for trades booked from this time on, epoch milliseconds
	ForcesFrom int64  // every settlement by hand since this time is known, epoch milliseconds
}

// SettlementRules returns all rules that were in force, in the order in which they were noted.
func (t *Tx) SettlementRules() (all []SettlementRules, err error) {
	err = t.Query("select rules, first_seq, booked_from, forces_from from settlement_rules order by n",
		func(r *Row) error {
			all = append(all, SettlementRules{
				Rules: r.Text(0), FirstSeq: uint64(r.Int64(1)), BookedFrom: r.Int64(2), ForcesFrom: r.Int64(3),
			})
			return nil
		})
	return all, err
}

// AddSettlementRules notes rules that come into force after the known ones. The caller must exclude
// other callers (HoldCursor).
func (t *Tx) AddSettlementRules(s SettlementRules) error {
	_, err := t.Exec("insert into settlement_rules (n, rules, first_seq, booked_from, forces_from) "+
		"values ((select count(*) from settlement_rules) + 1, $1, $2, $3, $4)",
		s.Rules, s.FirstSeq, s.BookedFrom, s.ForcesFrom)
	return err
}

// NoteForce notes that a trade was settled by hand.
func (t *Tx) NoteForce(tradeSeq uint64, nowMillis int64) error {
	_, err := t.Exec("insert into settlement_forces (trade_seq, forced_at) values ($1, $2) "+
		"on conflict (trade_seq) do update set forced_at = excluded.forced_at", tradeSeq, nowMillis)
	return err
}

// Forces calls each for the trades lo <= trade_seq <= hi that were settled by hand.
func (t *Tx) Forces(lo, hi uint64, each func(tradeSeq uint64, forcedAt int64)) error {
	return t.Query(
		"select trade_seq, forced_at from settlement_forces where trade_seq between $1 and $2",
		func(r *Row) error {
			each(uint64(r.Int64(0)), r.Int64(1))
			return nil
		}, lo, hi)
}

// Day returns the date in column i. ok is false when the column holds no date, or a date that no
// trade may have: the row was edited by hand, and one such row must not end a query over all rows.
func (r *Row) Day(i int) (day Date, ok bool) {
	day, err := r.cells.date(i)
	return day, err == nil && !r.cells.null(i) && day.known()
}

// Numbered returns n when the text in column i is prefix followed by n in canonical decimal; 0 for
// NULL. ok is false for any other text.
func (r *Row) Numbered(i int, prefix string) (n uint64, ok bool) {
	if r.cells.null(i) {
		return 0, true
	}
	b, err := r.cells.scratch(i)
	r.note(i, "text", err)
	if len(b) <= len(prefix) || string(b[:len(prefix)]) != prefix || b[len(prefix)] == '0' {
		return 0, false
	}
	const most = 19 // digits that cannot overflow
	digits := b[len(prefix):]
	for _, c := range digits {
		if c < '0' || c > '9' || len(digits) > most {
			return 0, false
		}
		n = n*10 + uint64(c-'0')
	}
	return n, true
}

// errNoDate is the error of a date outside of the range of a trade's column.
var errNoDate = fmt.Errorf("store: not a date of %s..%s", firstDate, lastDate)
