package journal

import (
	"context"
	"errors"
	"fmt"
	"io"

	"posttrade/matcher"
	"posttrade/ring"
)

// Engine is what a shadow needs of an engine; *matcher.Engine implements it.
//
//   - ReplayBatch decides the commands in order and writes their events to out. On an error it
//     returns the index of the command that it has refused.
//   - AppliedSeq is the inputSeq of the last command decided, 0 at genesis.
//   - WriteSnapshot writes the state in the format that Rebuild.Engine reads.
type Engine interface {
	ReplayBatch(batch []matcher.Command, out *matcher.Outlet) (int, error)
	AppliedSeq() uint64
	WriteSnapshot(w io.Writer) error
	Close() error
}

// Views is what a shadow needs of the read views: an image of everything that
// the engine's snapshot does not hold, built from the same events.
type Views interface {
	Observer
	Write(w io.Writer) error
	Close() error
}

// Rebuild says how to make a shadow. The functions are called again for every snapshot that is
// tried.
type Rebuild struct {
	// Engine makes an engine at its genesis (state nil) or from a snapshot's state.
	Engine func(state io.Reader) (Engine, error)
	// Views makes the views at their genesis (image nil) or from an image. nil: no views images.
	Views func(image io.Reader) (Views, error)
}

// Shadow is a second engine that follows the durable history beside the running one. It gives again
// everything that the history decided: snapshots, the audit report and the arrival prices are made
// with one. The matcher never stops for it and does not know of it.
//
// A Shadow belongs to one goroutine. It holds the memory of a whole engine until Close.
type Shadow struct {
	j      *Journal
	engine Engine
	views  Views // nil: none wanted
	out    matcher.Outlet
	window []matcher.Event // out's slots, unless a command has needed more
	ids    ClientIDs       // of the block being replayed
	id     []byte          // of the command that is passing by
	breath ring.Breather   // of the Follow under way

	ahead []aheadPiece // what a short step has read beyond its end

	viewer *viewer // observes for the views; nil: the shadow's own goroutine does

	fn  func([]matcher.Event) error // of the Follow under way, may be nil
	err error                       // of fn: events are lost, so the shadow cannot be used any more
}

// shadowEvents is the window through which a shadow's events pass: 16 KiB, so that they are still
// in the nearest cache when they are read, and the shadow yields often.
const shadowEvents = 128

// NewShadow returns a shadow that stands at the newest usable snapshot at or before a sequence, or
// at genesis. Of a snapshot only the engine's state is read. A snapshot that is damaged or refused
// by engine is logged, and the next older one is used. engine makes an engine at its genesis (state
// nil) or from a state.
//
// Cost: the memory of an engine, and the time that it takes to read a state. It replays nothing
// yet.
func NewShadow(j *Journal, engine func(state io.Reader) (Engine, error),
	before uint64) (*Shadow, error) {
	sh, _, err := newShadow(j, Rebuild{Engine: engine}, before, j.report)
	return sh, err
}

// newShadow is NewShadow with views, if rebuild has them. A snapshot whose views cannot be restored
// counts as damaged: the image is a function of all events.
func newShadow(j *Journal, rebuild Rebuild, before uint64,
	report func(error)) (*Shadow, Snapshot, error) {
	sh := shadowOf(j)
	base, err := j.restore(before, rebuild.Views != nil, report, sh.restorer(rebuild))
	switch {
	case err == nil:
		return sh, base, nil
	case !errors.Is(err, ErrNoSnapshot):
		return nil, Snapshot{}, err
	}
	if err := sh.restore(rebuild, nil, nil); err != nil {
		return nil, Snapshot{}, fmt.Errorf("journal: shadow: %w", err)
	}
	return sh, Snapshot{}, nil
}

// restorer makes the shadow stand at a snapshot. A state that says another sequence than its
// manifest is refused, and the engine made from it closed.
func (sh *Shadow) restorer(rebuild Rebuild) func(s Snapshot, state, image io.Reader) error {
	return func(s Snapshot, state, image io.Reader) error {
		if rebuild.Views != nil && image == nil {
			return fmt.Errorf("no views image: %w", ErrSnapshot)
		}
		if err := sh.restore(rebuild, state, image); err != nil {
			return err
		}
		if at := sh.engine.AppliedSeq(); at != s.InputSeq {
			return errors.Join(fmt.Errorf("state is at inputSeq=%d: %w", at, ErrSnapshot), sh.Close())
		}
		return nil
	}
}

// shadowOf is a shadow without an engine: restore gives it one before anything else is called.
func shadowOf(j *Journal) *Shadow {
	sh := &Shadow{j: j, window: make([]matcher.Event, shadowEvents)}
	sh.out.More = func(*matcher.Outlet) { sh.pass() }
	sh.look(sh.window)
	return sh
}

// look makes slots the window. The number of slots is a power of two.
func (sh *Shadow) look(slots []matcher.Event) {
	sh.out.Slots, sh.out.Mask, sh.out.Limit = slots, int64(len(slots)-1), int64(len(slots))
}

