package engine

import (
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
