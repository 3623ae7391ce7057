package bootstrap

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"posttrade/sidecars/control"
)

// State is the progress of a source.
//
// The numbers are of this process only; the gate has a type of its own (gate.SourceState).
type State uint8

// The states.
const (
	// Bootstrapping: no snapshot of this round is installed. Installed: the snapshot is, and the
	// deltas behind it are being applied. Ready: everything seen is applied. Quarantined: a fault
	// ended the last round, and the next has not begun.
	Bootstrapping State = iota
	Installed
	Ready
	Quarantined
)

// String returns the state's name.
func (s State) String() string {
	return [...]string{"bootstrapping", "installed", "ready", "quarantined"}[s]
}

// ErrGap is the error of Feed.Next when the stream itself has lost messages.
//
// The round ends with the reason Gap instead of Disconnected.
var ErrGap = errors.New("the stream has lost messages")

// ErrRegression is the error of Sink.Install when the sink has already applied a later version of
// the snapshot's epoch: the source has lost changes.
//
// Only a new epoch of the source ends this.
var ErrRegression = errors.New("the snapshot is older than what was applied")

// Feed is a confirmed subscription to the source's stream. It delivers only what is published after
// the confirmation.
//
// The reader's goroutine calls Next, Run's goroutine the others; LastHeard may be called by any.
type Feed interface {
	// Last returns the version and the payload of the source's last message on the stream at the time
	// when the subscription was confirmed, 0 and nil for none.
	Last() (version uint64, payload []byte)
	// Next waits for messages and returns the payloads of the source's own messages, in stream order.
	// It leaves out messages that other writers have put on the stream. Any error but ctx's means that
	// the subscription is lost; ErrGap says why.
	Next(ctx context.Context) ([][]byte, error)
	// LastHeard returns when the last message or heartbeat came. The time has a reading of the
	// monotonic clock: without it, a step of the wall clock would be taken for silence.
	LastHeard() time.Time
	// Close ends the subscription; a Next under way returns. It is called once.
	Close() error
}

// Sink takes the universe of the source. Run's goroutine calls Install and Apply; the reader may
// also call SetState.
//
// Every call may wait for the engine. An error of Install or Apply other than ErrRegression is a
// fault of the engine and ends the round without a quarantine.
type Sink interface {
	// Install replaces the universe with that of a verified snapshot, or returns ErrRegression.
	Install(ctx context.Context, s control.Snapshot) error
	// Apply applies deltas in their order.
	//
	// The slice is not empty, its versions are consecutive, and it is reused after the return.
	Apply(ctx context.Context, deltas []control.Delta) error
	// SetState publishes the state of the source.
	//
	// It is called under the lock of the Bootstrap, in the order of the changes. It must be quick and
	// must not call the Bootstrap.
	SetState(state State, epoch, watermark, highWatermark uint64, reason Reason)
}

// Defaults of Options.
const (
	DefaultBufferCapacity = 8192
	DefaultMaxSilence     = 10 * time.Second
	DefaultFetchTimeout   = 60 * time.Second

	// The wait between two rounds is drawn from the upper half of the back-off, so that replicas that
	// lost one source together do not fetch together.
	firstBackoff = 100 * time.Millisecond
	lastBackoff  = 30 * time.Second
)

// Options of New.
//
// Source, Follow, Fetch and Sink are required. Zero durations and sizes mean the defaults.
type Options struct {
	Source control.Source
	Follow func(ctx context.Context) (Feed, error) // makes a confirmed feed
	// Returns a verified snapshot; control's errors by errors.Is.
	Fetch func(ctx context.Context) (control.Snapshot, error)
	Sink  Sink
	// Behind is called before the source becomes ready and while it is ready. An error says that
	// changes above a watermark do not reach the stream, so that its silence does not mean that there
	// are no changes. nil: this is not known.
	Behind func(ctx context.Context, watermark uint64) error
	// Returned returns a channel that closes when a broker that was away may be back. It ends the wait
	// for the next round. nil: there is no such signal.
	Returned func() <-chan struct{}
	// BufferCapacity is in deltas. MaxSilence is how long neither a message nor a heartbeat may come.
	// FetchTimeout bounds one snapshot.
	BufferCapacity int
	MaxSilence     time.Duration
	FetchTimeout   time.Duration
	Jitter         func() float64 // 0 to 1; nil: random
	Logger         *slog.Logger
}

