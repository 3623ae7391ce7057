package engine

import (
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
type watermark struct {
	durable atomic.Uint64 // writer: the goroutine that releases the answers
	waiting atomic.Int64  // readers that have asked for a wake
	mu      sync.Mutex
	raised  chan struct{} // closed and replaced at a raise that a reader waits for; guarded by mu
	failed  error         // guarded by mu
}

// Durable is the last durable input sequence.
func (w *watermark) Durable() uint64 { return w.durable.Load() }

// WaitDurable blocks until Durable is at least inputSeq.
func (w *watermark) WaitDurable(inputSeq uint64, timeout time.Duration) error {
	if w.durable.Load() >= inputSeq {
		return nil
	}
	w.waiting.Add(1)
	defer w.waiting.Add(-1)
	deadline := time.NewTimer(timeout)
	defer deadline.Stop()
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
		case <-deadline.C:
			return fmt.Errorf("sequence %d, durable %d: %w", inputSeq, w.durable.Load(), errNotDurable)
		}
	}
}

func (w *watermark) raise(inputSeq uint64) {
	w.durable.Store(inputSeq)
	if w.waiting.Load() != 0 {
		w.wake(nil)
	}
}

func (w *watermark) fail(err error) { w.wake(err) }

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
