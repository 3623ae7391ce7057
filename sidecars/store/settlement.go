package store

import (
	"fmt"

	"posttrade/matcher"
)

// SettlementRules are the rules by which settlement dates were computed for a period.
//
// The rows are an append-only list. Reconciliation uses it to compute the settlement date that a
// trade must have, also for trades that were booked before the rules changed.
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
//
// Two callers at once would draw the same number, and one of them would fail on the primary key.
func (t *Tx) AddSettlementRules(s SettlementRules) error {
	_, err := t.Exec("insert into settlement_rules (n, rules, first_seq, booked_from, forces_from) "+
		"values ((select coalesce(max(n), 0) from settlement_rules) + 1, $1, $2, $3, $4)",
		s.Rules, s.FirstSeq, s.BookedFrom, s.ForcesFrom)
	return err
}

// NoteForce notes that a trade was settled by hand.
//
// The later of two notes of one trade stays. The caller changes the trade's row in the same
// transaction.
func (t *Tx) NoteForce(tradeSeq uint64, nowMillis int64) error {
	_, err := t.Exec("insert into settlement_forces (trade_seq, forced_at) values ($1, $2) "+
		"on conflict (trade_seq) do update set forced_at = excluded.forced_at", tradeSeq, nowMillis)
	return err
}

// LastForce is the journal's last trade that was settled by hand, 0 for none.
func (t *Tx) LastForce() (tradeSeq uint64, err error) {
	err = t.Query("select coalesce(max(trade_seq), 0) from settlement_forces where trade_seq < $1",
		func(r *Row) error {
			tradeSeq = uint64(r.Int64(0))
			return nil
		}, int64(FirstExternal))
	return tradeSeq, err
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

// MaxBatch is the most rows of a Batch. Batches reads the batches that begin up to MaxBatch before
// its range, so a longer one would not be found.
const MaxBatch = 8192

// Batch says when the rows of a range of trade sequences were booked.
//
// Reconciliation compares the booked_at of each row with the batches that cover it.
type Batch struct {
	FirstSeq, LastSeq uint64 // at most MaxBatch rows
	BookedAt          int64  // booked_at of the rows, epoch milliseconds
	// Whole: all rows of the range were new. Otherwise some had been booked before, at other times.
	Whole bool
}

// NoteBatch stores a Batch. Of two batches of one moment that begin at one row, the longer one
// counts.
//
// A longer batch is stored as several. booked_at is a part of the key because rows that were booked
// again, after a repair or a new database, belong to several batches.
func (t *Tx) NoteBatch(b Batch) error {
	if b.LastSeq-b.FirstSeq >= MaxBatch {
		rest := b
		b.LastSeq = b.FirstSeq + MaxBatch - 1
		if rest.FirstSeq = b.LastSeq + 1; rest.FirstSeq <= rest.LastSeq {
			if err := t.NoteBatch(rest); err != nil {
				return err
			}
		}
	}
	whole := 0
	if b.Whole {
		whole = 1
	}
	_, err := t.Exec("insert into projection_batches (first_seq, last_seq, booked_at, whole) "+
		"values ($1, $2, $3, $4) on conflict (first_seq, booked_at) do update set "+
		"last_seq = case when projection_batches.last_seq > excluded.last_seq "+
		"then projection_batches.last_seq else excluded.last_seq end, "+
		"whole = case when projection_batches.whole < excluded.whole "+
		"then projection_batches.whole else excluded.whole end",
		b.FirstSeq, b.LastSeq, b.BookedAt, whole)
	return err
}

// Batches calls each for the batches with a row in lo <= trade_seq <= hi.
//
// They come by ascending FirstSeq, and those of one FirstSeq by ascending BookedAt. A batch may
// begin before lo or end behind hi.
func (t *Tx) Batches(lo, hi uint64, each func(Batch)) error {
	return t.Query("select first_seq, last_seq, booked_at, whole from projection_batches "+
		"where first_seq > $1 and first_seq <= $2 and last_seq >= $3 order by first_seq, booked_at",
		func(r *Row) error {
			each(Batch{FirstSeq: uint64(r.Int64(0)), LastSeq: uint64(r.Int64(1)), BookedAt: r.Int64(2),
				Whole: r.Int64(3) != 0})
			return nil
		}, int64(lo)-MaxBatch, hi, lo)
}

// ByMessage calls each for the trades lo <= trade_seq <= hi that an older build booked by message:
// their rows have no input sequence.
func (t *Tx) ByMessage(lo, hi uint64, each func(tradeSeq uint64)) error {
	return t.Query("select trade_seq from trades_by_message where trade_seq between $1 and $2",
		func(r *Row) error {
			each(uint64(r.Int64(0)))
			return nil
		}, lo, hi)
}

// Day returns the date in column i. ok is false when the column holds no date, or a date that no
// trade may have: the row was edited by hand, and one such row must not end a query over all rows.
func (r *Row) Day(i int) (day Date, ok bool) {
	day, err := r.cells.date(i)
	return day, err == nil && !r.cells.null(i) && day.known()
}

// OrderNumber returns the number of the order's id in column i; 0 for NULL. ok is false for any
// other text. It allocates nothing.
func (r *Row) OrderNumber(i int) (number uint64, ok bool) {
	if r.cells.null(i) {
		return 0, true
	}
	b, err := r.cells.scratch(i)
	r.note(i, "text", err)
	return matcher.ParseOrderID(b)
}

// errNoDate is the error of a date outside of the range of a trade's column.
var errNoDate = fmt.Errorf("store: not a date of %s..%s", firstDate, lastDate)
