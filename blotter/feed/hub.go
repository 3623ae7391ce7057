package feed

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
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

// bookRequest asks the follower for books as of its position. The reader makes it; the follower
// fills it in and closes done. ok stays false when the follower ended before, or ctx.
type bookRequest struct {
	ctx   context.Context // of the caller, which does not wait behind its end
	books *Securities
	texts [][]byte
	at    Position
	ok    bool
	done  chan struct{}
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

// places are what readers take of a bounded number. Guests leave half of it to the others.
type places struct{ most, taken, guests int }

// take takes a place, and reports whether there was one. give gives it back.
func (p *places) take(guest bool) bool {
	switch {
	case p.taken >= p.most, guest && p.guests >= (p.most+1)/2:
		return false
	case guest:
		p.guests++
	}
	p.taken++
	return true
}

func (p *places) give(guest bool) {
	if guest {
		p.guests--
	}
	p.taken--
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

// follower is the state of one follow. It belongs to the goroutine of run.
type follower struct {
	h     *Hub
	sh    *journal.Shadow
	d     *deriver
	build *batch
	at    Position // behind the last whole command
}

// follow opens a shadow some commands before the head, derives up to the head, and then goes on
// with it. Readers wait until it has reached the head once.
func (h *Hub) follow() (err error) {
	defer caught(&err)
	head, _ := h.o.Journal.Head()
	sh, d, err := h.openAt(head - min(head, h.o.Behind))
	if errors.Is(err, journal.ErrArchived) { // the newest snapshot and what follows it stay
		sh, d, err = h.openAt(head)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sh.Close()) }()
	f := &follower{h: h, sh: sh, d: d, at: After(sh.Applied())}
	f.build = &batch{first: sh.Applied() + 1}
	d.emit, d.ended = f.take, f.ended
	h.mu.Lock()
	h.floor, h.applied = f.at, f.at
	h.mu.Unlock()
	if err := f.catchUp(head); err != nil {
		return err
	}
	h.mu.Lock()
	h.ready = true
	h.wake()
	h.mu.Unlock()
	return f.live()
}

// caught turns a panic into an error: no event is worth the process.
func caught(err *error) {
	if cause := recover(); cause != nil {
		*err = fmt.Errorf("feed: panic: %v\n%s", cause, debug.Stack())
	}
}

// take formats an event.
func (f *follower) take(e *Event) { f.build.add(e, f.h.o.Render) }

// ended notes the end of a command, and closes the batch when it is long enough. So a batch holds
// whole commands, and may be as long as one command makes it.
func (f *follower) ended(inputSeq uint64, n uint32) {
	f.at = Position{InputSeq: inputSeq, N: n}
	f.build.last, f.build.end = inputSeq, n
	if len(f.build.text) >= batchBytes {
		f.publish()
	}
}

// publish gives the batch to the readers and begins the next one. A batch without commands is none;
// one without events is published too, because it moves the position.
func (f *follower) publish() {
	b, h := f.build, f.h
	if b.last < b.first {
		return
	}
	h.counts.events.Add(uint64(len(b.items)))
	h.mu.Lock()
	h.hold(b)
	h.applied = f.at
	h.wake()
	h.mu.Unlock()
	f.build = &batch{first: b.last + 1}
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

// catchUp derives everything up to a sequence that is durable, and publishes what is left. Nothing
// beyond it is read.
func (f *follower) catchUp(to uint64) error {
	for f.sh.Applied() < to {
		before := f.sh.Applied()
		if err := f.sh.Follow(f.h.ctx, to, nil); err != nil {
			return err
		}
		if f.sh.Applied() == before { // on a member the journal follows what was agreed
			if err := f.h.o.Journal.WaitHead(f.h.ctx, before+1); err != nil {
				return err
			}
		}
	}
	f.publish()
	return nil
}

// live follows the head as it moves, and answers the requests for books. It returns nil when no
// reader has been there for as long as the shadow lingers.
func (f *follower) live() error {
	durable := make(chan struct{}, 1)
	wanted := make(chan uint64, 1)
	ctx, cancel := context.WithCancel(f.h.ctx)
	var watching sync.WaitGroup
	watching.Go(func() { f.h.watch(ctx, wanted, durable) })
	defer func() { // a watch of an ended follower would wait for a command that may never come
		cancel()
		close(wanted)
		watching.Wait()
	}()
	tick := time.NewTicker(look)
	defer tick.Stop()
	idle := time.Now()
	for waiting := false; ; {
		if err := f.catchUp(f.h.o.Durable.Durable()); err != nil {
			return err
		}
		f.answer()
		if !waiting {
			wanted <- f.sh.Applied() + 1
			waiting = true
		}
		select {
		case <-durable:
			waiting = false
		case <-f.h.called:
		case now := <-tick.C:
			if all, _ := f.h.Readers(); all > 0 {
				idle = now
			} else if now.Sub(idle) > f.h.o.Lingers && f.h.retire() {
				return nil
			}
		case <-f.h.ctx.Done():
			return f.h.ctx.Err()
		}
	}
}

// watch waits for the sequences of wanted, one after the other, and tells durable. It is a
// goroutine of its own, because a wait for durability cannot be left for another request. It ends
// at most a look after ctx, when wanted is closed too.
func (h *Hub) watch(ctx context.Context, wanted <-chan uint64, durable chan<- struct{}) {
	for inputSeq := range wanted {
		for ctx.Err() == nil {
			begun := time.Now()
			if h.o.Durable.WaitDurable(inputSeq, look) == nil {
				break
			}
			if time.Since(begun) < look/2 { // a failed journal: nothing will come
				select {
				case <-time.After(look):
				case <-ctx.Done():
				}
			}
		}
		select {
		case durable <- struct{}{}:
		default:
		}
	}
}

// retire reports that the follower may end: no reader is there. The next reader starts another.
func (h *Hub) retire() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.readers.taken == 0
}

// answer gives the books that readers have asked for. Each book is formatted once, however many of
// them want it: they share its text. A request whose caller has gone costs nothing.
func (f *follower) answer() {
	f.h.mu.Lock()
	asked := f.h.asked
	f.h.asked = nil
	f.h.mu.Unlock()
	made := map[uint32][]byte{}
	for _, r := range asked {
		if r.ctx.Err() == nil {
			r.texts, r.at, r.ok = f.books(r.books, made), f.at, true
		}
		close(r.done)
	}
}

// books are the texts of the books of a set; made holds those that are formatted already, by
// security. Follower only, between two commands.
func (f *follower) books(s *Securities, made map[uint32][]byte) (texts [][]byte) {
	for id := range s.among(f.d.views.SecurityCount()) {
		text, ok := made[id]
		if !ok {
			text = appendFrame(nil, f.d.book(id), f.h.o.Render)
			made[id] = text
		}
		texts = append(texts, text)
	}
	return texts
}

// books asks the follower for books, a text each, and for its position. ErrFailed when there is no
// follower at the head, or when it ends before it has answered. The texts are shared: they must not
// be changed. Any goroutine.
func (h *Hub) books(ctx context.Context, s *Securities) (texts [][]byte, at Position, err error) {
	r := &bookRequest{ctx: ctx, books: s, done: make(chan struct{})}
	h.mu.Lock()
	if !h.ready {
		h.mu.Unlock()
		return nil, at, ErrFailed
	}
	h.asked = append(h.asked, r)
	h.mu.Unlock()
	select {
	case h.called <- struct{}{}:
	default:
	}
	select {
	case <-r.done:
	case <-ctx.Done():
		return nil, at, ctx.Err()
	}
	switch {
	case r.ok:
		return r.texts, r.at, nil
	case ctx.Err() != nil:
		return nil, at, ctx.Err()
	}
	return nil, at, ErrFailed
}
