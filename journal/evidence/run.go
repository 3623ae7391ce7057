package evidence

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"posttrade/journal"
)

// Run keeps the log until ctx ends or the log stops. Then it signs what has become stable, for at
// most lastPatience. The journal must stay open until Run has returned.
//
// It runs on a thread of low priority and returns nil: failures are tried again and shown in State.
// One call for each Log.
func (l *Log) Run(ctx context.Context) error {
	return journal.Politely(journal.Background, func() error { return l.run(ctx) })
}

// How long the last head at a stop may take, the witnesses included, and the pause before a failure
// is tried again.
const (
	lastPatience = 5 * time.Second
	retryPause   = time.Second
)

// run is Run on its thread. A contradiction ends it for good, because signing on would attest a
// history that the files deny. Any other error, such as a full disk, is tried again from the
// beginning of live.
func (l *Log) run(ctx context.Context) error {
	if len(l.o.Witnesses) > 0 {
		defer l.startWitnesses()()
	}
	if err := l.State().Err; err != nil {
		l.o.Alarm(err)
		return nil
	}
	for {
		err := l.live(ctx)
		switch {
		case isContradiction(err):
			l.Stop(err)
			return nil
		case err == nil, ctx.Err() != nil && errors.Is(err, ctx.Err()):
			return nil
		}
		l.change(func(s *State) { s.Failed = err; s.late() })
		l.o.Alarm(err)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(retryPause):
		}
	}
}

// startWitnesses starts the goroutine that talks to the witnesses; end lets it finish the last
// head, for at most lastPatience, and waits for it. It has a context of its own: the end of Run's
// must not cut the last head off.
func (l *Log) startWitnesses() (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	l.candidates = make(chan candidate)
	var talking sync.WaitGroup
	talking.Go(func() { l.witness(ctx) })
	return func() {
		late := time.AfterFunc(lastPatience, cancel)
		close(l.candidates)
		talking.Wait()
		late.Stop()
		cancel()
	}
}

// live follows the journal until ctx ends or something fails.
//
// Where the log could be resumed from its files (whole is false), a second goroutine compares the
// whole history beside it. It ends before live returns.
func (l *Log) live(ctx context.Context) (err error) {
	if err := l.notAhead(); err != nil {
		return err
	}
	l.foreign = l.Checkpoint() != nil && l.verifyNewest() != nil
	f, whole, err := l.resume(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	l.change(func(s *State) { s.Failed = nil })
	if !whole && !l.State().Checked {
		checking, cancel := context.WithCancel(ctx)
		var ended sync.WaitGroup
		ended.Go(func() { l.recheck(checking) })
		defer ended.Wait()
		defer cancel()
	}
	tick := time.NewTicker(l.o.Interval)
	defer tick.Stop()
	for ctx.Err() == nil {
		err := l.step(ctx, f)
		if err != nil && ctx.Err() == nil {
			return err
		}
		if err == nil && whole { // the step has compared everything
			l.change(func(s *State) { s.Checked = true })
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
	return l.lastStep(f)
}

// notAhead refuses a published head that covers more than the journal of a single node has. A
// member may get its last commands again from the others.
//
// Such a head means that the journal has lost commands that were signed, or is another one.
func (l *Log) notAhead() error {
	signed := l.published().Head
	if head, _ := l.j.Head(); l.o.Leads == nil && signed > head {
		return fmt.Errorf("evidence: file=%s covers sequence %d, the journal ends at %d: %w",
			l.dir.path(checkpointsName), signed, head, ErrContradiction)
	}
	return nil
}

// lastStep signs what a stop leaves behind.
//
// It has a context of its own, because that of Run has ended. What does not get done in time is
// signed after the next start.
func (l *Log) lastStep(f *follower) error {
	ctx, cancel := context.WithTimeout(context.Background(), lastPatience)
	defer cancel()
	l.patient = true
	head, _ := l.j.Head()
	if err := l.j.WaitStable(ctx, head); err != nil {
		return nil // the journal has failed: it says so itself
	}
	if err := l.step(ctx, f); err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}

// stepCommands is how far a step goes before the time for a new head is looked at. So a log that
// catches up with a long history publishes heads on the way.
const stepCommands = 1 << 18

// step follows the journal to its stable head and signs.
//
// A log that was stopped meanwhile returns the reason.
func (l *Log) step(ctx context.Context, f *follower) error {
	begun := time.Now()
	for {
		if err := l.State().Err; err != nil {
			return err
		}
		stable, _ := l.j.StableHead()
		l.behind(stable)
		to := min(stable, f.leaf.Head()+stepCommands)
		if err := f.follow(ctx, to); err != nil {
			return err
		}
		l.change(func(s *State) { s.Size, s.Head = f.tree.Size, f.leaf.Head() })
		if edge := l.edge.Load(); edge == nil || edge.Size != f.tree.Size {
			l.edge.Store(f.tree.Clone())
		}
		if to == stable {
			return l.sign(f)
		}
		if time.Since(begun) >= l.o.Interval {
			if err := l.sign(f); err != nil {
				return err
			}
			begun = time.Now()
		}
	}
}

// behind notes since when there is something to sign.
func (l *Log) behind(stable uint64) {
	l.change(func(s *State) {
		if stable > s.Signed {
			s.late()
		}
	})
}

// recheck compares the whole history with the files once, at the lowest priority.
//
// A resumed log has read its leaves from the tiles, so nothing else compares those with the
// journal.
func (l *Log) recheck(ctx context.Context) {
	err := journal.Politely(journal.Bulk, func() error { return l.recheckAll(ctx) })
	switch {
	case ctx.Err() != nil:
	case err == nil:
		l.change(func(s *State) { s.Checked = true })
	case isContradiction(err):
		l.Stop(err)
	default:
		l.o.Alarm(err)
	}
}

// recheckAll builds the tree from the genesis to the published head, and compares instead of
// writing. Cost: a replay of the whole history.
func (l *Log) recheckAll(ctx context.Context) (err error) {
	f, err := l.newFollower(l.compareTile)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	to := l.published().Head
	if err := f.genesis(); err != nil {
		return err
	}
	f.last = 0 // the partial tiles are compared when they are made
	if f.shadow, err = journal.NewShadow(l.j, l.o.Engine, 0); err != nil {
		return err
	}
	f.leaf.StartAt(0)
	return f.follow(ctx, to)
}