// Status is the current state of a source and its counters.
//
// It is a copy of one moment. The counters are since the start of the process.
type Status struct {
	State         State
	Epoch         uint64
	Watermark     uint64 // the last version that is applied
	HighWatermark uint64 // the last version that was seen
	LastReason    Reason // of the last quarantine, "" for none
	Detail        string // the details of LastReason
	Quarantines   map[Reason]uint64
	Late          uint64 // deltas at or below the watermark: skipped
	Repeated      uint64 // copies of the last delta: ignored
	Applied       uint64 // deltas applied
	LastHeard     time.Time
	// Took is the duration of the last bootstrap, from before the subscription to ready; 0 before
	// the first.
	Took time.Duration
}

// Bootstrap follows one source.
//
// The round of Run has two goroutines, the applier (Run's own) and the reader. They share the
// round's channels, and the status under mu.
type Bootstrap struct {
	o Options

	mu     sync.Mutex // guards what follows
	status Status
	round  *round // the round under way
}

// New returns a Bootstrap; Run starts it.
func New(o Options) *Bootstrap {
	if o.BufferCapacity <= 0 {
		o.BufferCapacity = DefaultBufferCapacity
	}
	if o.MaxSilence <= 0 {
		o.MaxSilence = DefaultMaxSilence
	}
	if o.FetchTimeout <= 0 {
		o.FetchTimeout = DefaultFetchTimeout
	}
	if o.Behind == nil {
		o.Behind = func(context.Context, uint64) error { return nil }
	}
	if o.Returned == nil {
		o.Returned = func() <-chan struct{} { return nil }
	}
	if o.Jitter == nil {
		o.Jitter = rand.Float64
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Bootstrap{o: o, status: Status{Quarantines: map[Reason]uint64{}}}
}

// Status returns the status of the source. Any goroutine.
//
// It costs a small map. LastHeard is that of the subscription of this round; zero between two
// rounds.
func (b *Bootstrap) Status() Status {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.status
	s.Quarantines = make(map[Reason]uint64, len(b.status.Quarantines))
	for reason, n := range b.status.Quarantines {
		s.Quarantines[reason] = n
	}
	if b.round != nil {
		s.LastHeard = b.round.feed.LastHeard()
	}
	return s
}

// Run bootstraps the source and follows it until ctx ends, in as many rounds as that takes.
//
// It returns nil, after ctx ended. It is called once.
func (b *Bootstrap) Run(ctx context.Context) error {
	backoff := firstBackoff
	for ctx.Err() == nil {
		returned := b.o.Returned() // a return of the broker during the round counts too
		reached, err := b.once(ctx)
		if ctx.Err() != nil {
			break
		}
		if reached {
			backoff = firstBackoff
		}
		b.ended(err)
		wait := backoff/2 + time.Duration(b.o.Jitter()*float64(backoff/2))
		backoff = min(2*backoff, lastBackoff)
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		case <-returned:
			backoff = firstBackoff
		}
	}
	return nil
}

// ended handles the end of a round. A fault of the source has quarantined it already, where the
// fault was found.
func (b *Bootstrap) ended(err error) {
	var f *fault
	if errors.As(err, &f) {
		b.quarantine(f)
		return
	}
	b.o.Logger.Error("control feed: the engine did not take a change", "source",
		string(b.o.Source), "error", err)
	b.move(Bootstrapping)
}

// move changes the state of a source unless its own round has quarantined it.
func (b *Bootstrap) move(state State) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.round != nil && b.round.fault != nil {
		return // the reader has found a fault meanwhile
	}
	if state == Ready && b.status.State != Ready {
		b.o.Logger.Info("control feed ready", "source", string(b.o.Source), "epoch", b.status.Epoch,
			"watermark", b.status.Watermark)
	}
	b.status.State = state
	b.show()
}

// show passes the status to the sink. The caller holds mu, so that calls keep their order.
func (b *Bootstrap) show() {
	s := &b.status
	b.o.Sink.SetState(s.State, s.Epoch, s.Watermark, s.HighWatermark, s.LastReason)
}
