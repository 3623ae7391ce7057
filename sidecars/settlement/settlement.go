package settlement

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"posttrade/sidecars/store"
)

// Options configure a Settlement. DB and Calendar are required.
type Options struct {
	DB       *store.DB
	Calendar *Calendar
	Now      func() time.Time // nil: time.Now
	Interval time.Duration    // from the end of a sweep to the start of the next; 0: 5 s
	// BatchRows bounds one transaction of a sweep; 0: 1000.
	BatchRows int
	Logger    *slog.Logger // nil: none
}

// Settlement moves trades from Processing to Settled: all due trades, on a schedule, and single
// trades on request. Any goroutine may use it.
//
// The database decides every race; this type holds only counters and the marks of the sweep.
type Settlement struct {
	o Options
	// Options.DB.Write, except in tests
	write func(ctx context.Context, fn func(*store.Tx) error) error

	turn  chan struct{} // holds a token while a sweep runs; guards marks
	marks marks

	swept           atomic.Uint64 // written by the sweep that holds turn
	forced          atomic.Uint64 // written by Force
	failures        atomic.Uint64 // written by the sweep that holds turn
	lastSweepMillis atomic.Int64  // written by the sweep that holds turn
	seen            func(error)   // called after each sweep of Run, in tests
}

// Metrics are the counters of one process, each zero when it starts.
//
// Trades that another process settles are counted there.
type Metrics struct {
	Swept           uint64 // trades settled by the schedule, each counted when its commit is known
	Forced          uint64 // trades settled by Force; not those whose commit was not answered
	Failures        uint64 // sweeps that ended with an error
	LastSweepMillis int64  // end of the last sweep without an error; 0: none yet
}

// New returns a Settlement. It does nothing until one of its methods is called. DB and Calendar
// must be set.
func New(o Options) *Settlement {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Interval <= 0 {
		o.Interval = 5 * time.Second
	}
	if o.BatchRows <= 0 {
		o.BatchRows = 1000
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Settlement{
		o:     o,
		write: o.DB.Write,
		turn:  make(chan struct{}, 1),
		marks: newMarks(),
		seen:  func(error) {},
	}
}

// forceSQL settles one trade whatever its date. $1 is the time in epoch milliseconds. It does not
// set a time before the row's own last change: updated_at never falls.
const forceSQL = settleSQL + ` where status = 'Processing' and id = $2`

// Force settles the trade of that id now, whatever its settlement date, and returns its row. A
// Settled trade is returned unchanged; found is false when there is no such trade. After an error
// the trade may be Settled or not: the caller may call again, which is safe. A store.LockedError
// names the lock that it waited for.
//
// It blocks while another transaction holds the row, for as long as the database's lock timeout.
// Any id of the table is accepted, also that of a booking from outside.
func (s *Settlement) Force(ctx context.Context, tradeID string) (t store.Trade,
	found bool, err error) {
	if !store.PostgresText(tradeID) {
		return store.Trade{}, false, nil // so it is no id
	}
	if err := s.o.DB.Mine(ctx); err != nil {
		return store.Trade{}, false, fmt.Errorf("settlement: force id=%q: %w", tradeID, err)
	}
	var moved int64
	err = s.write(ctx, func(tx *store.Tx) error {
		for {
			var err error
			if moved, err = tx.Exec(forceSQL, s.o.Now().UnixMilli(), tradeID); err != nil {
				return err
			}
			if t, found, err = tx.Trade(tradeID); err != nil {
				return err
			}
			switch {
			case moved > 0:
				return tx.NoteForce(t.Seq, t.UpdatedAt)
			case !found || t.Status == store.Settled:
				return nil
			}
			// The update waited for a row that a repair has deleted, and does not see the one that the
			// repair has inserted in its place. The next statement does.
		}
	})
	if err != nil {
		err = s.o.DB.TradeLocked(ctx, tradeID, err)
		return store.Trade{}, false, fmt.Errorf("settlement: force id=%q: %w", tradeID, err)
	}
	s.forced.Add(uint64(moved))
	return t, found, nil
}

// Metrics returns all counters. They are not read at one moment.
//
// Any goroutine.
func (s *Settlement) Metrics() Metrics {
	return Metrics{
		Swept:           s.swept.Load(),
		Forced:          s.forced.Load(),
		Failures:        s.failures.Load(),
		LastSweepMillis: s.lastSweepMillis.Load(),
	}
}
