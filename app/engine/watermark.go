package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// errNotDurable reports that a reader has waited too long until what it saw was durable.
var errNotDurable = errors.New("not durable in time")

// watermark is the number up to which commands are durable, for readers that wait for it. The
// goroutine that releases the answers raises it, and wakes the readers whose sequence it has
// reached, and no others.
//
// No wake-up is lost. A reader lowers wanted before it reads durable, and the writer raises durable
// before it reads wanted, so at least one of them sees the other. A raise that reaches no reader's
// sequence costs one store and one load, however many readers wait.
type watermark struct {
	durable atomic.Uint64 // writer: the goroutine that releases the answers
	wanted  atomic.Uint64 // lowest sequence that a reader waits for, 0 for none; writers hold mu
	mu      sync.Mutex
	readers []*waitingReader // that wait, the lowest sequence first; guarded by mu
	// The first failure of the journal; nil while it works. It is final.
	failed error // guarded by mu
}

// waitingReader is a reader that waits until inputSeq, which is not 0, is durable. reached is
// closed when it is, or when the journal has failed.
type waitingReader struct {
	inputSeq uint64
	reached  chan struct{}
}

// Durable is the last durable input sequence.
//
// It never falls. Any goroutine may call it.
func (w *watermark) Durable() uint64 { return w.durable.Load() }

// WaitDurable blocks until Durable is at least inputSeq.
//
//   - Errors: the failure of the journal, for a sequence that was not durable before it; after
//     timeout, errNotDurable, with both sequences in the text.
//   - Cost: one atomic load when inputSeq is durable already. Otherwise it blocks and allocates.
//     Any goroutine may call it.
func (w *watermark) WaitDurable(inputSeq uint64, timeout time.Duration) error {
	if w.durable.Load() >= inputSeq {
		return nil // without the context
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return w.wait(ctx, inputSeq)
}

// wait is WaitDurable until ctx ends.
func (w *watermark) wait(ctx context.Context, inputSeq uint64) error {
	if w.durable.Load() >= inputSeq {
		return nil
	}
	r := &waitingReader{inputSeq, make(chan struct{})}
	if err := w.join(r); err != nil {
		return w.unless(inputSeq, err)
	}
	if w.durable.Load() >= inputSeq {
		w.leave(r)
		return nil
	}
	select {
	case <-r.reached:
		return w.unless(inputSeq, w.failure())
	case <-ctx.Done():
		w.leave(r)
		return w.unless(inputSeq, fmt.Errorf("sequence %d, durable %d: %w", inputSeq,
			w.durable.Load(), errNotDurable))
	}
}

// unless is err, or nil when the sequence is durable.
func (w *watermark) unless(inputSeq uint64, err error) error {
	if w.durable.Load() >= inputSeq {
		return nil
	}
	return err
}

// join puts a reader among those that wait. After a failure of the journal it returns that.
func (w *watermark) join(r *waitingReader) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failed != nil {
		return w.failed
	}
	at, _ := slices.BinarySearchFunc(w.readers, r.inputSeq, bySequence)
	w.readers = slices.Insert(w.readers, at, r)
	w.want()
	return nil
}

// leave takes a reader out, if it still waits.
func (w *watermark) leave(r *waitingReader) {
	w.mu.Lock()
	defer w.mu.Unlock()
	at, _ := slices.BinarySearchFunc(w.readers, r.inputSeq, bySequence)
	if i := slices.Index(w.readers[at:], r); i >= 0 {
		w.readers = slices.Delete(w.readers, at+i, at+i+1)
		w.want()
	}
}

func bySequence(r *waitingReader, inputSeq uint64) int { return cmp.Compare(r.inputSeq, inputSeq) }

// want sets wanted to the lowest sequence that is waited for. The caller holds mu.
func (w *watermark) want() {
	if len(w.readers) == 0 {
		w.wanted.Store(0)
		return
	}
	w.wanted.Store(w.readers[0].inputSeq)
}

// failure is the first failure of the journal, nil while it works.
func (w *watermark) failure() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.failed
}

// raise publishes that everything up to inputSeq is durable. Only the goroutine that releases the
// answers calls it, with numbers that rise.
func (w *watermark) raise(inputSeq uint64) {
	w.durable.Store(inputSeq)
	if wanted := w.wanted.Load(); wanted != 0 && wanted <= inputSeq {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.wake(inputSeq)
	}
}

// fail ends all waits with err. The first failure stays.
func (w *watermark) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failed == nil {
		w.failed = err
	}
	w.wake(1<<64 - 1)
}

// wake lets the readers of sequences up to inputSeq go on. The caller holds mu.
func (w *watermark) wake(inputSeq uint64) {
	n := 0
	for ; n < len(w.readers) && w.readers[n].inputSeq <= inputSeq; n++ {
		close(w.readers[n].reached)
	}
	w.readers = slices.Delete(w.readers, 0, n)
	w.want()
}
