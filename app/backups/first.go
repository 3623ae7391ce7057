package backups

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"posttrade/journal/backup"
	"posttrade/sidecars/pace"
	"posttrade/sidecars/store"
)

// FirstOptions of NewFirst.
//
// All of them are required.
type FirstOptions struct {
	// The folder data.dir, where a restore has left its notes.
	Data string
	// Where the rows are put back.
	DB *store.DB
	// The journal that the rows have to be of.
	Journal FirstJournal
	Log     *slog.Logger
	// Patience is how long a request waits for the rows at most, also one with much time; 0: 10 s.
	Patience time.Duration
	// Bump begins a new epoch of both control sources. why goes on record.
	Bump func(ctx context.Context, why string) error
}

// FirstJournal is what First asks a journal: journal.Journal has it.
type FirstJournal interface {
	Seed() [32]byte
	Head() (inputSeq, tradeSeq uint64)
}

// First is the first start after a restore.
//
// Without a restore nothing waits. Wait may be called by any goroutine, Run by one.
type First struct {
	FirstOptions

	// The backup that data.dir was restored from; nil when there is nothing to do. It is constant.
	origin *backup.Origin
	back   chan struct{} // closed when the rows are back
	ready  chan struct{} // closed when the control sources may begin
	over   chan struct{} // closed when Run has ended with an error; why is written before
	why    error

	// The rows are back, or the database keeps others; of Run.
	loaded bool
	// There are rows, and the database has others; of Run.
	unused bool
}

// NewFirst looks whether a restore has left something to do.
//
// The error is that of the notes: a file that cannot be read. A First that comes with an error
// must not be used.
func NewFirst(o FirstOptions) (*First, error) {
	if o.Patience == 0 {
		o.Patience = 10 * time.Second
	}
	f := &First{FirstOptions: o, back: make(chan struct{}), ready: make(chan struct{}),
		over: make(chan struct{})}
	var err error
	if f.origin, err = backup.Restored(o.Data); f.origin == nil {
		close(f.back)
		close(f.ready)
	}
	return f, err
}

// firstPause is the pause before another try.
const firstPause = 200 * time.Millisecond

// Run does what is to be done, and returns. While the database or the broker cannot be reached it
// tries again. What it has done before the process ended is not lost; a new epoch is begun again.
//
// The order is: rows, then epochs. The notes of the restore are removed last, or kept with rows
// that were not put back. So a process that dies begins again; each step can be repeated. What was
// settled by hand is among the rows, and the projection settles it as it makes the rows of the
// trades.
//
// A nil error also means that ctx has ended. store.ErrKept, backup.ErrDamaged and
// backup.ErrOtherJournal are final: the rows do not fit or cannot be read, and another start would
// find the same. Then nothing has changed, the loops behind the rows never run, and Wait returns
// the error.
func (f *First) Run(ctx context.Context) error {
	if f.origin == nil {
		return nil
	}
	for said := false; ; {
		err := f.sources(ctx)
		if err == nil {
			close(f.ready)
			return f.finish()
		}
		if errors.Is(err, store.ErrKept) || errors.Is(err, backup.ErrDamaged) ||
			errors.Is(err, backup.ErrOtherJournal) {
			f.why = fmt.Errorf("after the restore: %w", err)
			close(f.over)
			return f.why
		}
		if !said && ctx.Err() == nil {
			said = true
			f.Log.Warn("what a restore has left waits", "error", err)
		}
		if !pace.Sleep(ctx, firstPause) {
			return nil
		}
	}
}

// finish removes the notes of the restore. Rows that were not put back are kept: they are nowhere
// else in this installation.
func (f *First) finish() error {
	if !f.unused {
		return backup.Forget(f.Data)
	}
	folder, err := backup.Keep(f.Data)
	if err == nil {
		f.Log.Error("restored: the rows of the backup were not put back, because the database had rows "+
			"already; compare them", "kept", folder, "see", "docs/operations.md")
	}
	return err
}

// Wait waits until the rows are back. Every request that writes into the database calls it first
// (store.DB.RequestsAfter): a database that has a source is not filled, and numbers that a request
// has taken are not those of the backup.
//
// It returns nil at once when the rows are back or there was no restore. Errors: those of
// store.DB.Ready; store.ErrNotRestored when Run has ended with an error, which it has too, and at
// the deadline of ctx, or after Patience; any other cause of the end of ctx. It never puts
// rows back itself: a request has less time than many rows may take, and Run does not begin while
// the history of the database is in question.
func (f *First) Wait(ctx context.Context) error {
	select {
	case <-f.back:
		return nil
	case <-f.over:
		return notRestored(f.why)
	default:
	}
	ctx, cancel := context.WithTimeout(ctx, f.Patience)
	defer cancel()
	if err := f.DB.Ready(ctx); err != nil && ctx.Err() == nil { // Run waits for it too
		return err
	}
	select {
	case <-f.back:
		return nil
	case <-f.over:
		return notRestored(f.why)
	case <-ctx.Done():
		cause := context.Cause(ctx)
		if errors.Is(cause, context.DeadlineExceeded) {
			return notRestored(cause)
		}
		return cause
	}
}

func notRestored(why error) error {
	return fmt.Errorf("%w: %w: %w", store.ErrUnavailable, store.ErrNotRestored, why)
}

// load puts the rows back, once.
//
// They are put back in one transaction. A database that has other rows keeps them
// (store.Tx.ReadKept), which is not an error; nor is a backup of a process without a database,
// which has none. It takes the database's write lock for as long as the rows take.
func (f *First) load(ctx context.Context) error {
	if f.loaded {
		return nil
	}
	inputSeq, _ := f.Journal.Head()
	if err := f.origin.Fits(f.Journal.Seed(), inputSeq); err != nil {
		return err
	}
	put, has := store.KeptRefused, false
	err := f.DB.Write(ctx, func(tx *store.Tx) error {
		rows, err := backup.RestoredTables(f.Data)
		if err != nil || rows == nil {
			return err
		}
		has = true
		put, err = tx.ReadKept(rows, f.origin.TradeSequence)
		if err = errors.Join(err, rows.Close()); err == nil && put == store.KeptNow &&
			f.origin.RowsFrom != "" {
			// Since these rows the journal may have got what waits in them: a later backup was used, or
			// they were put beside a newer journal, whose database is lost.
			err = tx.SeekActs(f.origin.RowsSequence + 1)
		}
		return err
	})
	if err == nil {
		f.loaded, f.unused = true, has && put == store.KeptRefused
		close(f.back)
		f.Log.Info("restored: rows that no journal gives again", "inBackup", has,
			"putBack", put != store.KeptRefused, "of", f.origin.RowsFrom, "older", f.origin.RowsOlder())
	}
	return err
}

// sources puts the rows back and begins the epochs.
//
// The rows come before the epochs: a replica that meets the new epoch takes a snapshot of the
// tables.
func (f *First) sources(ctx context.Context) error {
	err := f.load(ctx)
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

// Then runs a loop once the rows are back and the control sources may begin: one of a source, or
// one that numbers rows which the backup has too.
//
// A loop of a source that began earlier would fill its empty table from the seed files.
func (f *First) Then(run func(context.Context) error) func(context.Context) error {
	return pace.Behind(f.ready, run)
}

// WithRows runs a loop once the rows are back: one that goes by them.
//
// Such a loop does not have to wait for the broker, which the epochs need.
func (f *First) WithRows(run func(context.Context) error) func(context.Context) error {
	return pace.Behind(f.back, run)
}
