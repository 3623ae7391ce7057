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
type State uint8

// The states.
const (
	Bootstrapping State = iota
	Installed
	Ready
	Quarantined
)

// String returns the state's name.
func (s State) String() string {
	return [...]string{"bootstrapping", "installed", "ready", "quarantined"}[s]
}

// Reason says why a source was quarantined. Metrics carry it.
type Reason string

// The reasons.
const (
	Gap               Reason = "gap"
	VersionRegression Reason = "version_regression"
	EpochChange       Reason = "epoch_change"
	ChecksumFailure   Reason = "checksum_failure"
	CountMismatch     Reason = "count_mismatch"
	BufferOverflow    Reason = "buffer_overflow"
	Malformed         Reason = "malformed"
	Disconnected      Reason = "disconnected"
)

// Reasons returns all reasons.
func Reasons() []Reason {
	return []Reason{Gap, VersionRegression, EpochChange, ChecksumFailure, CountMismatch,
		BufferOverflow, Malformed, Disconnected}
}

// ErrGap is the error of Feed.Next when the stream itself has lost messages.
var ErrGap = errors.New("the stream has lost messages")

// ErrRegression is the error of Sink.Install when the sink has already applied a later version of
// the snapshot's epoch: the source has lost changes.
var ErrRegression = errors.New("the snapshot is older than what was applied")

// Feed is a confirmed subscription to the source's stream. It delivers only what is published after
// the confirmation.
type Feed interface {
	// Last returns the version and the payload of the source's last message on the stream at the time
	// when the subscription was confirmed, 0 and nil for none.
	Last() (version uint64, payload []byte)
	// Next waits for messages and returns the payloads of the source's own messages, in stream order.
	// It leaves out messages that other writers have put on the stream. Any error but ctx's means that
	// the subscription is lost; ErrGap says why.
	Next(ctx context.Context) ([][]byte, error)
	// LastHeard returns when the last message or heartbeat came.
	LastHeard() time.Time
	Close() error
}

// Sink takes the universe of the source. Run's goroutine calls Install and Apply; the reader may
// also call SetState.
type Sink interface {
	// Install replaces the universe with that of a verified snapshot, or returns ErrRegression.
	Install(ctx context.Context, s control.Snapshot) error
	// Apply applies deltas in their order.
	Apply(ctx context.Context, deltas []control.Delta) error
	// SetState publishes the state of the source.
	SetState(state State, epoch, watermark, highWatermark uint64, reason Reason)
}

// Defaults of Options.
const (
	DefaultBufferCapacity = 8192
	DefaultMaxSilence     = 10 * time.Second
	DefaultFetchTimeout   = 60 * time.Second

	firstBackoff = 100 * time.Millisecond
	lastBackoff  = 30 * time.Second
)

// Options of New.
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
	Returned       func() <-chan struct{}
	BufferCapacity int
	MaxSilence     time.Duration
	FetchTimeout   time.Duration
	Jitter         func() float64 // 0 to 1; nil: random
	Logger         *slog.Logger
}

// Status is the current state of a source and its counters.
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

// fault is an error that quarantines a source.
type fault struct {
	reason  Reason
	detail  string
	counted bool
}

func (f *fault) Error() string { return string(f.reason) + ": " + f.detail }

// quarantine revokes readiness. Only the first call with a given fault has an effect.
func (b *Bootstrap) quarantine(f *fault) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if f.counted {
		return
	}
	f.counted = true
	b.status.State, b.status.LastReason, b.status.Detail = Quarantined, f.reason, f.detail
	b.status.Quarantines[f.reason]++
	b.show()
	b.o.Logger.Warn("control feed quarantined", "source", string(b.o.Source), "reason",
		string(f.reason), "detail", f.detail)
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
