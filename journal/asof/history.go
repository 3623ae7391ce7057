package asof

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"posttrade/blotter"
	"posttrade/journal"
	"posttrade/matcher"
)

// Errors of a History.
var (
	// ErrBusy: every warm shadow is in use.
	ErrBusy = errors.New("too many moments are being looked at")
	// ErrClosed: the History is closed.
	ErrClosed = errors.New("the history is closed")
)

// BeyondError reports a sequence that is not durable yet.
type BeyondError struct{ InputSeq, Head uint64 }

func (e *BeyondError) Error() string {
	return fmt.Sprintf("sequence %d is beyond the durable head, %d", e.InputSeq, e.Head)
}

// Defaults of Options.
const (
	MaxWarm         = 2
	DefaultPatience = 5 * time.Second
	DefaultIdle     = 5 * time.Minute
)

// Options of New. The zero value is fine: no checkpoints.
type Options struct {
	Dir string // of the checkpoints; empty: none
	// Interval is the distance of checkpoints in a short history, in commands. 0: DefaultInterval.
	Interval    uint64
	Checkpoints int           // the most that are kept; 0 = DefaultCheckpoints
	Patience    time.Duration // how long At waits for a shadow; 0 = DefaultPatience
	Idle        time.Duration // a shadow not used for so long is closed; 0 = DefaultIdle
	Report      func(error)   // gets what went wrong with checkpoints; nil: not reported
}

// History shows the moments of one journal.
type History struct {
	j       *journal.Journal
	rebuild journal.Rebuild
	keep    *journal.Keep // nil: no checkpoints
	o       Options

	mu      sync.Mutex
	warm    []*place
	changed chan struct{} // closed, and made anew, when a place was released or has moved
	uses    uint64
	closed  bool
}

// place is a warm shadow, or one that is being made. History.mu guards it. While moving is set,
// shadow and at belong to the goroutine that has set it.
type place struct {
	shadow  *journal.Shadow // nil: none yet
	at      uint64
	readers int
	moving  bool
	used    uint64 // when last, as a number of uses
	since   time.Time
	bytes   int64
}

// New returns a History over an open journal with a genesis. Close it before the journal.
func New(j *journal.Journal, o Options) (*History, error) {
	text, created := j.Genesis()
	if !created {
		return nil, errors.New("asof: the journal has no genesis yet")
	}
	g, err := matcher.ParseGenesis(text)
	if err != nil {
		return nil, err
	}
	if o.Interval == 0 {
		o.Interval = DefaultInterval
	}
	if o.Checkpoints <= 0 {
		o.Checkpoints = DefaultCheckpoints
	}
	if o.Patience <= 0 {
		o.Patience = DefaultPatience
	}
	if o.Idle <= 0 {
		o.Idle = DefaultIdle
	}
	if o.Report == nil {
		o.Report = func(error) {}
	}
	h := &History{j: j, rebuild: Rebuild(g), o: o, changed: make(chan struct{})}
	if o.Dir != "" {
		if h.keep, err = journal.OpenKeep(j, o.Dir); err != nil {
			o.Report(err) // moments can be shown without checkpoints
		}
	}
	return h, nil
}

// Head is the durable head: the newest moment there is.
func (h *History) Head() uint64 {
	head, _ := h.j.Head()
	return head
}

// Journal is the journal whose moments these are.
func (h *History) Journal() *journal.Journal { return h.j }

// Moment is the state after one command. It does not change until Release.
type Moment struct {
	h *History
	p *place
}

// InputSeq is the moment's sequence.
func (m *Moment) InputSeq() uint64 { return m.p.at }

// Views are the read views at the moment. Any number of goroutines may read them.
func (m *Moment) Views() *blotter.Views { return m.p.shadow.Views().(Image).Views }

// Engine is the engine at the moment. The caller only reads, and does not keep it.
func (m *Moment) Engine() *matcher.Engine { return m.p.shadow.Engine().(*matcher.Engine) }

// Release gives the moment back. The views and the engine must not be used afterwards.
func (m *Moment) Release() {
	h := m.h
	h.mu.Lock()
	defer h.mu.Unlock()
	m.p.readers--
	m.p.since = time.Now()
	h.wake()
}

// wake tells those that wait to look again. The caller holds mu.
func (h *History) wake() {
	close(h.changed)
	h.changed = make(chan struct{})
}

