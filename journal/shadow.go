package journal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"posttrade/matcher"
)

// Engine is what the shadow needs of an engine: *matcher.Engine is one.
type Engine interface {
	ReplayBatch(batch []matcher.Command, out *matcher.Outlet) (int, error)
	AppliedSeq() uint64
	WriteSnapshot(w io.Writer) error
	Close() error
}

// Views is what the shadow needs of the read views: an image of everything that
// the engine's snapshot does not hold, built from the same events.
type Views interface {
	Observer
	Write(w io.Writer) error
	Close() error
}

// Rebuild says how to make a shadow.
type Rebuild struct {
	// Engine makes an engine at its genesis (state nil) or from a snapshot's state.
	Engine func(state io.Reader) (Engine, error)
	// Views makes the views at their genesis (image nil) or from an image. nil: no views images.
	Views func(image io.Reader) (Views, error)
}

// Snapshotter takes snapshots beside the running engine: a second engine starts
// from the newest snapshot, or from genesis, replays what is durable, and is
// written out. The matcher never stops. The shadow lives only while a snapshot
// is taken, so it costs no memory otherwise.
type Snapshotter struct {
	j        *Journal
	rebuild  Rebuild
	interval uint64

	mu    sync.Mutex // one snapshot at a time
	last  atomic.Uint64
	taken atomic.Uint64
	fails atomic.Uint64
}

// NewSnapshotter takes a snapshot whenever interval commands have become
// durable since the last; 0 = only on demand.
func NewSnapshotter(j *Journal, rebuild Rebuild, interval uint64) (*Snapshotter, error) {
	s := &Snapshotter{j: j, rebuild: rebuild, interval: interval}
	list, _, err := listSnapshots(j.db)
	if err != nil {
		return nil, err
	}
	if len(list) > 0 {
		s.last.Store(list[0].InputSeq)
	}
	return s, nil
}

// Last is the sequence of the newest snapshot, 0 for none; Taken and Failed
// count what this Snapshotter did. Any goroutine.
func (s *Snapshotter) Last() uint64 { return s.last.Load() }

// Taken is the number of snapshots written.
func (s *Snapshotter) Taken() uint64 { return s.taken.Load() }

// Failed is the number of attempts that ended in an error.
func (s *Snapshotter) Failed() uint64 { return s.fails.Load() }

// snapshotPoll is how often Run looks at the durable head.
const snapshotPoll = time.Second

// Run takes snapshots as they fall due until ctx ends. A failure is logged and
// counted, and tried again when as many commands have come again.
func (s *Snapshotter) Run(ctx context.Context) {
	if s.interval == 0 {
		<-ctx.Done()
		return
	}
	t := time.NewTicker(snapshotPoll)
	defer t.Stop()
	next := s.last.Load() + s.interval
	for {
		if s.j.Durable() >= next {
			if _, err := s.Take(ctx); err != nil && ctx.Err() == nil {
				s.j.o.Logger.Errorf("journal: snapshot: %v", err)
			}
			next = s.j.Durable() + s.interval
		}
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}

// Take writes a snapshot at the durable head and returns it. If the newest one
// is already there, that one.
func (s *Snapshotter) Take(ctx context.Context) (Snapshot, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var snap Snapshot
	err := politely(func() (err error) {
		snap, err = s.take(ctx)
		return err
	})
	if err != nil {
		s.fails.Add(1)
		return snap, err
	}
	s.last.Store(snap.InputSeq)
	s.taken.Add(1)
	return snap, nil
}

func (s *Snapshotter) take(ctx context.Context) (_ Snapshot, err error) {
	sh, base, err := newShadow(s.j, s.rebuild, func(err error) { s.j.o.Logger.Errorf("%v", err) })
	if err != nil {
		return Snapshot{}, err
	}
	defer func() { err = errors.Join(err, sh.close()) }()
	target, _ := s.j.Head()
	if base.InputSeq == target && target > 0 && (base.Views != nil || s.rebuild.Views == nil) {
		return base, nil
	}
	if err := sh.follow(ctx, s.j, target); err != nil {
		return Snapshot{}, err
	}
	var views func(io.Writer) error
	if sh.views != nil {
		views = sh.views.Write
	}
	return s.j.WriteSnapshot(target, sh.engine.WriteSnapshot, views)
}

// shadow is a second engine and its views.
type shadow struct {
	engine Engine
	views  Views // nil: none wanted
	out    *matcher.Outlet
	ids    ClientIDs // of the block being replayed
	id     []byte    // of the command whose events are passing by
}

// shadowEvents is the window through which the shadow's events pass.
const shadowEvents = 1024

// newShadow restores the newest usable snapshot, or starts at genesis. Views
// that cannot be restored make the whole shadow start at genesis: their image
// is a function of all events.
func newShadow(j *Journal, rebuild Rebuild, report func(error)) (*shadow, Snapshot, error) {
	sh := &shadow{}
	sh.out = matcher.NewOutlet(shadowEvents, sh.drain)
	base, err := j.Restore(report, func(s Snapshot, state, image io.Reader) error {
		if rebuild.Views != nil && image == nil {
			return fmt.Errorf("no views image: %w", ErrSnapshot)
		}
		if err := sh.restore(rebuild, state, image); err != nil {
			return err
		}
		if at := sh.engine.AppliedSeq(); at != s.InputSeq {
			return errors.Join(fmt.Errorf("state is at inputSeq=%d: %w", at, ErrSnapshot), sh.close())
		}
		return nil
	})
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

// restore makes engine and views, from genesis when state and image are nil.
func (sh *shadow) restore(rebuild Rebuild, state, image io.Reader) (err error) {
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

func (sh *shadow) drain(events []matcher.Event) {
	if sh.views == nil {
		return
	}
	for i := range events {
		if events[i].Flags&matcher.EventFirst != 0 {
			sh.id = sh.ids.Of(events[i].InputSeq)
		}
		sh.views.Observe(&events[i], sh.id)
	}
}

// follow replays up to target.
func (sh *shadow) follow(ctx context.Context, j *Journal, target uint64) error {
	from := sh.engine.AppliedSeq() + 1
	if from > target {
		return nil
	}
	return j.ReplayTo(ctx, from, target, func(cmds []matcher.Command, ids ClientIDs) error {
		sh.ids = ids
		n, err := sh.engine.ReplayBatch(cmds, sh.out)
		if err != nil {
			return fmt.Errorf("journal: shadow inputSeq=%d: %w", cmds[n].InputSeq, err)
		}
		sh.out.Flush() // the ids are only this block's
		return nil
	})
}

func (sh *shadow) close() error {
	err := sh.engine.Close()
	if sh.views != nil {
		err = errors.Join(err, sh.views.Close())
	}
	return err
}
