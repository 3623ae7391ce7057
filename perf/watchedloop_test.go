package perf

import (
	"slices"
	"testing"
	"time"

	"posttrade/matcher"
	"posttrade/matcher/flow"
	"posttrade/ring"
	"posttrade/ring/must"
)

// loopRig is an engine with its rings, and a reader that keeps every event.
type loopRig struct {
	engine *matcher.Engine
	in     *ring.MPSC[matcher.Command]
	out    *ring.Fanout[matcher.Event]
	events chan []matcher.Event
}

// newLoopRig makes rings so small that a flow goes round them often and fills them.
func newLoopRig(t *testing.T, symbols int, last uint64) *loopRig {
	t.Helper()
	const slots = 64
	l := &loopRig{events: make(chan []matcher.Event, 1)}
	region := func(bytes int) *ring.Region {
		r := must.Get(ring.Anonymous(bytes))(t)
		t.Cleanup(func() { r.Close() })
		return r
	}
	var err error
	if l.engine, err = matcher.New(flowGenesis(symbols)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.engine.Close() })
	if l.in, err = ring.NewMPSC[matcher.Command](region(ring.MPSCBytes[matcher.Command](slots)),
		slots); err != nil {
		t.Fatal(err)
	}
	if l.out, err = ring.NewFanout[matcher.Event](region(ring.FanoutBytes[matcher.Event](slots)),
		slots); err != nil {
		t.Fatal(err)
	}
	go l.read(last)
	return l
}

// read keeps the events up to the last one of a command.
func (l *loopRig) read(last uint64) {
	idle := ring.NewIdler(ring.Adaptive, l.out.Waiter())
	var events []matcher.Event
	for {
		lo, hi := l.out.Ready(64)
		if lo == hi {
			idle.Idle(l.out)
			continue
		}
		idle.Reset()
		for slot := lo; slot < hi; slot++ {
			events = append(events, *l.out.At(slot))
		}
		l.out.Release(hi)
		if ev := events[len(events)-1]; ev.InputSeq == last && ev.Flags&matcher.EventLast != 0 {
			l.events <- events
			return
		}
	}
}

// submit puts commands into the input ring, and waits while it is full.
func (l *loopRig) submit(commands []matcher.Command) {
	idle := ring.NewIdler(ring.Yield, nil)
	for i := range commands {
		lo, ok := l.in.ClaimN(1)
		for !ok {
			idle.Idle(nil)
			lo, ok = l.in.ClaimN(1)
		}
		*l.in.At(lo) = commands[i]
		l.in.Publish(lo, 1)
	}
}

// TestWatchedLoopDecidesLikeTheStage compares the loop with a clock with the stage that it
// replaces.
func TestWatchedLoopDecidesLikeTheStage(t *testing.T) {
	f := flow.Generate(flow.Options{Seed: 3, Symbols: 2, Prefill: 300, N: 4000})
	commands := flowCommands(f)
	n := uint64(len(commands))

	plain := newLoopRig(t, f.Symbols, n)
	stage := matcher.NewStage(plain.engine, plain.in, plain.out, ring.Adaptive, -1)
	ended := make(chan error, 1)
	go func() { ended <- stage.Run() }()
	plain.submit(commands)
	want := <-plain.events
	stage.Stop()
	must.OK(t, <-ended)

	for _, idle := range []ring.Strategy{ring.Adaptive, ring.Park, ring.Yield} {
		t.Run(idle.String(), func(t *testing.T) {
			rig := newLoopRig(t, f.Symbols, n)
			loop := watch(rig.engine, rig.in, rig.out, idle, -1)
			go func() { ended <- loop.Run() }()
			rig.submit(commands)
			got := <-rig.events
			loop.Stop()
			rig.in.Waiter().Wake()
			must.OK(t, <-ended)
			if !slices.Equal(got, want) {
				t.Errorf("%d events, want the stage's %d", len(got), len(want))
			}
			if loop.gaps.all.took == 0 || loop.thread.Load() == 0 {
				t.Error("the loop has not looked at the clock, or does not know its thread")
			}
		})
	}
}

func TestWatchedLoopCannotBeBoundToACoreThatIsNotThere(t *testing.T) {
	rig := newLoopRig(t, 1, 1)
	if err := watch(rig.engine, rig.in, rig.out, ring.Adaptive, 1<<14).Run(); err == nil {
		t.Error("no error")
	}
	stage := matcher.NewStage(rig.engine, rig.in, rig.out, ring.Adaptive, -1)
	stage.Stop()
	rig.submit(flowCommands(flow.Generate(flow.Options{Seed: 1, Symbols: 1, N: 1}))[:1])
	if err := stage.Run(); err != nil { // ends the reader
		t.Fatal(err)
	}
	<-rig.events
}

