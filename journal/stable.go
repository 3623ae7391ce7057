package journal

import (
	"context"
	"fmt"
	"time"

	"posttrade/ring"
)

// Stable is the last input sequence that a power cut cannot take away. In "fsync" mode that is
// Durable; in "os" mode it is the last that a flush of the log has really synced, at most
// FlushInterval behind. Any goroutine, no lock.
func (j *Journal) Stable() uint64 {
	if j.stableWhenDurable() {
		return j.Durable()
	}
	return uint64(j.stable.Load())
}

// stableWhenDurable reports that the durable head is on stable storage, in the store or in the
// tail: mode "fsync".
func (j *Journal) stableWhenDurable() bool { return j.o.Durability == DurabilityFsync }

// logs reports that a tail's writes are synced before their answers.
func (j *Journal) logs() bool { return j.o.Tail && j.stableWhenDurable() }

// WaitStable returns nil when everything up to inputSeq is on stable storage: a caller that keeps
// the same commands elsewhere may then drop them. WaitStable waits for the commit, if that is still
// to come, and in "os" mode it syncs the log itself and does not wait for the ticker.
//
//   - Errors: the poison, ErrClosed, ctx's own. For what is stable already it returns nil, also
//     after any of these.
//   - Cost: in "os" mode one sync, shared by all waiting callers. WaitStable blocks; any goroutine.
func (j *Journal) WaitStable(ctx context.Context, inputSeq uint64) error {
	return j.waitStable(ctx, inputSeq, j.Stable)
}

// StableEnd is the end of the last commit that a power cut can neither take nor change: after it
// the journal has a commit that ends there, with that chain. It is Stable, except in "fsync" mode
// with a tail: what is stable in the tail alone is packed into other commits after a power cut.
// StableEnd is then what the store has synced, about 50 ms behind. What is kept elsewhere and names
// a commit of this journal follows StableEnd. Any goroutine.
func (j *Journal) StableEnd() uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.stableEnd().inputSeq
}

// stableEnd is StableEnd as a point. The caller holds mu.
func (j *Journal) stableEnd() point {
	if j.lazy == nil {
		return j.safe
	}
	return j.stablePoint
}

// WaitStableEnd is WaitStable for StableEnd: it returns nil when a commit that ends at inputSeq or
// behind it is such that a power cut can neither take nor change it. With a tail WaitStableEnd
// syncs the store's log itself, also in "fsync" mode.
func (j *Journal) WaitStableEnd(ctx context.Context, inputSeq uint64) error {
	return j.waitStable(ctx, inputSeq, j.StableEnd)
}

// waitStable waits until stable, which follows stabilize, has reached inputSeq.
func (j *Journal) waitStable(ctx context.Context, inputSeq uint64, stable func() uint64) error {
	for stable() < inputSeq {
		if err := j.usable(); err != nil {
			return err
		}
		moved := j.behind(inputSeq)
		if moved == nil {
			if _, err := j.stabilize(); err != nil {
				return err
			}
			continue
		}
		select {
		case <-moved:
		case <-j.latch.dead:
		case <-j.stop:
		case <-ctx.Done():
			return fmt.Errorf("journal: wait inputSeq=%d: %w", inputSeq, ctx.Err())
		}
	}
	return nil
}

// behind returns a channel that is closed when the durable head moves on, or nil when it has
// reached inputSeq. The caller asks again afterwards: one move need not reach inputSeq. All that
// wait share one channel.
func (j *Journal) behind(inputSeq uint64) <-chan struct{} {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.safe.inputSeq >= inputSeq {
		return nil
	}
	if j.moved == nil {
		j.moved = make(chan struct{})
	}
	return j.moved
}

// advance makes end the durable head and wakes the goroutines that wait for it. The number is
// stored while mu is held, so Durable and Head agree for a goroutine that was woken. Committer
// only.
func (j *Journal) advance(end point) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.safe = end
	j.durable.Store(int64(end.inputSeq))
	if j.moved != nil {
		close(j.moved)
		j.moved = nil
	}
	if ring.Checks {
		j.mustBeSound()
	}
}

// stabilize brings the durable head to stable storage in the store and returns it. In "fsync" mode
// without a tail the head is there already. A failed sync poisons, and is never tried again.
func (j *Journal) stabilize() (point, error) {
	j.syncing.Lock()
	defer j.syncing.Unlock()
	j.mu.Lock()
	safe := j.safe
	j.mu.Unlock()
	if j.lazy == nil || safe.inputSeq <= uint64(j.stable.Load()) {
		return safe, j.latch.Err()
	}
	if err := j.flush(); err != nil {
		return safe, j.latch.Poison(fmt.Errorf("journal: sync log inputSeq=%d: %w", safe.inputSeq, err))
	}
	j.mu.Lock()
	j.stablePoint = safe
	j.mu.Unlock()
	j.stable.Store(int64(safe.inputSeq))
	if ring.Checks {
		j.mustBeSound()
	}
	return safe, nil
}

// flush syncs the store's logs, and measures that. The caller holds syncing, and lazy is set. An
// error is not the poison yet: the caller words it.
func (j *Journal) flush() error {
	if err := j.latch.Err(); err != nil {
		return err
	}
	j.flushing.Begin(time.Now())
	err := j.lazy.Flush()
	j.flushing.End()
	if err == nil {
		err = j.latch.Err() // poisoned meanwhile: a sync that came after it proves nothing
	}
	return err
}