// shortStep is a distance that is replayed without a thread of its own.
const shortStep = 4096

// At returns the moment after inputSeq; 0 is the genesis. A sequence beyond the durable head is a
// *BeyondError. At blocks while the moment is loaded, and returns ErrBusy when no shadow becomes
// free in time, and the error of ctx when ctx ends first: what has been replayed by then is kept.
func (h *History) At(ctx context.Context, inputSeq uint64) (*Moment, error) {
	if head := h.Head(); inputSeq > head {
		return nil, &BeyondError{inputSeq, head}
	}
	patience := time.NewTimer(h.o.Patience)
	defer patience.Stop()
	for {
		p, wait, err := h.claim(inputSeq)
		if err != nil {
			return nil, err
		}
		if p == nil {
			select {
			case <-wait:
				continue
			case <-patience.C:
				return nil, ErrBusy
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		if wait == nil {
			return &Moment{h, p}, nil // it stands there
		}
		if err := h.move(ctx, p, inputSeq); err != nil {
			return nil, err
		}
		return &Moment{h, p}, nil
	}
}

// claim finds the shadow for a moment. With p and without wait, the caller is a reader of p, which
// stands at the moment. With p and wait, the caller must move p there. Without p it must wait.
func (h *History) claim(inputSeq uint64) (p *place, wait chan struct{}, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, nil, ErrClosed
	}
	h.uses++
	for _, p := range h.warm {
		if !p.moving && p.at == inputSeq {
			p.readers++
			p.used = h.uses
			return p, nil, nil
		}
	}
	if p = h.choose(inputSeq); p != nil {
		p.moving, p.used = true, h.uses
	}
	return p, h.changed, nil
}

// choose picks a shadow that may be moved, nil for none: the nearest one before the moment when no
// snapshot is nearer, else a new one, else the one used least recently. The caller holds mu.
func (h *History) choose(inputSeq uint64) (best *place) {
	var oldest *place
	for _, p := range h.warm {
		if p.moving || p.readers > 0 {
			continue
		}
		if p.at < inputSeq && h.near(p.at, inputSeq) && (best == nil || p.at > best.at) {
			best = p
		}
		if oldest == nil || p.used < oldest.used {
			oldest = p
		}
	}
	switch {
	case best != nil:
	case len(h.warm) < MaxWarm:
		best = &place{}
		h.warm = append(h.warm, best)
	default:
		best = oldest
	}
	return best
}

// near reports that a shadow at a sequence reaches a moment sooner than a new one. A restore costs
// about as much as the replay of a hundred thousand commands.
func (h *History) near(at, inputSeq uint64) bool {
	const restore = 100_000
	return at+restore >= inputSeq || at+restore >= h.base(inputSeq)
}

// base is the newest snapshot or checkpoint at or before a sequence, 0 for none.
func (h *History) base(inputSeq uint64) (base uint64) {
	list, _ := h.j.Snapshots() // a damaged manifest is no base
	for _, s := range list {
		if s.InputSeq <= inputSeq {
			base = max(base, s.InputSeq)
		}
	}
	if h.keep != nil {
		for _, at := range h.keep.Sequences() {
			if at <= inputSeq {
				base = max(base, at)
			}
		}
	}
	return base
}

// move brings a claimed shadow to a moment and makes the caller its reader.
func (h *History) move(ctx context.Context, p *place, inputSeq uint64) error {
	var fresh bool
	step := func() (err error) {
		fresh, err = h.advance(ctx, p, inputSeq)
		return err
	}
	var err error
	if p.shadow != nil && p.at < inputSeq && inputSeq-p.at <= shortStep {
		err = step()
	} else {
		err = journal.Politely(journal.Background, step)
	}
	bytes := int64(0)
	if fresh && p.shadow != nil {
		bytes = resident(p.shadow)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	p.moving, p.since = false, time.Now()
	if fresh {
		p.bytes = bytes
	}
	if p.shadow == nil {
		h.warm = slices.DeleteFunc(h.warm, func(q *place) bool { return q == p })
	} else if err == nil {
		p.readers++
	}
	h.wake()
	return err
}

// advance makes the shadow of p anew if a new one reaches inputSeq sooner, and replays up to it.
func (h *History) advance(ctx context.Context, p *place, inputSeq uint64) (fresh bool, err error) {
	if p.shadow != nil && (p.at > inputSeq || !h.near(p.at, inputSeq)) {
		err := p.shadow.Close()
		p.shadow, p.at, fresh = nil, 0, true
		if err != nil {
			return fresh, err
		}
	}
	if p.shadow == nil {
		fresh = true
		if p.shadow, err = journal.OpenShadow(h.j, h.rebuild, inputSeq, h.keep); err != nil {
			return fresh, err
		}
		p.shadow.Views().(Image).SetWake(func() {}) // a reader never has to ask the observer
	}
	err = p.shadow.Follow(ctx, inputSeq, nil)
	p.at = p.shadow.Applied()
	if err == nil || ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return fresh, err // the shadow goes on from here
	}
	err = errors.Join(err, p.shadow.Close())
	p.shadow = nil
	return true, err
}

// Shadow returns a shadow of the caller's own, with views, that stands at inputSeq and does not
// count among the warm ones. The caller closes it, and bounds how many there are.
func (h *History) Shadow(ctx context.Context, inputSeq uint64) (*journal.Shadow, error) {
	return h.shadow(ctx, inputSeq, h.rebuild)
}

// Bare is Shadow without views: for a caller that reads the events and client order ids behind
// inputSeq.
func (h *History) Bare(ctx context.Context, inputSeq uint64) (*journal.Shadow, error) {
	return h.shadow(ctx, inputSeq, journal.Rebuild{Engine: h.rebuild.Engine})
}

func (h *History) shadow(ctx context.Context, inputSeq uint64,
	rebuild journal.Rebuild) (*journal.Shadow, error) {
	if head := h.Head(); inputSeq > head {
		return nil, &BeyondError{inputSeq, head}
	}
	sh, err := journal.OpenShadow(h.j, rebuild, inputSeq, h.keep)
	if err != nil {
		return nil, err
	}
	if err := sh.Follow(ctx, inputSeq, nil); err != nil {
		return nil, errors.Join(err, sh.Close())
	}
	return sh, nil
}

// resident is the memory of a shadow.
func resident(sh *journal.Shadow) int64 {
	return sh.Engine().(*matcher.Engine).Resident() + sh.Views().(Image).Resident()
}

// Bytes is the memory of the warm shadows: the svc_asof_bytes of the metrics. A shadow that is
// being moved counts as it was before.
func (h *History) Bytes() (n int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range h.warm {
		if !p.moving && p.shadow != nil {
			p.bytes = resident(p.shadow)
		}
		n += p.bytes
	}
	return n
}

// Warm is the number of warm shadows.
func (h *History) Warm() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.warm)
}

