package tca

import (
	"context"
	"errors"
	"fmt"
	"time"

	"posttrade/matcher"
	"posttrade/sidecars/pace"
)

// ErrClosed reports a Run after Close.
var ErrClosed = errors.New("closed")

const (
	// stepCommands is how many commands the shadow takes before follow looks at anything else.
	//
	// It bounds how late Run notices the end of its context, a damaged block or a due checkpoint.
	stepCommands = 8192

	// lockEvents is how many events are added while readers wait.
	lockEvents = 256

	// lastPause is the longest pause between two attempts to make a shadow, which reads a snapshot. It
	// does not depend on the database.
	lastPause = 5 * time.Second
)

// errHistory reports that the journal does not hold what the index was built from.
var errHistory = errors.New("the journal has another history")

// Run follows the durable head until ctx ends, then returns nil. It logs an error once, pauses, and
// tries again with a new shadow.
//
// It spends most of its time in the shadow engine: run it on a thread of low priority
// (journal.Politely).
//
// A second Run waits for the first. ErrClosed after Close. It ends its shadow before it returns.
func (t *TCA) Run(ctx context.Context) error {
	t.running.Lock()
	defer t.running.Unlock()
	if t.closed {
		return fmt.Errorf("tca: run: %w", ErrClosed)
	}
	failures := pace.Backoff{Most: lastPause}
	for ctx.Err() == nil {
		before := t.applied.Load()
		err := t.follow(ctx)
		if ctx.Err() != nil {
			break
		}
		t.follows.ring(err)
		if errors.Is(err, ErrDamaged) || errors.Is(err, errHistory) {
			t.damaged.Store(true)
		}
		if t.applied.Load() > before {
			failures.Reset()
		}
		pace.Sleep(ctx, failures.Next())
	}
	return nil
}

// follow repeatedly brings the index up to the durable head. It returns when ctx ends or an error
// occurs.
//
// It makes one shadow and keeps it as long as it works. The error of ctx is returned like any
// other; Run looks at ctx itself.
func (t *TCA) follow(ctx context.Context) (err error) {
	if err := t.mend(); err != nil {
		return err
	}
	shadow, err := t.attach(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, shadow.Close()) }()
	for {
		moved, err := t.step(ctx, shadow)
		if err != nil {
			return err
		}
		t.follows.still()
		t.checkpoint(!moved)
		if !moved {
			pace.Sleep(ctx, t.o.Poll)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// mend repairs the index before Run continues it.
//
// An index that a reader has found damaged is emptied; one that an error left incomplete is taken
// from its checkpoint again.
func (t *TCA) mend() error {
	switch {
	case t.damaged.Load():
		return t.reset()
	case t.torn:
		return t.load()
	}
	return nil
}

// attach makes a shadow at the position of the index. The shadow replays the index's last command,
// and the command must be the same: a journal that has lost it, or has another one in its place, is
// another history.
//
// The shadow begins one command earlier than the index ends, so that the comparison is possible. It
// may begin at an older snapshot; the commands in between are decided without their events being
// used.
func (t *TCA) attach(ctx context.Context) (_ Shadow, err error) {
	applied := t.index.applied
	before := max(applied, 1) - 1
	shadow, err := t.o.Shadow(before)
	if err != nil {
		return nil, fmt.Errorf("tca: shadow before=%d: %w", before, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, shadow.Close())
		}
	}()
	if at := shadow.Applied(); at > before {
		return nil, fmt.Errorf("tca: shadow is at inputSeq=%d, want at most %d", at, before)
	}
	for shadow.Applied() < before && ctx.Err() == nil {
		at := shadow.Applied()
		if err := shadow.Follow(ctx, min(at+stepCommands, before), nil); err != nil {
			return nil, fmt.Errorf("tca: skip ahead to inputSeq=%d: %w", before, err)
		}
		if shadow.Applied() == at {
			return nil, fmt.Errorf("tca: the journal ends at inputSeq=%d, the index at %d: %w", at,
				applied, errHistory)
		}
	}
	if applied == 0 || ctx.Err() != nil {
		return shadow, ctx.Err()
	}
	same := false
	err = shadow.Follow(ctx, applied, func(events []matcher.Event) error {
		for i := range events {
			ev := &events[i]
			same = same || ev.Flags&matcher.EventFirst != 0 && *ev.Cmd() == t.index.last
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("tca: follow to inputSeq=%d: %w", applied, err)
	}
	if !same || shadow.Applied() != applied {
		return nil, fmt.Errorf("tca: inputSeq=%d is not the command that the index has: %w",
			applied, errHistory)
	}
	return shadow, nil
}

// step adds more commands, if there are any.
//
// At most stepCommands, and none above the durable head: the index must not hold what a power cut
// can take back.
func (t *TCA) step(ctx context.Context, shadow Shadow) (moved bool, err error) {
	if t.damaged.Load() {
		return false, fmt.Errorf("tca: builds the price history again: %w", ErrDamaged)
	}
	from := t.index.applied
	to := min(from+stepCommands, t.o.Durable())
	if to <= from {
		return false, nil
	}
	if err := shadow.Follow(ctx, to, t.observe); err != nil {
		return false, fmt.Errorf("tca: follow from inputSeq=%d: %w", from+1, err)
	}
	if at := shadow.Applied(); at != t.index.applied {
		return false, fmt.Errorf("tca: shadow is at inputSeq=%d, its events at %d: %w", at,
			t.index.applied, ErrDamaged)
	}
	return t.index.applied > from, nil
}

// observe adds the events of whole commands to the index, some commands at a time: a thread of low
// priority should not hold the lock for long.
//
// events are whole commands, as Shadow.Follow promises.
func (t *TCA) observe(events []matcher.Event) error {
	for len(events) > 0 {
		n := min(lockEvents, len(events))
		for n < len(events) && events[n].Flags&matcher.EventFirst == 0 {
			n++
		}
		if err := t.take(events[:n]); err != nil {
			return err
		}
		events = events[n:]
	}
	return nil
}

// take adds events under the lock and wakes the callers that wait for the index. An error leaves
// the index torn, which ends all reports until it is loaded again.
func (t *TCA) take(events []matcher.Event) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	err := t.index.observe(events)
	if t.torn = err != nil; t.torn {
		return err
	}
	t.applied.Store(t.index.applied)
	if t.waiting != nil {
		close(t.waiting)
		t.waiting = nil
	}
	return nil
}

// checkpoint saves one when it is due: often enough that a restart repeats little, and seldom
// enough to leave the disk to the journal. Run continues when a checkpoint cannot be written.
//
// idle says that the index has reached the durable head. An attempt counts even when it fails, so a
// full disk is not tried at every step.
func (t *TCA) checkpoint(idle bool) {
	if t.index.applied == t.saved {
		return
	}
	now := t.o.Now()
	due := t.index.applied-min(t.tried, t.index.applied) >= t.o.CheckpointCommands ||
		idle && now.Sub(t.triedAt) >= t.o.CheckpointInterval
	if !due {
		return
	}
	t.tried, t.triedAt = t.index.applied, now
	if err := t.save(); err != nil {
		t.saves.ring(err)
		return
	}
	t.saves.still()
}
