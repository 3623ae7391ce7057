package tca

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"posttrade/matcher"
	"posttrade/sidecars/store"
)

// ErrBehind reports that the index has not reached a trade within the time that a caller waits. It
// will reach it: ask again later.
var ErrBehind = errors.New("price history is behind the journal")

// ErrDamaged reports a block that does not match its checksum. Run builds the
// index again from the journal.
var ErrDamaged = errors.New("damaged price history")

// Shadow is an engine that replays the journal behind the live one; Run is its only user.
//
// Follow decides the commands up to inputSeq to, or to the durable head if that comes first, and
// passes their events to fn, whole commands per call; fn may be nil. The events are only valid
// during the call.
//
// Applied is the last inputSeq that it has decided. Close frees its memory; it is called once.
type Shadow interface {
	Applied() uint64
	Follow(ctx context.Context, to uint64, fn func(events []matcher.Event) error) error
	Close() error
}

// Options configure a TCA.
//
// Dir, Shadow, Durable and SecurityID are required. Genesis is compared by its SHA-256.
type Options struct {
	Dir     string        // created when it does not exist; no other process may write in it
	Window  time.Duration // of the TWAP; rounded down to milliseconds
	Genesis []byte        // the journal's genesis record: an index of another one is not used

	Shadow     func(before uint64) (Shadow, error)      // makes an engine at or before inputSeq before
	Durable    func() uint64                            // the durable head; any goroutine
	SecurityID func(ticker string) (id uint32, ok bool) // any goroutine may call it
	DB         *store.DB                                // for Summary only

	Now    func() time.Time // nil: time.Now
	Logger *slog.Logger     // nil: no log

	Poll               time.Duration // of the durable head when there is nothing to do; 0: 20 ms
	Patience           time.Duration // how long Report and Summary wait for the index; 0: 1 s
	CheckpointCommands uint64        // a checkpoint is saved after that many commands; 0: 1,000,000
	CheckpointInterval time.Duration // and after this time once Run has caught up; 0: 10 s
}

// The defaults of Options.
const (
	defaultPoll               = 20 * time.Millisecond
	defaultPatience           = time.Second
	defaultCheckpointCommands = 1_000_000
	defaultCheckpointInterval = 10 * time.Second
)

// TCA is the index with its writer, Run, and its readers.
//
// The life of the index: Open loads it, Run extends it, Close saves it. Between them it is always a
// prefix of the journal's history, or torn.
type TCA struct {
	o            Options
	windowMillis int64
	genesis      [sha256.Size]byte

	// running is held by Run and by Close. Its holder is the only writer of everything below. Reports
	// read the fields that are also under mu.
	running sync.Mutex
	closed  bool

	mu      sync.RWMutex
	index   index         // under mu
	torn    bool          // under mu: the index is incomplete and must not be read
	waiting chan struct{} // under mu: closed when the index moves; nil when no goroutine waits

	applied atomic.Uint64 // the last inputSeq in the index
	damaged atomic.Bool   // the index must be built again. Readers set it too

	saved   uint64    // the inputSeq of the checkpoint
	tried   uint64    // where a checkpoint was last attempted
	triedAt time.Time // and when
	follows alarm
	saves   alarm
}

// Open opens the index under o.Dir at its checkpoint, or an empty one. It does not make a shadow:
// Run does.
//
// Errors: invalid options, or errors of the file system.
//
// A checkpoint that cannot be used is no error: the index begins empty, and a line of the log says
// why.
func Open(o Options) (*TCA, error) {
	if o.Shadow == nil || o.Durable == nil || o.SecurityID == nil {
		return nil, errors.New("tca: options need Shadow, Durable and SecurityID")
	}
	if o.Window < 0 {
		return nil, fmt.Errorf("tca: window=%v is negative", o.Window)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.Poll = cmp.Or(o.Poll, defaultPoll)
	o.Patience = cmp.Or(o.Patience, defaultPatience)
	o.CheckpointCommands = cmp.Or(o.CheckpointCommands, defaultCheckpointCommands)
	o.CheckpointInterval = cmp.Or(o.CheckpointInterval, defaultCheckpointInterval)
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("tca: make folder: %w", err)
	}
	t := &TCA{o: o, windowMillis: o.Window.Milliseconds(), genesis: sha256.Sum256(o.Genesis),
		triedAt: o.Now()}
	t.follows = alarm{log: o.Logger, what: "tca: following the journal"}
	t.saves = alarm{log: o.Logger, what: "tca: taking checkpoints"}
	var err error
	if t.index.samples.file, err = openBlocks(filepath.Join(o.Dir, samplesName)); err != nil {
		return nil, err
	}
	if t.index.executions.file, err = openBlocks(filepath.Join(o.Dir, arrivalsName)); err == nil {
		err = t.load()
	}
	if err != nil {
		return nil, errors.Join(err, t.closeFiles())
	}
	return t, nil
}

// Close saves a checkpoint and closes the files. The caller must end Run's context first: Close
// waits for Run.
//
// A report that needs a block fails afterwards. A second Close returns nil.
func (t *TCA) Close() error {
	t.running.Lock()
	defer t.running.Unlock()
	if t.closed {
		return nil
	}
	t.closed = true
	var err error
	if !t.torn && !t.damaged.Load() && t.index.applied != t.saved {
		err = t.save()
	}
	return errors.Join(err, t.closeFiles())
}

func (t *TCA) closeFiles() error {
	var errs []error
	for _, file := range []*blockFile{t.index.samples.file, t.index.executions.file} {
		if file != nil {
			errs = append(errs, file.f.Close())
		}
	}
	return errors.Join(errs...)
}

// Applied is the last inputSeq in the index. Any goroutine.
func (t *TCA) Applied() uint64 { return t.applied.Load() }

// Lag is how many durable commands are not in the index yet. Any goroutine.
//
// It is the whole history while the index is built again.
func (t *TCA) Lag() uint64 {
	applied, durable := t.applied.Load(), t.o.Durable()
	return max(durable, applied) - applied
}

// CatchUp waits until the index has reached inputSeq, while Run follows. An index that has to be
// built again has not reached it.
//
// Errors: the context's.
//
// It polls nothing: Run wakes every caller when it has added commands. Any goroutine.
func (t *TCA) CatchUp(ctx context.Context, inputSeq uint64) error {
	for {
		t.mu.Lock()
		if !t.torn && !t.damaged.Load() && t.index.applied >= inputSeq {
			t.mu.Unlock()
			return nil
		}
		if t.waiting == nil {
			t.waiting = make(chan struct{})
		}
		moved := t.waiting
		t.mu.Unlock()
		select {
		case <-moved:
		case <-ctx.Done():
			return fmt.Errorf("tca: catch up inputSeq=%d at %d: %w", inputSeq, t.applied.Load(), ctx.Err())
		}
	}
}

// await waits, up to Options.Patience, until the index has reached the present durable head, and
// returns that inputSeq.
func (t *TCA) await(ctx context.Context) (durable uint64, err error) {
	patient, cancel := context.WithTimeout(ctx, t.o.Patience)
	defer cancel()
	durable = t.o.Durable()
	if err := t.CatchUp(patient, durable); err != nil {
		if ctx.Err() == nil {
			err = fmt.Errorf("%w: %w", err, ErrBehind)
		}
		return 0, err
	}
	return durable, nil
}
