package asof

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"posttrade/journal"
	"posttrade/matcher"
)

// Errors of a History.
//
// Callers test them with errors.Is. HTTP answers ErrBusy with 503.
var (
	// ErrBusy: every warm shadow is in use.
	ErrBusy = errors.New("too many moments are being looked at")
	// ErrClosed: the History is closed.
	ErrClosed = errors.New("the history is closed")
)

// BeyondError reports a sequence that is not durable yet. Head is the newest one that can be asked
// for. Test it with errors.As.
type BeyondError struct{ InputSeq, Head uint64 }

func (e *BeyondError) Error() string {
	return fmt.Sprintf("sequence %d is beyond the durable head, %d", e.InputSeq, e.Head)
}

// Defaults of Options.
const (
	// MaxWarm is how many shadows are kept warm: each has the memory of a whole engine and its views.
	// With two, one reader can step through a part of the history while another looks elsewhere.
	MaxWarm = 2
	// DefaultPatience is how long a caller waits for a shadow before it gets ErrBusy.
	DefaultPatience = 5 * time.Second
	// DefaultIdle is long enough for a person to look at a moment and then ask for the next.
	DefaultIdle = 5 * time.Minute
)

// Options of New. The zero value is fine: no checkpoints.
type Options struct {
	// Dir is the folder of the checkpoints. Empty: there are none, and a moment of a long history may
	// take the replay of all of it.
	Dir string
	// Interval is the distance of checkpoints in a short history, in commands. 0: DefaultInterval.
	Interval    uint64
	Checkpoints int // the most that are kept; 0 = DefaultCheckpoints
	// Patience and Idle of 0 are the defaults. A negative value is the default too.
	Patience time.Duration // how long At waits for a shadow; 0 = DefaultPatience
	Idle     time.Duration // a shadow not used for so long is closed; 0 = DefaultIdle
	Report   func(error)   // gets what went wrong with checkpoints; nil: not reported
}

// History shows the moments of one journal.
//
// A moment is claimed in two steps. claim, under mu, finds a warmShadow and either makes the caller
// its reader or gives it to the caller to move. The move itself, which may replay millions of
// commands, holds no lock: the warmShadow is the caller's until move says that it stands.
type History struct {
	// j is open for as long as the History is; the caller closes it afterwards.
	j *journal.Journal
	// rebuild makes engines with views, of the types that Image and matcher.Engine say.
	rebuild     journal.Rebuild
	checkpoints *journal.SnapshotFolder // nil: no checkpoints
	o           Options

	// mu guards everything below, and the fields of each warmShadow.
	mu sync.Mutex
	// warm has at most MaxWarm shadows, in no order.
	warm    []*warmShadow
	changed chan struct{} // closed, and made anew, when a warmShadow was released or has moved
	// uses counts claims: it is the clock by which the shadow used least recently is found.
	uses uint64
	// closed: claim gives nothing more, and closeUnused closes whatever is free.
	closed bool
}

// New returns a History over an open journal with a genesis. Close it before the journal.
//
// A folder of checkpoints that cannot be read is reported through o.Report and left out: moments
// can be shown without one. New itself replays nothing. Run makes checkpoints and closes unused
// shadows; without Run they stay until Close.
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
		if h.checkpoints, err = journal.OpenSnapshotFolder(j, o.Dir); err != nil {
			o.Report(err) // moments can be shown without checkpoints
		}
	}
	return h, nil
}

// Head is the durable head: the newest moment there is. It may block until the journal's store has
// what was answered before the call (journal.Head).
func (h *History) Head() uint64 {
	head, _ := h.j.Head()
	return head
}

// Journal is the journal whose moments these are.
func (h *History) Journal() *journal.Journal { return h.j }

// wake tells those that wait to look again. The caller holds mu.
func (h *History) wake() {
	close(h.changed)
	h.changed = make(chan struct{})
}

// At returns the moment after inputSeq; 0 is the genesis. A sequence beyond the durable head is a
// *BeyondError. At blocks while the moment is loaded, and returns ErrBusy when no shadow becomes
// free in time, and the error of ctx when ctx ends first: what has been replayed by then is kept.
//
// The caller releases the moment. Cost: nothing when a shadow stands there; otherwise the replay
// from the nearest shadow or snapshot, at low priority. Any goroutine.
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

// Shadow returns a shadow of the caller's own, with views, that stands at inputSeq and does not
// count among the warm ones. The caller closes it, and bounds how many there are.
//
// A sequence beyond the head is a *BeyondError. It blocks for the restore and the replay, at the
// caller's own priority.
func (h *History) Shadow(ctx context.Context, inputSeq uint64) (*journal.Shadow, error) {
	return h.shadow(ctx, inputSeq, h.rebuild)
}

// Bare is Shadow without views: for a caller that reads the events and client order ids behind
// inputSeq.
//
// It costs less memory and time than Shadow; a shadow with views has no client order ids to read.
func (h *History) Bare(ctx context.Context, inputSeq uint64) (*journal.Shadow, error) {
	return h.shadow(ctx, inputSeq, journal.Rebuild{Engine: h.rebuild.Engine})
}

// shadow opens a shadow at the nearest snapshot and replays the rest. It does not touch the warm
// ones.
func (h *History) shadow(ctx context.Context, inputSeq uint64,
	rebuild journal.Rebuild) (*journal.Shadow, error) {
	if head := h.Head(); inputSeq > head {
		return nil, &BeyondError{inputSeq, head}
	}
	sh, err := journal.OpenShadow(h.j, rebuild, inputSeq, h.checkpoints)
	if err != nil {
		return nil, err
	}
	if err := sh.Follow(ctx, inputSeq, nil); err != nil {
		return nil, errors.Join(err, sh.Close())
	}
	return sh, nil
}

// Close frees the shadows, and waits for those that are in use.
//
// Callers that wait in At get ErrClosed at the next release; those that hold a Moment keep it.
// Close returns the errors of all shadows, joined.
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
