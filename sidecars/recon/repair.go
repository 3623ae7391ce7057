package recon

import (
	"context"
	"errors"
	"fmt"
	"time"

	"posttrade/matcher"
	"posttrade/sidecars/pace"
	"posttrade/sidecars/store"
)

// MaxRepair is the most entries of one repair.
//
// At repairChunk entries a transaction that is some five thousand transactions, with a rest after
// each.
const MaxRepair = 10_000_000

// repairChunk is how many entries one transaction of a repair compares, and repairRest how long it
// leaves the disk alone then, in multiples of its own time.
const (
	repairChunk = 2048
	repairRest  = 1
)

// maxRepairItems is how many repaired entries a result lists. The table recon_repaired_rows has all
// of them.
const maxRepairItems = 100

// The cursors of a repair: the projection's, below which every entry has had its row, and the
// number of the last repair.
const (
	cursorProjection = "projection"
	cursorRepair     = "recon.repair"
)

// The errors of Repair.
var (
	// ErrRepairing reports that a repair is running.
	ErrRepairing = errors.New("a repair is running")
	// ErrRange reports a range that is empty, larger than MaxRepair, or ends above the durable head.
	ErrRange = errors.New("not a range of trades that can be repaired")
)

// errNotRestored is a bug: a row that was made again is still not that of its fill.
var errNotRestored = errors.New("the row that was made again differs")

// RepairQuery asks for the rows of the trades From..To, both inclusive.
//
// Subject, Address and Reason are stored as they are and logged.
type RepairQuery struct {
	From, To uint64
	DryRun   bool // compares, and changes nothing
	// The operator, for the record.
	Subject, Address, Reason string
	// Record is called once before anything changes, when the repair is not refused any more, with
	// its number and what a dry run has just found; an error ends it. Nil: nothing is called, and
	// nothing is compared before.
	Record func(repair uint64, found *RepairResult) error
}

// RepairItem is one repaired entry.
//
// Fields has the name of each column that differed; "missing" alone for an entry without a row,
// "tradeSeq" or "id" alone for a row in the wrong place. Was is nil when there was none.
type RepairItem struct {
	TradeID string
	Fields  []string // that differed; missing: there was no row
	Was     *RepairedRow
	Now     store.Trade
}

// RepairedRow is a row as it was. Date is the text of its settlement date.
type RepairedRow struct {
	store.Trade
	Date string
}

// RepairResult is what a repair did, or with DryRun would do.
//
// Checked is Matched + Repaired. Checked + Pending is the length of the range when the repair ended
// without an error.
type RepairResult struct {
	Repair    uint64 // its number; 0: a dry run
	Checked   uint64 // entries compared
	Matched   uint64 // entries whose row was right
	Repaired  uint64 // entries whose row was made again
	Pending   uint64 // entries that the projection has not reached: it will write their rows
	Items     []RepairItem
	Truncated bool // more entries were repaired than Items lists
}

// Repair makes the rows of trades again from the journal where they are missing or differ, and
// keeps each row as it was in recon_repaired_rows, in the same transaction. A settlement that the
// settlement rules or a settlement by hand allow is kept. A row that is right stays as it is, so a
// repair may be repeated, also after it was cut off in the middle.
//
// Errors: ErrRange, ErrRepairing while another one runs, errors of the journal and of the database.
// After an error the result says how far it came.
//
// Each chunk is one transaction, so readers see whole chunks. It does not touch the books: the next
// walks find the rows and close the breaks. A dry run writes nothing at all, and excludes other
// repairs while it runs.
func (r *Recon) Repair(ctx context.Context, q RepairQuery) (result RepairResult, err error) {
	if q.From < 1 || q.From > q.To || q.To-q.From >= MaxRepair {
		return result, fmt.Errorf("recon: repair %d..%d: %w", q.From, q.To, ErrRange)
	}
	if _, head := r.o.Journal.Head(); q.To > head {
		return result, fmt.Errorf("recon: repair %d..%d, the last trade is %d: %w", q.From, q.To, head,
			ErrRange)
	}
	if !r.repairing.TryLock() {
		return result, ErrRepairing
	}
	defer r.repairing.Unlock()
	if q.DryRun {
		return result, r.walkRange(ctx, q, &result)
	}
	var found RepairResult
	if q.Record != nil {
		dry := q
		dry.DryRun = true
		if err := r.walkRange(ctx, dry, &found); err != nil {
			return result, err
		}
	}
	if result.Repair, err = r.beginRepair(ctx, q, &found); err != nil {
		return result, err
	}
	if err := r.walkRange(ctx, q, &result); err != nil {
		return result, err
	}
	if err := r.endRepair(ctx, q, &result); err != nil {
		return result, fmt.Errorf("recon: end repair: %w", err)
	}
	return result, nil
}

