package recon

import (
	"context"
	"errors"
	"fmt"

	"posttrade/matcher"
	"posttrade/sidecars/store"
)

// Class is the result of reconciliation for an entry or a row. MATCHED, the fourth, is only
// counted.
//
// The names are a part of the HTTP interface and of the stored view.
type Class string

// The classes of a break, in the order in which Breaks lists them.
const (
	MissingInProjection Class = "MISSING_IN_PROJECTION"
	FieldMismatch       Class = "FIELD_MISMATCH"
	OrphanInProjection  Class = "ORPHAN_IN_PROJECTION"
	// External is a booking from outside that no line of the statement confirms, or a line of the
	// statement without a booking.
	External Class = "EXTERNAL"
)

// ParseClass reads the name of a class of breaks.
func ParseClass(name string) (Class, bool) {
	switch c := Class(name); c {
	case MissingInProjection, FieldMismatch, OrphanInProjection, External:
		return c, true
	}
	return "", false
}

// Status is the summary: Matched + MissingInProjection + FieldMismatch == Cursor.
//
// It is the present state: all fields may fall.
type Status struct {
	Cursor              uint64 // entries that have a class
	Matched             uint64
	MissingInProjection uint64
	FieldMismatch       uint64
	Orphans             uint64 // open breaks of rows without a fill
	Lag                 uint64 // durable entries without a class
	External            uint64 // bookings from outside
	// those that the statement does not confirm, and lines without a booking
	ExternalUnmatched uint64

	LastSweepMillis       int64 // 0: none yet
	LastOrphanSweepMillis int64 // 0: none yet
}

// Trade is one side of a break: a fill, or a trade row as it was read.
//
// Two Trades are equal by == when nothing that a Trade holds differs.
type Trade struct {
	AccountID  uint32
	Side       matcher.Side
	Security   string
	Quantity   int64
	Price      int64 // x 1e6
	TimeMillis int64
}

// Details are the other part of a side of a break.
type Details struct {
	Status         string     // "": the journal does not determine it
	SettlementDate store.Date // store.NoDate: none, or not known
	OrderID        string     // "": none
	Sequence       uint64     // input sequence; 0: none
	BookedMillis   int64      // 0: not known; so is the next one
	UpdatedMillis  int64
}

// Break is one open difference.
//
// Which sides it has, by class:
//
//   - MISSING_IN_PROJECTION: Journal.
//   - FIELD_MISMATCH: Journal and Projection, as it was judged.
//   - ORPHAN_IN_PROJECTION: Projection.
//   - EXTERNAL: Projection, Statement, or both.
type Break struct {
	Class    Class
	TradeID  string
	TradeSeq uint64 // 0 for EXTERNAL
	// Fields: the fields that differ, in the order of the contract; only for FIELD_MISMATCH and
	// EXTERNAL
	Fields            []string
	Journal           *Trade   // nil for an orphan, and for EXTERNAL
	JournalDetails    *Details // with Journal
	Projection        *Trade   // nil for a missing trade
	ProjectionDetails *Details // nil when there is no row, or it has changed since it was judged
	Statement         *Trade   // the line of the statement; nil when there is none
	FirstSeenMillis   int64
	LastSeenMillis    int64
}

// SweepResult is what an orphan sweep found.
//
// LocalTradeCount counts the rows that were judged, FullHistoryTradeCount the fills of the index.
// OrphanCount is that of all open orphans at the end.
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
//
// It reads one row, two cursors, and counts the bookings from outside. Any goroutine.
func (r *Recon) Status(ctx context.Context) (Status, error) {
	var b books
	var outside externals
	err := r.o.DB.Read(ctx, func(tx *store.Tx) (err error) {
		if b, err = readBooks(tx); err == nil {
			outside, err = readExternals(tx)
		}
		return err
	})
	if err != nil {
		return Status{}, fmt.Errorf("recon: read status: %w", err)
	}
	_, head := r.o.Journal.Head()
	cursor := b.classified()
	return Status{
		Cursor:                cursor,
		Matched:               b.matched(),
		MissingInProjection:   b.missing,
		FieldMismatch:         b.mismatches,
		Orphans:               b.orphans,
		Lag:                   head - min(cursor, head),
		External:              outside.bookings,
		ExternalUnmatched:     outside.bookings - outside.confirmed + outside.absent,
		LastSweepMillis:       ownTime(&r.lastSweep, b.sweptMillis),
		LastOrphanSweepMillis: b.orphansSweptMillis,
	}, nil
}

// Before is the last input sequence before the command of a durable trade; 0: the journal cannot
// tell. It reads a block of the journal.
func (r *Recon) Before(tradeSeq uint64) (inputSeq uint64) {
	err := r.o.Journal.Fills(tradeSeq, func(fills []matcher.Fill) error {
		inputSeq = fills[0].InputSeq - 1
		return errEnough
	})
	if !errors.Is(err, errEnough) {
		return 0
	}
	return inputSeq
}
