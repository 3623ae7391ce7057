package feed

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"posttrade/blotter"
	"posttrade/journal"
)

// Limits of a Hub.
const (
	// DefaultMaxReaders is feed.max-clients.
	DefaultMaxReaders = 256
	// maxHistoryReaders is how many readers read older history at a time.
	maxHistoryReaders = 8
	// MaxPending is how many bytes may wait for a live reader.
	MaxPending = 1 << 20
	// DefaultRetain is how many bytes of events, and of the texts of selections, are held in memory.
	DefaultRetain = 32 << 20

	// batchBytes is the text after which a batch is closed at the end of a command.
	batchBytes = 128 << 10
	// behind is how many commands before the head a new hub begins to hold in memory: readers that
	// come back after a restart find their positions there.
	behind = 1 << 16
	// lingers is how long the shadow stays after the last reader has left.
	lingers = time.Minute
	// look is how often a hub without news checks whether it is still needed.
	look = 200 * time.Millisecond
	// warmBatches is how many of the newest batches keep the texts of selections.
	warmBatches = 64
	// What a batch, an event and the text of a selection cost beside their text.
	batchCost, itemCost, cutCost = 256, 40, 64
)

// Errors of Open.
var (
	// ErrBusy: as many readers as may be are connected, or read older history.
	ErrBusy = errors.New("too many readers of the feed")
	// ErrClosed: the hub is closed.
	ErrClosed = errors.New("the feed is closed")
	// ErrFailed: the history could not be read.
	ErrFailed = errors.New("the feed cannot read the history")
)

// Waiter knows up to which number commands are durable. On a member these are the agreed ones,
// which its own journal may not have yet.
type Waiter interface {
	Durable() uint64
	// WaitDurable returns nil when Durable is at least inputSeq.
	WaitDurable(inputSeq uint64, timeout time.Duration) error
}

// Options of New. Journal, Rebuild, Durable and Render are needed. Render is called on the
// follower's goroutine and on those of readers of older history, several at a time.
type Options struct {
	Journal *journal.Journal
	// Rebuild makes engines, and views that wrap has wrapped.
	Rebuild func(wrap func(v *blotter.Views) journal.Views) journal.Rebuild
	Durable Waiter
	// Render appends an event's JSON document, without line breaks.
	Render func(b []byte, e *Event) []byte
	// Report gets errors of the history; nil: not reported.
	Report func(err error)

	MaxReaders int           // 0: DefaultMaxReaders
	Retain     int           // bytes of events held in memory; 0: DefaultRetain
	Behind     uint64        // commands before the head that a new follower begins with; 0: some
	Lingers    time.Duration // after the last reader; 0: a minute
}

// Hub follows the history for all readers. See the package's comment.
type Hub struct {
	o       Options
	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu sync.Mutex
	// Of open readers. mu guards the fields from here to asked.
	readers places
	history places        // of them, those that read older history
	started bool          // the follower runs
	batches []*batch      // of consecutive commands; only the follower adds
	held    int           // what batches cost, in bytes
	floor   Position      // everything behind it is in batches
	applied Position      // behind all that was derived, once ready
	ready   bool          // the follower has reached the head
	failed  error         // of the last follower, until the next one begins
	changed chan struct{} // closed when one of the above has changed, and made anew
	asked   []*bookRequest
	called  chan struct{} // has room for one: asked is not empty

	counts counts
}

// New makes a hub. It does nothing before the first reader. Close it before the journal. Any
// goroutine may use it.
func New(o Options) *Hub {
	if o.MaxReaders <= 0 {
		o.MaxReaders = DefaultMaxReaders
	}
	if o.Retain <= 0 {
		o.Retain = DefaultRetain
	}
	if o.Behind == 0 {
		o.Behind = behind
	}
	if o.Lingers <= 0 {
		o.Lingers = lingers
	}
	if o.Report == nil {
		o.Report = func(error) {}
	}
	h := &Hub{o: o, changed: make(chan struct{}), called: make(chan struct{}, 1),
		readers: places{most: o.MaxReaders}, history: places{most: maxHistoryReaders}}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	return h
}

