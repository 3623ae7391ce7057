package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// errNotDurable reports that a reader has waited too long until what it saw was durable.
var errNotDurable = errors.New("not durable in time")

// watermark is the number up to which commands are durable, for readers that wait for it. The
// goroutine that releases the answers raises it, and wakes readers only when a reader waits.
//
// No wake-up is lost. A reader raises waiting before it reads durable, and the writer raises
// durable before it reads waiting, so at least one of them sees the other. Without readers a raise
// costs one store and one load.
type watermark struct {
	durable atomic.Uint64 // writer: the goroutine that releases the answers
	waiting atomic.Int64  // readers that have asked for a wake
	mu      sync.Mutex
	raised  chan struct{} // closed and replaced at a raise that a reader waits for; guarded by mu
	// The first failure of the journal; nil while it works. It is final.
	failed error // guarded by mu
}

// Durable is the last durable input sequence.
//
// It never falls. Any goroutine may call it.
func (w *watermark) Durable() uint64 { return w.durable.Load() }

// WaitDurable blocks until Durable is at least inputSeq.
//
//   - Errors: the failure of the journal, for a sequence that was not durable before it; after
//     timeout, errNotDurable, with both sequences in the text.
//   - Cost: one atomic load when inputSeq is durable already. Otherwise it blocks and allocates a
//     context. Any goroutine may call it.
func (w *watermark) WaitDurable(inputSeq uint64, timeout time.Duration) error {
	if w.durable.Load() >= inputSeq {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return w.wait(ctx, inputSeq)
}

// wait is WaitDurable until ctx ends.
func (w *watermark) wait(ctx context.Context, inputSeq uint64) error {
	w.waiting.Add(1)
	defer w.waiting.Add(-1)
	for {
		w.mu.Lock()
		if w.raised == nil {
			w.raised = make(chan struct{})
		}
		raised, failed := w.raised, w.failed
		w.mu.Unlock()
		if w.durable.Load() >= inputSeq {
			return nil
		}
		if failed != nil {
			return failed
		}
		select {
		case <-raised:
		case <-ctx.Done():
			return fmt.Errorf("sequence %d, durable %d: %w", inputSeq, w.durable.Load(), errNotDurable)
		}
	}
}

// raise publishes that everything up to inputSeq is durable. Only the goroutine that releases the
// answers calls it, with numbers that rise.
func (w *watermark) raise(inputSeq uint64) {
	w.durable.Store(inputSeq)
	if w.waiting.Load() != 0 {
		w.wake(nil)
	}
}

func (w *watermark) fail(err error) { w.wake(err) }

// wake lets every waiting reader look again. An err that is not nil is kept as the reason to give
// up; the first one stays.
func (w *watermark) wake(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil && w.failed == nil {
		w.failed = err
	}
	if w.raised != nil {
		close(w.raised)
		w.raised = nil
	}
}
