package main

import (
	"context"
	"errors"
	"testing"
	"time"

	"posttrade/matcher"
	"posttrade/ring"
	"posttrade/ring/ringtest"
)

// roomCore opens a core on a universe of three accounts and two securities.
func roomCore(t *testing.T) *core {
	t.Helper()
	dir := t.TempDir()
	c := mustConfig(t, append(anyPorts(dir), "risk.seed.accounts", "1,2,3", "risk.seed.securities", "AAPL,MSFT", "journal.durability", "os")...)
	o := coreOptionsFrom(c)
	o.fatal = func(err error) { t.Errorf("journal failed: %v", err) }
	k, err := openCore(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := k.stop(); err != nil {
			t.Error(err)
		}
	})
	return k
}

// trade hands in n orders, of which every second trades, and waits for each.
func trade(t *testing.T, k *core, n int) {
	t.Helper()
	for i := range n {
		ticket, err := k.desk.Acquire(1)
		if err != nil {
			t.Fatal(err)
		}
		c := ticket.Command(0)
		*c = matcher.NewCommand(matcher.OrderNew)
		c.AccountID, c.SecurityID, c.Side = uint32(i%2)+1, 1, matcher.Side(i%2)
		c.Qty, c.LimitPx, c.EventTimeMillis = 10, 187_000_000, 1_700_000_000_000
		if err := errors.Join(ticket.SubmitAndDrive(), ticket.Wait(0)); err != nil {
			t.Fatal(err)
		}
		if a := ticket.Answer(0); a.Kind != matcher.EventAccepted {
			t.Fatalf("order %d: %v, %v", i, a.Kind, a.Reason)
		}
		ticket.Release()
	}
}

// The rings are there before the first order, and what keeps the tables there knows how
// far all of them are in use.
func TestMemoryIsThereBeforeTheFirstOrder(t *testing.T) {
	k := roomCore(t)
	if k.recovered.room != nil {
		t.Error(k.recovered.room)
	}
	for i, r := range k.regions {
		if there, of := ringtest.Pages(t, r.Bytes(), 0, len(r.Bytes())); there != of {
			t.Errorf("ring %d: %d of %d pages are there", i, there, of)
		}
	}
	trade(t, k, 300)
	for i, f := range []ring.Frontier{k.views.Frontiers()[0], k.views.Frontiers()[1], k.engine.Frontier(k.views.NextRef), k.blotter.Frontier(1)} {
		if at, want := f.Reached(), []uint64{301, 301, 301, 301}[i]; at != want || f.Lap < 1_000 {
			t.Errorf("frontier %d: at %d, want %d, a lap of %d", i, at, want, f.Lap)
		}
	}
}

// The loop makes room while orders come, and ends with the core, when there is no place left that
// nobody has used, and when the system cannot do it.
func TestRoomIsMadeWhileOrdersCome(t *testing.T) {
	made, at := make(chan uint64, 100), make(chan uint64, 1)
	front := func(lap uint64, err error) ring.Frontier {
		reached := uint64(0)
		return ring.Frontier{
			Reached: func() uint64 {
				select {
				case reached = <-at:
				default:
				}
				return reached
			},
			Lap:      lap,
			MakeRoom: func(_, end uint64) error { made <- end; return err },
		}
	}
	run := func(ctx context.Context, f ring.Frontier) (ended chan struct{}) {
		k := &core{ahead: ring.NewAhead(roomAhead, f)}
		ended = make(chan struct{})
		go func() { defer close(ended); k.keepAhead(ctx) }()
		return ended
	}
	within := func(what string, c <-chan struct{}) {
		t.Helper()
		select {
		case <-c:
		case <-time.After(time.Minute):
			t.Fatal(what)
		}
	}

	ctx, cancel := context.WithCancel(context.Background())
	ended := run(ctx, front(1<<30, nil))
	if end := <-made; end != roomAhead {
		t.Errorf("room up to %d", end)
	}
	at <- 100_000
	if end := <-made; end != 100_000+roomAhead {
		t.Errorf("room up to %d", end)
	}
	cancel()
	within("the loop goes on without its core", ended)

	ended = run(context.Background(), front(1000, nil))
	if end := <-made; end != 1000 {
		t.Errorf("room up to %d", end)
	}
	within("the loop goes on with nothing left to do", ended)

	ended = run(context.Background(), front(1<<30, errors.New("no memory")))
	<-made
	within("the loop goes on without memory", ended)
}
