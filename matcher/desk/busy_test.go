package desk

import (
	"errors"
	"testing"

	"posttrade/matcher"
	"posttrade/ring/must"
)

func TestFullRingSequencesNothing(t *testing.T) {
	r := newRig(t, 4, 4)
	order := newOrder(1, matcher.Buy, 1, px, 0)
	first := r.submit(order, order, order)
	second := r.acquire(2)
	*second.Command(0), *second.Command(1) = order, order
	for range 3 {
		if err := second.Submit(); err != ErrFull {
			t.Fatalf("got %v, want %v", err, ErrFull)
		}
		if r.in.Depth() != 3 {
			t.Fatalf("%d commands in the ring, want 3", r.in.Depth())
		}
	}
	r.step(4)
	must.OK(t, second.Submit())
	r.step(4)
	r.durable()
	for i, ticket := range []*Ticket{first, second} {
		must.OK(t, ticket.Wait(0))
		if got := ticket.Answer(0).InputSeq; got != uint64(3*i+1) {
			t.Errorf("ticket %d starts at %d, want %d", i, got, 3*i+1)
		}
		ticket.Release()
	}
	tooLarge := r.acquire(5)
	if err := tooLarge.Submit(); err != ErrFull {
		t.Errorf("5 commands into 4 slots: got %v, want %v", err, ErrFull)
	}
	tooLarge.Release()
}

func TestBusyDesk(t *testing.T) {
	r := newRig(t, 64, 2)
	if n := len(r.desk.tickets); n != 2 {
		t.Errorf("%d tickets, want 2", n)
	}
	a, b := r.acquire(1), r.acquire(3)
	for _, n := range []int{1, 3} {
		if _, err := r.desk.Acquire(n); err != ErrBusy {
			t.Errorf("got %v, want %v", err, ErrBusy)
		}
	}
	b.Release()
	c := r.acquire(1) // the batch ticket, because no small one is left
	if c != b || c.Len() != 1 {
		t.Errorf("got another ticket, of %d commands", c.Len())
	}
	c.Release()
	a.Release()
	if again := r.acquire(2); again != b {
		t.Error("a batch took a small ticket although one with room was there")
	}
}

func TestSizes(t *testing.T) {
	r := newRig(t, 2048, 1)
	for _, n := range []int{-1, 0, MaxBatch + 1} {
		if _, err := r.desk.Acquire(n); !errors.Is(err, ErrSize) {
			t.Errorf("acquire %d: got %v, want %v", n, err, ErrSize)
		}
	}
	for _, n := range []int{0, -1, MaxTickets + 1} {
		if _, err := New(r.in, n); !errors.Is(err, ErrSize) {
			t.Errorf("new %d: got %v, want %v", n, err, ErrSize)
		}
	}
	batch := make([]matcher.Command, MaxBatch)
	for i := range batch {
		batch[i] = newOrder(1, matcher.Buy, int32(i+1), px, 0)
	}
	ticket := r.decide(batch...)
	for i := range batch {
		if a := ticket.Answer(i); a.InputSeq != uint64(i+1) || a.Qty != int32(i+1) {
			t.Fatalf("command %d: sequence %d quantity %d", i, a.InputSeq, a.Qty)
		}
	}
}

// mustPanic runs f, which is a bug of the caller.
func mustPanic(t *testing.T, name string, f func()) {
	t.Helper()
	defer func() {
		if recover() == nil {
			t.Errorf("%s does not panic", name)
		}
	}()
	f()
}

func TestMisuseIsNoticed(t *testing.T) {
	r := newRig(t, 16, 4)
	held := r.acquire(2)
	mustPanic(t, "a command outside", func() { held.Command(2) })
	mustPanic(t, "wait before submit", func() { held.Wait(0) })
	mustPanic(t, "a long client id", func() { held.SetClientID(0, make([]byte, MaxClientIDBytes+1)) })
	if held.Answer(0) != nil {
		t.Error("an answer before submit")
	}
	held.Release()
	mustPanic(t, "release twice", held.Release)
	sent := r.submit(newOrder(1, matcher.Buy, 1, px, 0))
	mustPanic(t, "submit twice", func() { sent.Submit() })
}
