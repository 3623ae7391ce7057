package installation

import (
	"context"
	"errors"
	"testing"
	"time"

	"posttrade/app/engine"
	"posttrade/ring"
	"posttrade/ring/ringtest"
)

// The memory of the rings is resident before the first order, and the part that keeps the tables
// resident knows how far all of them are used.
func TestMemoryIsThereBeforeTheFirstOrder(t *testing.T) {
	k := testCore(t, t.TempDir())
	defer func() {
		if err := k.Stop(); err != nil {
			t.Error(err)
		}
	}()
	if k.Recovered.Room != nil {
		t.Error(k.Recovered.Room)
	}
	for i, r := range k.Regions {
		if there, of := ringtest.Pages(t, r.Bytes(), 0, len(r.Bytes())); there != of {
			t.Errorf("ring %d: %d of %d pages are there", i, there, of)
		}
	}
	const orders = 300
	submit(t, k, orders)
	fills := k.Blotter.LastSeq()
	if fills < orders/2 {
		t.Errorf("%d fills of %d orders", fills, orders)
	}
	heads, rows := k.Views.Frontiers()[0], k.Views.Frontiers()[1]
	for i, f := range []ring.Frontier{heads, rows, k.Engine.Frontier(k.Views.NextRef),
		k.Blotter.Frontier(1)} {
		if at, want := f.Reached(), []uint64{orders + 1, orders + 1, orders + 1,
			fills + 1}[i]; at != want || f.Lap < 1_000 {
			t.Errorf("frontier %d: at %d, want %d, a lap of %d", i, at, want, f.Lap)
		}
	}
}

// The loop makes room while orders come. It ends with the engine, when no unused place is left, and
// when the system cannot do it.
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
		k := &engine.Engine{Ahead: ring.NewAhead(engine.RoomAhead, f)}
		ended = make(chan struct{})
		go func() { defer close(ended); k.KeepAhead(ctx) }()
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
	if end := <-made; end != engine.RoomAhead {
		t.Errorf("room up to %d", end)
	}
	at <- 100_000
	if end := <-made; end != 100_000+engine.RoomAhead {
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