// Close ends the readers' waits with ErrClosed and frees the follower's shadow. It waits for the
// follower. A reader of older history frees its own shadow when it is closed.
func (h *Hub) Close() {
	h.cancel()
	h.running.Wait()
}

// Readers is how many readers are open, and how many of them read older history.
func (h *Hub) Readers() (all, history int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.readers.taken, h.history.taken
}

// Applied is the last sequence of which the events are in memory, 0 while nothing is followed.
func (h *Hub) Applied() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.ready {
		return 0
	}
	return h.applied.InputSeq
}

// wake tells every goroutine that waits for a change. Under mu.
func (h *Hub) wake() {
	close(h.changed)
	h.changed = make(chan struct{})
}

// join takes a place for a reader, and starts the follower for the first.
func (h *Hub) join(guest bool) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.ctx.Err() != nil:
		return ErrClosed
	case !h.readers.take(guest):
		h.counts.refused.Add(1)
		return ErrBusy
	}
	h.start()
	return nil
}

// start makes the follower run. Under mu.
func (h *Hub) start() {
	if !h.started {
		h.started, h.failed = true, nil
		h.running.Go(h.run)
	}
}

// leave gives a reader's place back. The follower notices at its next look.
func (h *Hub) leave(guest bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.readers.give(guest)
}

// run follows the head until the hub is closed, the history fails, or no reader has been there for
// some time. It is the follower's goroutine, at most one at a time; what it held in memory goes
// with it.
func (h *Hub) run() {
	err := h.follow()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.started, h.ready, h.batches, h.held = false, false, nil, 0
	if err != nil && h.ctx.Err() == nil {
		h.failed = fmt.Errorf("%w: %w", ErrFailed, err)
		h.o.Report(h.failed)
	}
	for _, r := range h.asked {
		close(r.done)
	}
	h.asked = nil
	// A reader that came while the shadow was closed needs another one.
	if h.readers.taken > 0 && h.failed == nil && h.ctx.Err() == nil {
		h.start()
	}
	h.wake()
}

// open opens a shadow with a deriver, at or before a sequence: at the newest snapshot that is not
// beyond it, or at the beginning. The caller closes the shadow, which closes the deriver's views.
func (h *Hub) open(before uint64) (*journal.Shadow, *deriver, error) {
	var d *deriver
	rebuild := h.o.Rebuild(func(v *blotter.Views) journal.Views {
		d = &deriver{views: v}
		return d
	})
	sh, err := journal.NewViewShadow(h.o.Journal, rebuild, before)
	return sh, d, err
}

// openAt opens a shadow that stands at a sequence, from which the journal goes on.
func (h *Hub) openAt(from uint64) (*journal.Shadow, *deriver, error) {
	if err := h.stored(h.ctx, After(from)); err != nil {
		return nil, nil, err
	}
	sh, d, err := h.open(from)
	if err != nil {
		return nil, nil, err
	}
	if err := sh.Follow(h.ctx, from, nil); err != nil {
		return nil, nil, errors.Join(err, sh.Close())
	}
	return sh, d, nil
}

// hold adds a batch to those in memory, and drops the oldest ones beyond what may be held, with the
// texts of selections. Under mu.
func (h *Hub) hold(b *batch) {
	h.batches, h.held = append(h.batches, b), h.held+b.cost()
	cold := max(0, len(h.batches)-warmBatches)
	if cold > 0 {
		h.batches[cold-1].dropSelections()
	}
	kept := 0
	for _, b := range h.batches[cold:] {
		kept += int(b.kept.Load())
	}
	drop := 0
	for h.held+kept > h.o.Retain && drop < len(h.batches)-1 {
		h.held -= h.batches[drop].cost()
		kept -= h.batches[drop].dropSelections()
		drop++
	}
	if drop > 0 {
		h.floor = h.batches[drop-1].head()
	}
	clear(h.batches[:drop])
	h.batches = h.batches[drop:]
}

// retire reports that the follower may end: no reader is there. From then on it answers nothing: a
// reader that comes before its end waits for that, and starts another.
func (h *Hub) retire() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.readers.taken > 0 {
		return false
	}
	h.ready = false
	return true
}
