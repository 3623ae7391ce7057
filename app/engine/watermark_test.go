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
