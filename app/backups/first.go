package backups

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"posttrade/journal/backup"
	"posttrade/sidecars/store"
)

// FirstOptions of NewFirst.
type FirstOptions struct {
	Data string // data.dir
	DB   *store.DB
	Log  *slog.Logger
	// Bump begins a new epoch of both control sources. why goes on record.
	Bump func(ctx context.Context, why string) error
	// Projected is the last trade with a row.
	Projected func() (tradeSeq, inputSeq uint64)
}

// First is the first start after a restore.
type First struct {
	FirstOptions

	origin *backup.Origin
	back   chan struct{} // closed when the rows are back
	ready  chan struct{} // closed when the control sources may begin

	turn   sync.Mutex
	loaded bool // guarded by turn
}

// NewFirst looks whether a restore has left something to do.
func NewFirst(o FirstOptions) (*First, error) {
	f := &First{FirstOptions: o, back: make(chan struct{}), ready: make(chan struct{})}
	var err error
	if f.origin, err = backup.Restored(o.Data); f.origin == nil {
		close(f.back)
		close(f.ready)
	}
	return f, err
}

// firstPause is the pause before another try, and between two looks at the projection.
const firstPause = 200 * time.Millisecond

// Run does what is to be done, and returns. While the database or the broker cannot be reached it
// tries again. What it has done before the process ended is not lost; a new epoch is begun again.
func (f *First) Run(ctx context.Context) error {
	if f.origin == nil {
		return nil
	}
	said := false
	for {
		err := f.sources(ctx)
		if err == nil {
			break
		}
		if errors.Is(err, store.ErrKept) || errors.Is(err, backup.ErrDamaged) {
			return fmt.Errorf("after the restore: %w", err)
		}
		if !said && ctx.Err() == nil {
			said = true
			f.Log.Warn("what a restore has left waits", "error", err)
		}
		if !sleep(ctx, firstPause) {
			return nil
		}
	}
	close(f.ready)
	for {
		if at, _ := f.Projected(); at >= f.origin.TradeSequence {
			if f.settle(ctx) == nil {
				return backup.Forget(f.Data)
			}
		}
		if !sleep(ctx, firstPause) {
			return nil
		}
	}
}

// Load puts the rows back, once. Whatever would fill or change the tables of a source calls it
// first: a table that is not empty is not filled.
func (f *First) Load(ctx context.Context) error {
	if f.origin == nil {
		return nil
	}
	f.turn.Lock()
	defer f.turn.Unlock()
	if f.loaded {
		return nil
	}
	put, has := false, false
	err := f.DB.Write(ctx, func(tx *store.Tx) error {
		rows, err := backup.RestoredTables(f.Data)
		if err != nil || rows == nil {
			return err
		}
		has = true
		put, err = tx.ReadKept(rows, f.origin.TradeSequence)
		return errors.Join(err, rows.Close())
	})
	if err == nil {
		f.loaded = true
		close(f.back)
		f.Log.Info("restored: rows that no journal gives again", "inBackup", has, "putBack", put)
	}
	return err
}

// sources puts the rows back and begins the epochs.
func (f *First) sources(ctx context.Context) error {
	err := f.Load(ctx)
	if err == nil {
		err = f.Bump(ctx, fmt.Sprintf("first start after a restore up to sequence %d",
			f.origin.InputSequence))
	}
	if err == nil {
		f.Log.Info("restored: the control sources begin a new epoch", "from", f.origin.From,
			"sequence", f.origin.InputSequence)
	}
	return err
}

// settle settles again what was settled by hand.
func (f *First) settle(ctx context.Context) error {
	var rows int64
	err := f.DB.Write(ctx, func(tx *store.Tx) (err error) {
		rows, err = tx.SettleForced(time.Now().UnixMilli())
		return err
	})
	if err == nil {
		f.Log.Info("restored: every trade has its row", "settledByHandAgain", rows)
	}
	return err
}

// Then runs a loop once the rows are back and the control sources may begin: one of a source, or
// one that numbers rows which the backup has too.
func (f *First) Then(run func(context.Context) error) func(context.Context) error {
	return behind(f.ready, run)
}

// WithRows runs a loop once the rows are back: one that goes by them.
func (f *First) WithRows(run func(context.Context) error) func(context.Context) error {
	return behind(f.back, run)
}

// behind runs a loop once a channel is closed.
func behind(done <-chan struct{},
	run func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		select {
		case <-done:
			return run(ctx)
		case <-ctx.Done():
			return nil
		}
	}
}

// sleep waits; false: ctx has ended.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}