func TestGapsHaveCauses(t *testing.T) {
	start := time.Unix(1_700_000_000, 0)
	gc := []gcPause{{start.Add(time.Second), 100 * time.Microsecond}}
	const ms = time.Millisecond
	for _, tt := range []struct {
		name string
		gap  gap
		want string
	}{
		{"nothing known", gap{end: 2 * time.Second, took: ms}, causeMachine},
		{"the ring was full", gap{end: time.Second, took: ms, full: true, slept: 1, preempted: 1},
			causeFull},
		{"asleep while the collector stopped the world", gap{end: time.Second + ms/2, took: ms, slept: 1,
			preempted: 1}, causeCollector},
		{"asleep just before it", gap{end: time.Second - ms, took: ms, slept: 1}, causeRuntime},
		{"asleep just behind it", gap{end: time.Second + 2*ms, took: ms, slept: 1}, causeRuntime},
		{"awake while it did", gap{end: time.Second + ms/2, took: ms, preempted: 1, faults: 1},
			causePreempted},
		{"a page was missing", gap{end: 2 * time.Second, took: ms, faults: 2, decided: stageBatch},
			causeFault},
		{"much to decide", gap{end: 2 * time.Second, took: ms, decided: stageBatch}, causeWork},
		{"little to decide", gap{end: 2 * time.Second, took: ms, decided: 3}, causeMachine},
	} {
		if got := tt.gap.cause(start, gc); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

func TestGapLogKeepsWhatIsLong(t *testing.T) {
	l := newGapLog()
	l.begin(time.Now().Add(-time.Hour)) // so that the first turn comes late
	l.last = 0
	l.full = true
	l.turn(7)
	if len(l.gaps) != 1 || l.gaps[0].decided != 7 || !l.gaps[0].full || l.full ||
		l.gaps[0].took < time.Hour || l.all.longest < time.Hour {
		t.Fatalf("%+v, longest %v", l.gaps, l.all.longest)
	}
	l.last -= time.Minute
	l.rested() // the loop asked for the sleep
	if l.turn(0); l.all.longest > time.Hour+time.Minute/2 || l.all.lost > time.Hour+time.Minute/2 {
		t.Errorf("a sleep counts: %+v", l.all)
	}
}

// TestGapLogHasTheLongest fills a log: shorter gaps are dropped, however late the longest comes,
// and everything is counted.
func TestGapLogHasTheLongest(t *testing.T) {
	l := newGapLog()
	l.gaps = l.gaps[:0:8]
	const n = 1000
	for i := range n {
		l.look(gap{took: gapKept + time.Duration(i+1)*time.Microsecond, decided: i})
	}
	if last := l.gaps[len(l.gaps)-1]; last.decided != n-1 {
		t.Errorf("the longest is not there: %+v", last)
	}
	if len(l.gaps)+l.lost != n || len(l.gaps) == 0 {
		t.Errorf("%d gaps and %d shorter ones, want %d", len(l.gaps), l.lost, n)
	}
	for i, g := range l.gaps {
		if want := n - len(l.gaps) + i; g.decided != want || g.took <= l.kept {
			t.Errorf("gap %d is %+v, want number %d, longer than %v", i, g, want, l.kept)
		}
	}
	kept := len(l.gaps)
	if l.look(gap{took: l.kept}); len(l.gaps) != kept || l.lost != n-kept+1 {
		t.Errorf("a gap that is too short: %d and %d", len(l.gaps), l.lost)
	}
	for range n { // all of equal length
		l.look(gap{took: time.Second})
	}
	for range n { // all shorter than the longest, which came before them
		l.look(gap{took: time.Second / 2})
	}
	if len(l.gaps)+l.lost != 3*n+1 || len(l.gaps) == 0 || l.gaps[0].took != time.Second {
		t.Errorf("%d gaps and %d shorter ones, the first %+v", len(l.gaps), l.lost, l.gaps)
	}
}

func TestJittersAddUp(t *testing.T) {
	var a, b jitter
	a.add(20 * time.Microsecond)
	a.took = time.Second
	b.add(2 * time.Millisecond)
	b.took = time.Second
	a.join(b)
	if a.longer[1] != 2 || a.longer[3] != 1 || a.longest != 2*time.Millisecond ||
		a.took != 2*time.Second || a.lost != 2020*time.Microsecond {
		t.Errorf("%+v", a)
	}
}

func TestRunDelayOfNoThreadIsNone(t *testing.T) {
	if d := runDelay(1 << 30); d != 0 {
		t.Errorf("%v", d)
	}
}