// walkRange compares a range chunk by chunk and repairs it unless q is a dry run. The repair's
// number is in result, to which it adds what each chunk was.
func (r *Recon) walkRange(ctx context.Context, q RepairQuery, result *RepairResult) error {
	for lo := q.From; lo <= q.To; lo += repairChunk {
		begun := time.Now()
		c := repairing{r: r, span: span{lo, min(q.To, lo+repairChunk-1)}, number: result.Repair}
		if err := c.run(ctx, q.DryRun); err != nil {
			return fmt.Errorf("recon: repair trades %d..%d: %w", lo, c.hi, err)
		}
		result.add(&c)
		if !q.DryRun && c.hi < q.To {
			if !pace.Sleep(ctx, pace.Rest(repairRest, time.Since(begun), repairChunk)) {
				return fmt.Errorf("recon: repair after trade %d: %w", c.hi, ctx.Err())
			}
		}
	}
	return nil
}

// beginRepair gives a repair its number, and puts it on record: first by q.Record with what was
// found, then in recon_repairs. A number whose act could not be recorded is not used again. After a
// restore with rows older than the journal, numbers go on from those rows.
func (r *Recon) beginRepair(ctx context.Context, q RepairQuery, found *RepairResult) (number uint64,
	err error) {
	if err := r.o.DB.Mine(ctx); err != nil {
		return 0, fmt.Errorf("recon: begin repair: %w", err)
	}
	err = r.o.DB.Write(ctx, func(tx *store.Tx) error {
		if number, err = tx.HoldCursor(cursorRepair); err != nil {
			return err
		}
		number++
		return tx.SetCursor(cursorRepair, number)
	})
	if err != nil {
		return 0, fmt.Errorf("recon: number repair: %w", err)
	}
	if q.Record != nil {
		if err := q.Record(number, found); err != nil {
			return 0, fmt.Errorf("recon: record repair: %w", err)
		}
	}
	now := r.nowMillis()
	err = r.o.DB.Write(ctx, func(tx *store.Tx) error {
		_, err := tx.Exec("insert into recon_repairs (repair, from_seq, to_seq, subject, address,"+
			" reason, "+
			"begun_at, checked, repaired) values ($1, $2, $3, $4, $5, $6, $7, 0, 0)",
			number, q.From, q.To, q.Subject, q.Address, q.Reason, now)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("recon: begin repair: %w", err)
	}
	r.o.Logger.Warn("recon: repair begins", "repair", number, "from", matcher.TradeID(q.From),
		"to", matcher.TradeID(q.To), "subject", q.Subject, "address", q.Address, "reason", q.Reason)
	return number, nil
}

// endRepair writes the end of a repair.
//
// A repair that was cut off keeps no ended_at.
func (r *Recon) endRepair(ctx context.Context, q RepairQuery, result *RepairResult) error {
	now := r.nowMillis()
	err := r.o.DB.Write(ctx, func(tx *store.Tx) error {
		_, err := tx.Exec("update recon_repairs set ended_at = $1 where repair = $2", now, result.Repair)
		return err
	})
	if err == nil {
		r.o.Logger.Warn("recon: repair ended", "repair", result.Repair, "from", matcher.TradeID(q.From),
			"to", matcher.TradeID(q.To), "checked", result.Checked, "repaired", result.Repaired)
	}
	return err
}

// add counts a chunk that was committed.
func (result *RepairResult) add(c *repairing) {
	result.Checked += c.checked
	result.Repaired += uint64(len(c.items))
	result.Matched += c.checked - uint64(len(c.items))
	result.Pending += c.pending
	room := maxRepairItems - len(result.Items)
	result.Truncated = result.Truncated || len(c.items) > room
	result.Items = append(result.Items, c.items[:min(room, len(c.items))]...)
}
