package recon

import (
	"context"
	"fmt"

	"posttrade/matcher"
	"posttrade/sidecars/store"
)

// Class is the result of reconciliation for an entry or a row. MATCHED, the fourth, is only
// counted.
type Class string

// The classes of a break, in the order in which Breaks lists them.
const (
	MissingInProjection Class = "MISSING_IN_PROJECTION"
	FieldMismatch       Class = "FIELD_MISMATCH"
	OrphanInProjection  Class = "ORPHAN_IN_PROJECTION"
)

// ParseClass reads the name of a class of breaks.
func ParseClass(name string) (Class, bool) {
	switch c := Class(name); c {
	case MissingInProjection, FieldMismatch, OrphanInProjection:
		return c, true
	}
	return "", false
}

// Status is the summary: Matched + MissingInProjection + FieldMismatch == Cursor.
type Status struct {
	Cursor              uint64 // entries that have a class
	Matched             uint64
	MissingInProjection uint64
	FieldMismatch       uint64
	Orphans             uint64 // open breaks of rows without a fill
	Lag                 uint64 // durable entries without a class

	LastSweepMillis       int64 // 0: none yet
	LastOrphanSweepMillis int64 // 0: none yet
}

// Trade is one side of a break: a fill, or a trade row as it was read.
type Trade struct {
	AccountID  uint32
	Side       matcher.Side
	Security   string
	Quantity   int64
	Price      int64 // x 1e6
	TimeMillis int64
}

// Break is one open difference.
type Break struct {
	Class    Class
	TradeID  string
	TradeSeq uint64
	// Fields: the fields that differ, in the order of the contract; only for FIELD_MISMATCH
	Fields          []string
	Journal         *Trade // nil for an orphan
	Projection      *Trade // nil for a missing trade
	FirstSeenMillis int64
	LastSeenMillis  int64
}

// SweepResult is what an orphan sweep found.
type SweepResult struct {
	SweptMillis           int64
	LocalTradeCount       uint64
	FullHistoryTradeCount uint64
	OrphanCount           uint64
	OrphanIDs             []string // the first maxOrphanIDs in byte order
	Truncated             bool     // there are more orphans than ids
}

// Status reads the present tallies. The error wraps store.ErrUnavailable when the database cannot
// be reached.
func (r *Recon) Status(ctx context.Context) (Status, error) {
	var b books
	err := r.o.DB.Read(ctx, func(tx *store.Tx) (err error) {
		b, err = readBooks(tx)
		return err
	})
	if err != nil {
		return Status{}, fmt.Errorf("recon: read status: %w", err)
	}
	_, head := r.o.Source.Head()
	cursor := b.classified()
	return Status{
		Cursor:                cursor,
		Matched:               b.matched(),
		MissingInProjection:   b.missing,
		FieldMismatch:         b.mismatches,
		Orphans:               b.orphans,
		Lag:                   head - min(cursor, head),
		LastSweepMillis:       max(b.sweptMillis, r.lastSweep.Load()),
		LastOrphanSweepMillis: b.orphansSweptMillis,
	}, nil
}
