package desk

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"posttrade/matcher"
	"posttrade/ring"
	"posttrade/ring/must"
)

func TestFailWakesAllAndRefusesAll(t *testing.T) {
	r := newRig(t, 64, 8)
	held := r.acquire(1)
	*held.Command(0) = newOrder(1, matcher.Buy, 1, px, 0)
	answeredBefore := r.submit(newOrder(1, matcher.Buy, 1, px, 0))
	r.step(1)
	r.durable()
	waiting := r.submit(newOrder(1, matcher.Buy, 1, px, 0))
	givenUp := r.submit(newOrder(1, matcher.Buy, 1, px, 0))
	givenUp.Release()
	var parked sync.WaitGroup
	parked.Go(func() {
		if err := waiting.Wait(0); err != ErrFailed {
			t.Errorf("parked: got %v, want %v", err, ErrFailed)
		}
	})
	r.desk.Fail()
	r.desk.Fail() // the second one has no effect
	parked.Wait()
	if err := waiting.Wait(time.Minute); err != ErrFailed || waiting.Answer(0) != nil ||
		!waiting.Ready() {
		t.Errorf("again: got %v, %v", err, waiting.Answer(0))
	}
	if err := answeredBefore.Wait(0); err != nil {
		t.Errorf("answered before: %v", err)
	}
	if err := held.Submit(); err != ErrFailed || r.in.Depth() != 2 {
		t.Errorf("submit: got %v, %d in the ring", err, r.in.Depth())
	}
	if _, err := r.desk.Acquire(1); err != ErrFailed {
		t.Errorf("acquire: got %v, want %v", err, ErrFailed)
	}
	// The recorder goes on for a while: its answers reach no holder.
	waiting.Release()
	held.Release()
	answeredBefore.Release()
	r.step(64)
	r.durable()
	r.desk.Close()
	if _, err := r.desk.Acquire(1); err != ErrFailed {
		t.Errorf("close after fail: got %v, want %v", err, ErrFailed)
	}
}

func TestCloseRefusesNewAndAnswersOld(t *testing.T) {
	r := newRig(t, 64, 8)
	held, sent := r.acquire(1), r.submit(newOrder(1, matcher.Buy, 1, px, 0))
	r.desk.Close()
	if err := held.Submit(); err != ErrClosed || r.in.Depth() != 1 {
		t.Errorf("submit: got %v, want %v", err, ErrClosed)
	}
	held.Release()
	if _, err := r.desk.Acquire(1); err != ErrClosed {
		t.Errorf("acquire: got %v, want %v", err, ErrClosed)
	}
	r.step(1)
	r.durable()
	if err := sent.Wait(0); err != nil {
		t.Error(err)
	}
	sent.Release()
	if r.desk.Out() != 0 {
		t.Errorf("%d tickets out, want 0", r.desk.Out())
	}
}

