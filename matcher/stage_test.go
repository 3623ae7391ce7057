package matcher

import (
	"bytes"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"

	"posttrade/ring"
	"posttrade/ring/must"
)

// pipeline is a stage between two rings, with a recorder that keeps every event.
type pipeline struct {
	t      *testing.T
	engine *Engine
	in     *ring.MPSC[Command]
	out    *ring.Fanout[Event]
	stage  *Stage

	said []Event // written by the recorder until it has ended
	ran  chan error
	read chan struct{}
}

func newPipeline(t *testing.T, g *Genesis, inSlots, outSlots int, idle ring.Strategy) *pipeline {
	t.Helper()
	p := &pipeline{t: t, ran: make(chan error, 1), read: make(chan struct{})}
	var err error
	if p.engine, err = New(g); err != nil {
		t.Fatal(err)
	}
	inRegion, err := ring.Anonymous(ring.MPSCBytes[Command](inSlots))
	must.OK(t, err)
	outRegion, err := ring.Anonymous(ring.FanoutBytes[Event](outSlots))
	must.OK(t, err)
	if p.in, err = ring.NewMPSC[Command](inRegion, inSlots); err != nil {
		t.Fatal(err)
	}
	if p.out, err = ring.NewFanout[Event](outRegion, outSlots); err != nil {
		t.Fatal(err)
	}
	p.stage = NewStage(p.engine, p.in, p.out, idle, -1)
	t.Cleanup(func() {
		p.engine.Close()
		inRegion.Close()
		outRegion.Close()
	})
	return p
}

func (p *pipeline) start() {
	go func() { p.ran <- p.stage.Run() }()
}

// record takes events until the last one of the command at sequence last.
func (p *pipeline) record(last uint64) {
	go func() {
		defer close(p.read)
		idler := ring.NewIdler(ring.Adaptive, p.out.Waiter())
		for {
			lo, hi := p.out.Ready(64)
			if lo == hi {
				idler.Idle(p.out)
				continue
			}
			idler.Reset()
			for pos := lo; pos < hi; pos++ {
				p.said = append(p.said, *p.out.At(pos))
			}
			p.out.Release(hi)
			if ev := &p.said[len(p.said)-1]; ev.InputSeq == last && ev.Flags&EventLast != 0 {
				return
			}
		}
	}()
}

// submit puts commands into the input ring and waits while it is full.
func (p *pipeline) submit(commands ...Command) {
	for _, c := range commands {
		lo, ok := p.in.ClaimN(1)
		for !ok {
			runtime.Gosched()
			lo, ok = p.in.ClaimN(1)
		}
		*p.in.At(lo) = c
		p.in.Publish(lo, 1)
	}
}

// drive puts a command into the input ring and decides it here, if the stage's thread rests.
func (p *pipeline) drive(c Command) {
	lo, ok := p.in.ClaimN(1)
	for !ok {
		runtime.Gosched()
		lo, ok = p.in.ClaimN(1)
	}
	*p.in.At(lo) = c
	p.in.PublishQuietly(lo, 1)
	p.stage.Drive()
}

func (p *pipeline) stop() {
	p.t.Helper()
	p.stage.Stop()
	must.OK(p.t, <-p.ran)
}

// The events from the rings are those of a replay of the same commands.
func TestStageDecidesLikeAReplay(t *testing.T) {
	const producers, each = 3, 700
	rnd := seeded(t)
	for _, idle := range []ring.Strategy{ring.Adaptive, ring.Park} {
		t.Run(idle.String(), func(t *testing.T) {
			p := newPipeline(t, crowded(), 64, 128, idle)
			p.record(producers * each)
			p.start()
			var wg sync.WaitGroup
			for n := range producers {
				source := rand.New(rand.NewPCG(rnd.Uint64(), uint64(n)))
				wg.Go(func() {
					pilot := newPilot()
					pilot.newer = true // the order is random, and no record of version 1 may follow one of 2
					var word [wordBytes]byte
					for i := range each {
						for b := range word {
							word[b] = byte(source.Uint32())
						}
						c := pilot.command(word[:])
						c.InputSeq = uint64(n*each + i + 1) // the correlation id
						if (n+i)%2 == 0 {
							p.submit(c)
						} else {
							p.drive(c)
						}
					}
				})
			}
			wg.Wait()
			<-p.read
			p.stop()
			if got := p.stage.idle.Stats(); got.Rescues > 2 { // a stalled machine lets one run out
				t.Errorf("%d of %d sleeps ran out although there was work", got.Rescues, got.Parks)
			}
			if got := p.stage.Applied(); got != producers*each {
				t.Errorf("applied %d, want %d", got, producers*each)
			}
			seen := map[uint64]bool{}
			e := must.Get(New(crowded()))(t)
			defer e.Close()
			var want []Event
			out := NewOutlet(8, func(events []Event) { want = append(want, events...) })
			for i := range p.said {
				if ev := &p.said[i]; ev.Flags&EventFirst != 0 {
					seen[ev.Ref] = true
					must.OK(t, e.Replay(ev.Cmd(), out))
					ev.Ref = 0 // no caller waits in a replay
				}
			}
			out.Flush()
			if !slices.Equal(p.said, want) {
				t.Error("the stage said something else than a replay")
			}
			if len(seen) != producers*each {
				t.Errorf("%d correlation ids came back, want %d", len(seen), producers*each)
			}
			if !bytes.Equal(snapshotOf(t, e), snapshotOf(t, p.engine)) {
				t.Error("the stage's engine is in another state than a replay's")
			}
		})
	}
}

// One command may have more events than the ring has slots.
func TestStagePublishesACommandThatDoesNotFitIntoTheRing(t *testing.T) {
	g := testGenesis()
	const slots, orders = 4, 60
	p := newPipeline(t, g, 128, slots, ring.Adaptive)
	for i := range int64(orders) {
		p.submit(with(buy(1, 1, 1), func(c *Command) { c.LimitPx += i * 1000 }))
	}
	p.submit(control(RestrictionControl, 0, aaa, 1))
	p.start()
	// The stage now waits with a full ring: no goroutine reads it.
	for p.stage.Stalls() == 0 {
		runtime.Gosched()
	}
	p.record(orders + 1)
	<-p.read
	p.stop()
	if got := len(p.said); got != orders+1+orders {
		t.Errorf("%d events, want %d", got, orders+1+orders)
	}
	for i, ev := range p.said[orders:] {
		wantLast := i == orders
		if ev.InputSeq != orders+1 || (ev.Flags&EventLast != 0) != wantLast {
			t.Errorf("event %d of the restriction: %+v", i, ev)
		}
	}
}

// Run decides what was published before Stop, then returns.
func TestStageStopsWhenItsInputIsDrained(t *testing.T) {
	p := newPipeline(t, testGenesis(), 64, 256, ring.Park)
	for range 50 {
		p.submit(buy(1, 1, 1))
	}
	p.stage.Stop()
	p.stage.Stop()
	p.start()
	must.OK(t, <-p.ran)
	if got := p.stage.Applied(); got != 50 {
		t.Errorf("applied %d, want 50", got)
	}
	if got := p.out.Published(); got != 50 {
		t.Errorf("published %d events, want 50", got)
	}
}

func TestStageNamesACoreThatIsNotThere(t *testing.T) {
	p := newPipeline(t, testGenesis(), 4, 4, ring.Park)
	p.stage.cpu = 1 << 20
	p.start()
	if err := <-p.ran; err == nil {
		t.Error("no error")
	}
}
