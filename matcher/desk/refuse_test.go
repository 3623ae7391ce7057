package desk

import (
	"sync"
	"testing"
	"time"

	"posttrade/matcher"
	"posttrade/ring/must"
)

// refuse takes commands off the ring, as a stage that does not hand them on, and refuses the first
// command of each ticket.
func (r *rig) refuse() {
	lo, hi := r.in.Ready(1 << 20)
	for slot := lo; slot < hi; slot++ {
		r.desk.Refuse(r.in.At(slot).InputSeq)
	}
	r.in.Release(hi)
}

func TestRefusedTicketIsToldSoAndUsedAgain(t *testing.T) {
	r := newRig(t, 16, 1)
	order := newOrder(1, matcher.Buy, 1, px, 0)
	for _, n := range []int{1, 3} {
		ticket := r.acquire(n)
		for i := range n {
			*ticket.Command(i) = order
		}
		must.OK(t, ticket.Submit())
		if ticket.Ready() {
			t.Fatal("ready before it was refused")
		}
		lo, _ := r.in.Ready(n)
		if got := r.desk.Size(r.in.At(lo).InputSeq); got != n || r.desk.Size(0) != 0 {
			t.Errorf("size %d, want %d; of nobody %d, want 0", got, n, r.desk.Size(0))
		}
		r.refuse()
		for range 2 { // waiting again changes nothing
			if err := ticket.Wait(time.Minute); err != ErrRefused {
				t.Fatalf("got %v, want %v", err, ErrRefused)
			}
		}
		if !ticket.Ready() || ticket.Answer(0) != nil {
			t.Errorf("ready %v, answer %v", ticket.Ready(), ticket.Answer(0))
		}
		ticket.Release()
	}
	again := r.decide(order)
	if a := again.Answer(0); a.InputSeq != 1 {
		t.Errorf("the first order that was handed on has sequence %d", a.InputSeq)
	}
	again.Release()
	if r.desk.Out() != 0 {
		t.Errorf("%d tickets out, want 0", r.desk.Out())
	}
}

func TestRefuseOfATicketGivenUp(t *testing.T) {
	r := newRig(t, 16, 1)
	for range 3 {
		ticket := r.submit(newOrder(1, matcher.Buy, 1, px, 0))
		if err := ticket.Wait(time.Microsecond); err != ErrTimeout {
			t.Fatalf("got %v, want %v", err, ErrTimeout)
		}
		ticket.Release()
		r.refuse()
		if r.desk.Out() != 0 {
			t.Fatalf("%d tickets out, want 0", r.desk.Out())
		}
	}
}

// The refusal comes between the holder's time-out and its Release.
func TestRefusalBetweenTimeoutAndRelease(t *testing.T) {
	r := newRig(t, 16, 1)
	ticket := r.submit(newOrder(1, matcher.Buy, 1, px, 0))
	if err := ticket.Wait(time.Microsecond); err != ErrTimeout {
		t.Fatalf("got %v, want %v", err, ErrTimeout)
	}
	r.refuse()
	ticket.Release()
	next := r.decide(newOrder(2, matcher.Buy, 7, px, 0))
	if a := next.Answer(0); a.Qty != 7 {
		t.Errorf("got %+v", a)
	}
	next.Release()
}

// Refuse ignores unassigned ids, ids of an earlier use and ids of an answered ticket.
func TestRefuseOfWhatIsNotWaiting(t *testing.T) {
	r := newRig(t, 16, 2)
	ticket := r.submit(newOrder(1, matcher.Buy, 1, px, 0))
	ref := r.in.At(0).InputSeq
	for _, id := range []uint64{0, Foreign | ref, ref + 1<<commandBits, ref + 1,
		ref + 1<<(commandBits+ticketBits)} {
		r.desk.Refuse(id)
	}
	if ticket.Ready() {
		t.Fatal("refused by an id that is not its own")
	}
	r.step(1)
	r.durable()
	r.desk.Refuse(ref)
	must.OK(t, ticket.Wait(0))
	ticket.Release()
	r.desk.Refuse(ref)
	if r.desk.Out() != 0 {
		t.Errorf("%d tickets out, want 0", r.desk.Out())
	}
}

// Refusals and holders that give up at the same time: no ticket is lost or doubled.
func TestRefuseAgainstRelease(t *testing.T) {
	r := newRig(t, 64, 16) // each holder has one ticket that it has given up and one that it holds
	var holders sync.WaitGroup
	const each = 500
	for range 8 {
		holders.Go(func() {
			for i := range each {
				ticket := r.submit(newOrder(1, matcher.Buy, 1, px, 0))
				if i%2 == 0 {
					if err := ticket.Wait(time.Microsecond); err != ErrTimeout && err != ErrRefused {
						t.Errorf("got %v", err)
					}
				} else if err := ticket.Wait(0); err != ErrRefused {
					t.Errorf("got %v, want %v", err, ErrRefused)
				}
				ticket.Release()
			}
		})
	}
	done := make(chan struct{})
	go func() { holders.Wait(); close(done) }()
	for {
		select {
		case <-done:
			r.refuse()
			if r.desk.Out() != 0 {
				t.Errorf("%d tickets out, want 0", r.desk.Out())
			}
			return
		default:
			r.refuse()
		}
	}
}
