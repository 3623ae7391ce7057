package engine

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"
)

func TestWatermarkLetsReadersGoInOrder(t *testing.T) {
	var w watermark
	w.raise(5)
	if err := w.WaitDurable(5, time.Nanosecond); err != nil {
		t.Errorf("already durable: %v", err)
	}
	if err := w.WaitDurable(6, time.Nanosecond); !errors.Is(err, errNotDurable) {
		t.Errorf("not durable: %v", err)
	}
	const readers = 64
	var wg sync.WaitGroup
	for i := range readers {
		wg.Go(func() {
			seq := uint64(6 + i)
			if err := w.WaitDurable(seq, time.Minute); err != nil {
				t.Error(err)
			}
			if w.Durable() < seq {
				t.Errorf("let go at %d, durable %d", seq, w.Durable())
			}
		})
	}
	for seq := uint64(6); seq < 6+readers; seq++ {
		w.raise(seq)
	}
	wg.Wait()
}

// A raise wakes the readers whose sequence it reaches. The others wait on, undisturbed, and it does
// not even ask for the lock that they share.
func TestWatermarkWakesThoseItReaches(t *testing.T) {
	var w watermark
	readers := []*waitingReader{}
	for _, seq := range []uint64{9, 1<<64 - 1, 3, 9} {
		r := &waitingReader{seq, make(chan struct{})}
		readers = append(readers, r)
		if err := w.join(r); err != nil {
			t.Fatal(err)
		}
	}
	gone := func() (n int) {
		for _, r := range readers {
			select {
			case <-r.reached:
				n++
			default:
			}
		}
		return n
	}
	w.mu.Lock()
	w.raise(2) // would wait for ever
	w.mu.Unlock()
	for _, tt := range []struct {
		raised, wanted uint64
		gone           int
	}{{2, 3, 0}, {3, 9, 1}, {8, 9, 1}, {9, 1<<64 - 1, 3}} {
		w.raise(tt.raised)
		if got := w.wanted.Load(); got != tt.wanted || gone() != tt.gone {
			t.Errorf("raised to %d: %d go on, the next at %d, want %d and %d", tt.raised, gone(), got,
				tt.gone, tt.wanted)
		}
	}
	w.leave(readers[0]) // it has gone on already
	w.leave(readers[1])
	if got := w.wanted.Load(); got != 0 || len(w.readers) != 0 {
		t.Errorf("%d readers of %d are left", len(w.readers), got)
	}
}

// A confirmed read waits for what its member was handed, until its request ends.
func TestMemberWaitsForWhatItWasHanded(t *testing.T) {
	h := ClusterHost{&Engine{}}
	ctx, cancel := context.WithCancel(t.Context())
	got := make(chan error, 1)
	go func() { got <- h.WaitDecided(ctx, 3) }()
	h.Watermark.raise(2)
	cancel()
	if err := <-got; !errors.Is(err, errNotDurable) {
		t.Errorf("not decided: %v", err)
	}
	go func() { got <- h.WaitDecided(t.Context(), 3) }()
	h.Watermark.raise(3)
	if err := <-got; err != nil {
		t.Errorf("decided: %v", err)
	}
}

func TestWatermarkFailureEndsTheWait(t *testing.T) {
	var w watermark
	cause := errors.New("planted")
	got := make(chan error, 1)
	go func() { got <- w.WaitDurable(1, time.Minute) }()
	w.fail(cause)
	if err := <-got; !errors.Is(err, cause) {
		t.Errorf("got %v", err)
	}
	w.raise(1)
	if err := w.WaitDurable(1, time.Minute); err != nil {
		t.Errorf("durable before the failure is durable: %v", err)
	}
}