// TestManyCallers: every caller gets the answers to its own commands, in one piece, also when other
// callers give up and come back.
func TestManyCallers(t *testing.T) {
	const callers = 64
	rounds := 2000
	if testing.Short() {
		rounds = 150
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := newRig(t, 256, 48) // fewer tickets than callers: ErrBusy happens
	var wrongIDs, seen, busy, full, late atomic.Int64
	var lastSeq uint64
	r.watch = func(ev *matcher.Event) {
		if ev.Flags&matcher.EventFirst == 0 {
			return
		}
		if ev.InputSeq != lastSeq+1 {
			wrongIDs.Add(1)
		}
		lastSeq = ev.InputSeq
		seen.Add(1)
		if c := ev.Cmd(); string(r.desk.ClientID(ev.Ref)) != fmt.Sprintf("%d/%d", c.AccountID, c.Qty) {
			wrongIDs.Add(1)
		}
	}
	r.run()
	var all sync.WaitGroup
	var sent atomic.Int64
	for caller := range callers {
		all.Go(func() {
			random := rand.New(rand.NewPCG(seed, uint64(caller)))
			next := int32(1)
			for range rounds {
				n := 1
				if random.IntN(8) == 0 {
					n = 1 + random.IntN(32)
				}
				ticket, err := r.desk.Acquire(n)
				if err != nil {
					busy.Add(1)
					continue
				}
				for i := range n {
					side := matcher.Side(random.IntN(2))
					*ticket.Command(i) = newOrder(uint32(caller), side, next+int32(i), px*int64(1+random.IntN(3)),
						matcher.FlagIOC*uint16(random.IntN(2)))
					ticket.SetClientID(i, fmt.Appendf(nil, "%d/%d", caller, next+int32(i)))
				}
				if err := ticket.Submit(); err != nil {
					if err != ErrFull {
						t.Errorf("submit: %v", err)
					}
					full.Add(1)
					ticket.Release()
					continue
				}
				sent.Add(int64(n))
				timeout := time.Minute
				if random.IntN(20) == 0 {
					timeout = time.Microsecond
				}
				switch err := ticket.Wait(timeout); err {
				case nil:
					base := ticket.Answer(0).InputSeq
					for i := range n {
						a := ticket.Answer(i)
						filled := int32(0)
						for _, f := range a.Fills {
							filled += f.Qty
						}
						if a.AccountID != uint32(caller) || a.Qty != next+int32(i) || a.InputSeq != base+uint64(i) ||
							a.Kind != matcher.EventAccepted && a.Reason != matcher.Capacity ||
							a.Kind == matcher.EventAccepted && filled+a.Leaves != a.Qty {
							t.Errorf("caller %d command %d of %d from %d: got %+v", caller, i, n, base, *a)
						}
					}
				case ErrTimeout:
					late.Add(1)
				default:
					t.Errorf("wait: %v", err)
				}
				next += int32(n)
				ticket.Release()
			}
		})
	}
	all.Wait()
	for deadline := time.Now().Add(time.Minute); r.desk.Out() > 0 && time.Now().Before(deadline); {
		last, err := r.desk.Acquire(1) // answers come in order: after this one all have come
		if err != nil {
			continue
		}
		*last.Command(0) = newOrder(99, matcher.Buy, 1, px, 0)
		last.SetClientID(0, []byte("99/1"))
		if err := last.Submit(); err == nil {
			sent.Add(1)
			last.Wait(0)
		}
		last.Release()
	}
	if r.desk.Out() != 0 || wrongIDs.Load() != 0 || seen.Load() != sent.Load() {
		t.Errorf("%d tickets out, %d wrong client ids or sequences, %d commands sequenced of %d",
			r.desk.Out(), wrongIDs.Load(), seen.Load(), sent.Load())
	}
	t.Logf("%d commands, busy %d, full %d, given up %d", sent.Load(), busy.Load(), full.Load(),
		late.Load())
}

// TestFailUnderLoad: whenever the journal fails, every caller returns at once, and no command is
// sequenced after its Submit was refused.
func TestFailUnderLoad(t *testing.T) {
	rounds := 30
	if testing.Short() {
		rounds = 10
	}
	for round := range rounds {
		r := newRig(t, 64, 32)
		r.run()
		var callers sync.WaitGroup
		var answers, failures atomic.Int64
		for caller := range 16 {
			callers.Go(func() {
				for {
					ticket, err := r.desk.Acquire(1 + caller%3)
					if err == ErrFailed {
						return
					}
					if err != nil {
						continue
					}
					for i := range ticket.Len() {
						*ticket.Command(i) = newOrder(uint32(caller), matcher.Buy, 1, px, 0)
					}
					err = ticket.Submit()
					if err == nil {
						err = ticket.Wait(0)
					}
					switch err {
					case nil:
						if answers.Add(1) == int64(20*round) {
							r.desk.Fail()
						}
					case ErrFailed:
						failures.Add(1)
					case ErrFull:
					default:
						t.Errorf("got %v", err)
					}
					ticket.Release()
				}
			})
		}
		if round == 0 {
			r.desk.Fail()
		}
		callers.Wait()
		r.stop.Store(true)
		r.stopped.Wait()
	}
}

// roundTrip submits one order and waits for its answer.
func roundTrip(t testing.TB, d *Desk, order *matcher.Command, timeout time.Duration) {
	ticket := must.Get(d.Acquire(1))(t)
	*ticket.Command(0) = *order
	ticket.SetClientID(0, []byte("c-000000000123"))
	must.OK(t, ticket.Submit())
	must.OK(t, ticket.Wait(timeout))
	if ticket.Answer(0).AccountID != order.AccountID {
		t.Fatalf("got %+v", ticket.Answer(0))
	}
	ticket.Release()
}

func TestRoundTripDoesNotAllocate(t *testing.T) {
	r := newRig(t, 64, 4)
	r.run()
	order := newOrder(1, matcher.Buy, 1, px, matcher.FlagIOC)
	for _, timeout := range []time.Duration{0, time.Minute} {
		for range 100 {
			roundTrip(t, r.desk, &order, timeout)
		}
		if n := testing.AllocsPerRun(1000, func() { roundTrip(t, r.desk, &order, timeout) }); n != 0 {
			t.Errorf("timeout %s: %v allocations a round trip, want 0", timeout, n)
		}
	}
}

func BenchmarkDesk(b *testing.B) {
	b.Run("op=round-trip/producers=1", func(b *testing.B) {
		r := newRig(b, 1024, 64)
		r.run()
		order := newOrder(1, matcher.Buy, 1, px, matcher.FlagIOC)
		b.ReportAllocs()
		for b.Loop() {
			roundTrip(b, r.desk, &order, 10*time.Second)
		}
	})
	b.Run("op=round-trip/producers=64", func(b *testing.B) {
		r := newRig(b, 1024, 256)
		r.run()
		order := newOrder(1, matcher.Buy, 1, px, matcher.FlagIOC)
		b.ReportAllocs()
		b.SetParallelism(32)
		b.RunParallel(func(p *testing.PB) {
			for p.Next() {
				roundTrip(b, r.desk, &order, 10*time.Second)
			}
		})
	})
	b.Run("op=observe/waiters=0", func(b *testing.B) {
		region, err := ring.Anonymous(ring.MPSCBytes[matcher.Command](64))
		if err != nil {
			b.Fatal(err)
		}
		defer region.Close()
		in, err := ring.NewMPSC[matcher.Command](region, 64)
		if err != nil {
			b.Fatal(err)
		}
		d, err := New(in, 16)
		if err != nil {
			b.Fatal(err)
		}
		ev := matcher.Event{Kind: matcher.EventAccepted, Flags: matcher.EventFirst | matcher.EventLast}
		for b.Loop() {
			d.Observe(&ev)
		}
	})
}