// restore makes engine and views, from genesis when state and image are nil.
func (sh *Shadow) restore(rebuild Rebuild, state, image io.Reader) (err error) {
	if sh.engine, err = rebuild.Engine(state); err != nil {
		return err
	}
	if rebuild.Views != nil {
		if sh.views, err = rebuild.Views(image); err != nil {
			return errors.Join(err, sh.engine.Close())
		}
	}
	return nil
}

// Engine is the shadow's engine, and Views are its views, nil when it has none. Between two calls
// of Follow they are as after the last command replayed. Only Follow may change them.
func (sh *Shadow) Engine() Engine { return sh.engine }

// Views is described at Engine.
func (sh *Shadow) Views() Views { return sh.views }

// Applied is the last command that the shadow has replayed, 0 for none.
func (sh *Shadow) Applied() uint64 { return sh.engine.AppliedSeq() }

// Follow replays every command after Applied up to and including inputSeq to, or the durable head
// as it is at the call if that comes first, and gives the resulting events to fn: the events of
// whole commands, in order, none left out, in memory that fn may use only until it returns. With fn
// nil the commands are only replayed.
//
// When ctx ends, the shadow stands behind the last command whose events fn has had, and another
// Follow continues from there. After an error of fn itself the shadow cannot continue: the same
// error is returned from then on.
func (sh *Shadow) Follow(ctx context.Context, to uint64,
	fn func(events []matcher.Event) error) error {
	if sh.err != nil {
		return sh.err
	}
	from := sh.Applied() + 1
	if from > to {
		return ctx.Err()
	}
	sh.fn, sh.breath = fn, ring.NewBreather()
	defer func() { sh.fn = nil }()
	if to-from < shortStep {
		return sh.step(ctx, from, to)
	}
	sh.ahead = nil
	return sh.j.ReplayTo(ctx, from, to, sh.take)
}

// take replays commands that lie side by side, and hands on their last events before it returns,
// unless a viewer has the ids of the block. An error of the engine is final: every further Follow
// returns it.
func (sh *Shadow) take(cmds []matcher.Command, ids ClientIDs) error {
	if sh.viewer != nil {
		sh.viewer.block(cmds, ids)
	}
	sh.ids = ids
	n, err := sh.engine.ReplayBatch(cmds, &sh.out)
	if err != nil {
		sh.err = fmt.Errorf("journal: shadow inputSeq=%d: %w", cmds[n].InputSeq, err)
		return sh.err
	}
	if sh.viewer == nil {
		sh.pass() // ids hold only until take returns
	}
	return sh.err
}

// ClientID is the client order id of a command whose events fn of a Follow gets, nil for none. fn
// asks for the commands in order, and may use the id until it returns. Only a shadow without views
// has them.
func (sh *Shadow) ClientID(inputSeq uint64) []byte { return sh.ids.Of(inputSeq) }

// pass hands on the whole commands in the window. It makes room behind the rest, which is the
// beginning of the command being decided. A command that fills the window alone gets a window of
// twice the size; the next command that does not gets the old one.
func (sh *Shadow) pass() {
	sh.breath.Breathe()
	o := &sh.out
	whole := sh.whole()
	if whole == 0 && o.Next == int64(len(o.Slots)) {
		sh.look(append(make([]matcher.Event, 0, 2*len(o.Slots)), o.Slots...)[:2*len(o.Slots)])
		return
	}
	rest := o.Slots[whole:o.Next]
	if sh.viewer != nil {
		sh.viewer.hand(o.Slots, whole)
		sh.look(sh.viewer.next(len(rest)))
	} else {
		sh.deliver(o.Slots[:whole])
		if len(rest) < len(sh.window) {
			sh.look(sh.window)
		}
	}
	o.Next = int64(copy(o.Slots, rest))
}

// whole is the number of events in the window that are those of whole commands.
func (sh *Shadow) whole() int64 {
	n := sh.out.Next
	for n > 0 && sh.out.Slots[n-1].Flags&matcher.EventLast == 0 {
		n--
	}
	return n
}

// deliver gives events to fn and to the views, if they are set. The views read the ids in order,
// which uses them up: that is why only a shadow without views has ClientID.
func (sh *Shadow) deliver(events []matcher.Event) {
	if len(events) == 0 || sh.err != nil {
		return
	}
	if sh.views != nil {
		for i := range events {
			if events[i].Flags&matcher.EventFirst != 0 {
				sh.id = sh.ids.Of(events[i].InputSeq)
			}
			sh.views.Observe(&events[i], sh.id)
		}
	}
	if sh.fn != nil {
		sh.err = sh.fn(events)
	}
}

// Close frees the engine and the views.
func (sh *Shadow) Close() error {
	err := sh.engine.Close()
	if sh.views != nil {
		err = errors.Join(err, sh.views.Close())
	}
	return err
}