// closeUnused closes the shadows that were not used for a while; all of them when the History is
// closed. Those in use are left, and wait tells when one of them was given back.
func (h *History) closeUnused(now time.Time) (left int, wait <-chan struct{}, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all []error
	h.warm = slices.DeleteFunc(h.warm, func(p *place) bool {
		if p.moving || p.readers > 0 || !h.closed && now.Sub(p.since) < h.o.Idle {
			return false
		}
		all = append(all, p.shadow.Close())
		return true
	})
	return len(h.warm), h.changed, errors.Join(all...)
}

// Close frees the shadows, and waits for those that are in use.
func (h *History) Close() error {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	var all []error
	for {
		left, wait, err := h.closeUnused(time.Now())
		if all = append(all, err); left == 0 {
			return errors.Join(all...)
		}
		<-wait
	}
}

// errEnough ends a walk through the fills.
var errEnough = errors.New("enough")

// Fills returns up to limit of the fills executed by the moment, with a trade sequence above after
// and for which want is true, in their order. It reads the journal's fills, as many as it takes, at
// a low priority.
func (m *Moment) Fills(ctx context.Context, after uint64, limit int,
	want func(*matcher.Fill) bool) (fills []matcher.Fill, err error) {
	if after == ^uint64(0) {
		return nil, nil
	}
	at := m.InputSeq()
	err = journal.Politely(journal.Background, func() error {
		return m.h.j.Fills(after+1, func(block []matcher.Fill) error {
			for i := range block {
				f := &block[i]
				if f.InputSeq > at || len(fills) == limit {
					return errEnough
				}
				if want(f) {
					fills = append(fills, *f)
				}
			}
			return ctx.Err()
		})
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return fills, err
}
