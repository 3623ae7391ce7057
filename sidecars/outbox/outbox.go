package outbox

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"posttrade/sidecars/control"
	"posttrade/sidecars/pace"
	"posttrade/sidecars/store"
)

// DefaultPoll is Options.Poll when none is set; batchRows is the most rows that a Step publishes.
const (
	DefaultPoll = 250 * time.Millisecond
	batchRows   = 256

	// mostConflicts is how often in a row the stream's end may differ from the end that was read a
	// moment before.
	mostConflicts = 3
)

// Options of New.
//
// Source, DB and Stream are required.
type Options struct {
	Source control.Source
	DB     *store.DB
	Stream Stream
	// Poll is how often Run looks for rows without a Wake; 0: DefaultPoll. Wake is a shortcut: another
	// process may have added the row.
	Poll   time.Duration
	Pause  time.Duration // the shortest pause until the broker returns; 0: that of package pace
	Now    func() time.Time
	Logger *slog.Logger

	// Returned returns a channel that closes when a broker that was away may be back. It ends a wait
	// after an error. nil: there is no such signal.
	Returned func() <-chan struct{}

	// Marked is called between an acknowledgement and the commit of its mark, with the highest
	// version; tests fail there. nil: no call.
	Marked func(version uint64) error
}

// Outbox is the publisher of one source.
//
// Run's goroutine owns the fields up to troubled; Compare, Step and the functions that they call
// run on it. LastOnStream uses none of those fields.
type Outbox struct {
	o Options
	// wake holds one token at most: many changes make one look.
	wake     chan struct{}
	compared bool      // the end of the stream is known: last and after are valid
	last     uint64    // the last version on the stream, 0 for none
	after    Outgoing  // the conditions of the next message on the stream's last
	finding  string    // a finding of Compare that does not stop publishing
	end      position  // the end of the stream that Compare found
	refusal  *position // the end of the stream when it refused the next message; nil for none
	passed   bool      // the last messages of the stream are of other writers
	taken    uint64    // the last version with an id that another writer has used, 0 for none

	conflicts int  // how often in a row the stream's end differed from what Compare had found
	troubled  bool // the trouble is in the log already

	compareAsked atomic.Bool // Compare again; any goroutine sets it
	// key is the source's signing key; nil until signingKey or drawKey has read it. It never changes
	// then.
	key atomic.Pointer[[]byte]

	mu sync.Mutex // guards what follows: any goroutine may meet messages of other writers
	// foreignTo and foreignAt make one count and one alarm of a message that several goroutines meet.
	foreignTo uint64    // the stream sequence of the last one that was counted
	foreignAt time.Time // when

	// Run's goroutine writes these, any goroutine reads them.
	published    atomic.Uint64
	foreignCount atomic.Uint64 // any goroutine writes it, like alarms
	// backlog is what look found last; never nil.
	backlog atomic.Pointer[store.Backlog]
	alarms  atomic.Uint64
	alarm   atomic.Pointer[string]
	refused atomic.Bool // the alarm is an ErrForeign
}

// New returns a publisher; Run starts it.
//
// It does no I/O.
func New(o Options) *Outbox {
	if o.Poll <= 0 {
		o.Poll = DefaultPoll
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Returned == nil {
		o.Returned = func() <-chan struct{} { return nil }
	}
	if o.Marked == nil {
		o.Marked = func(uint64) error { return nil }
	}
	b := &Outbox{o: o, wake: make(chan struct{}, 1)}
	b.backlog.Store(&store.Backlog{})
	return b
}

// Wake makes Run look for rows now. Any goroutine may call it; it does not wait.
func (b *Outbox) Wake() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// Published returns how many rows were marked as published since the start.
func (b *Outbox) Published() uint64 { return b.published.Load() }

// Unpublished returns how many rows waited when Run last looked.
func (b *Outbox) Unpublished() int64 { return int64(b.backlog.Load().Rows) }

// LagSeconds returns how long the oldest unpublished row has been waiting, 0 for none.
//
// It grows by itself while the database cannot be read, because the last look is kept.
func (b *Outbox) LagSeconds() float64 {
	at := b.backlog.Load()
	if at.Rows == 0 {
		return 0
	}
	return max(0, float64(b.o.Now().UnixMilli()-at.OldestMillis)/1000)
}

// Run publishes until ctx ends. Neither an absent database nor an absent broker ends it: rows wait.
//
// It returns nil, after ctx ended. A Step that published a full batch is followed by the next at
// once.
func (b *Outbox) Run(ctx context.Context) error {
	failures := pace.Backoff{Least: b.o.Pause}
	for ctx.Err() == nil {
		returned := b.o.Returned() // a return of the broker during the step counts too
		n, err := b.Step(ctx)
		wait := b.o.Poll
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, ErrConflict) && b.conflicts < mostConflicts:
			continue // another writer was faster: look again
		case err != nil:
			b.logOutage(err)
			wait = failures.Next()
		default:
			b.logOutage(nil)
			failures.Reset()
			if n == batchRows {
				continue // there are more rows
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		case <-b.woken(err):
		case <-returned:
			// Least is for an absent broker. One that is back may need a moment more for its streams, so the
			// pauses are short from now on.
			failures = pace.Backoff{}
		}
	}
	return nil
}

// woken returns the channel on which Run hears Wake. It is nil while there is an error: otherwise a
// busy source would turn the back-off into a tight loop.
func (b *Outbox) woken(err error) <-chan struct{} {
	if err != nil {
		return nil
	}
	return b.wake
}

// logOutage logs once that publishing has stopped, and once that it continues.
//
// The cause that is logged is the first of the row; later ones may differ.
func (b *Outbox) logOutage(err error) {
	switch {
	case err != nil && !b.troubled:
		b.o.Logger.Warn("outbox waits", "source", string(b.o.Source), "error", err)
	case err == nil && b.troubled:
		b.o.Logger.Info("outbox goes on", "source", string(b.o.Source))
	}
	b.troubled = err != nil
}
