package ring

import (
	"runtime"
	"sync"
	"testing"
)

func TestStrategiesHaveNames(t *testing.T) {
	for s, name := range strategies {
		got, err := ParseStrategy(name)
		if err != nil || got != Strategy(s) || got.String() != name {
			t.Errorf("%q: got %v %v, want %d", name, got, err, s)
		}
	}
	for _, name := range []string{"", "SPIN", "sleep"} {
		if _, err := ParseStrategy(name); err == nil {
			t.Errorf("%q was accepted", name)
		}
	}
	if got := Strategy(9).String(); got != "Strategy(9)" {
		t.Errorf("unknown strategy reads %q", got)
	}
}

func TestSpinPhaseFitsTheMachine(t *testing.T) {
	tests := []struct {
		name     string
		strategy Strategy
		cores    int
		want     int
	}{
		{"one core never spins", Adaptive, 1, 0},
		{"two cores spin some microseconds", Adaptive, 2, 50},
		{"many cores spin longer", Adaptive, 16, 500},
		{"spin never ends", Spin, 1, 1 << 62},
	}
	for _, tt := range tests {
		if got := spinsFor(tt.strategy, tt.cores); got != tt.want {
			t.Errorf("%s: %d steps, want %d", tt.name, got, tt.want)
		}
	}
}

// With two cores a consumer that lends has no phase in which it neither works nor lends.
func TestSpinPhaseOfALender(t *testing.T) {
	for _, tt := range []struct{ spins, cores, want int }{{0, 1, 0}, {50, 2, 0}, {500, 3, 500},
		{500, 16, 500}} {
		if got := lendingSpins(tt.spins, tt.cores); got != tt.want {
			t.Errorf("%d steps with %d cores: %d, want %d", tt.spins, tt.cores, got, tt.want)
		}
	}
	for _, tt := range []struct {
		strategy Strategy
		want     int
	}{{Spin, 1 << 62}, {Yield, 0}, {Park, 0},
		{Adaptive, lendingSpins(spinsFor(Adaptive, runtime.NumCPU()), runtime.NumCPU())}} {
		i := NewIdler(tt.strategy, new(Waiter))
		i.Lends(new(Lease))
		if i.spins != tt.want {
			t.Errorf("%v: %d steps, want %d", tt.strategy, i.spins, tt.want)
		}
	}
}

// asked is a Queue that counts the calls of Empty.
type asked struct {
	empty bool
	times int
}

func (a *asked) Empty() bool { a.times++; return a.empty }

func TestIdlerGoesFromSpinToPark(t *testing.T) {
	i := NewIdler(Adaptive, new(Waiter))
	i.napNs = 1
	q := &asked{empty: true}
	for range i.spins + i.yields {
		i.Idle(q)
	}
	if i.Stats().Parks != 0 || q.times != 0 {
		t.Fatalf("parked %d times during the spin and yield phases", i.Stats().Parks)
	}
	i.Idle(q)
	i.Idle(q)
	if got := i.Stats(); got.Parks != 2 || got.Rescues != 0 {
		t.Errorf("stats %+v, want 2 parks", got)
	}
	i.Reset()
	i.Idle(q)
	if got := i.Stats(); i.spins > 0 && got.Parks != 2 {
		t.Errorf("parked right after Reset")
	}
	for _, s := range []Strategy{Spin, Yield} {
		i := NewIdler(s, new(Waiter))
		for range 1000 {
			i.Idle(q)
		}
		if got := i.Stats().Parks; got != 0 {
			t.Errorf("%v parked %d times", s, got)
		}
	}
}

// A sleep with a short limit is short, is not counted as a rescue when there is work afterwards,
// and the next sleep has its usual length.
func TestIdleAtMost(t *testing.T) {
	const forever = 3600 * 1_000_000_000
	i := NewIdler(Park, new(Waiter))
	i.napNs = forever
	for range 3 {
		i.IdleAtMost(&arriving{}, 1000)
	}
	if got := i.Stats(); got.Parks != 3 || got.Rescues != 0 || i.napNs != forever {
		t.Errorf("stats %+v, then sleeps of %d ns", got, i.napNs)
	}
	i.napNs = 1000
	i.IdleAtMost(&arriving{}, forever)
	if got := i.Stats(); got.Parks != 4 || got.Rescues != 1 || i.napNs != 1000 {
		t.Errorf("not shortened: stats %+v, then sleeps of %d ns", got, i.napNs)
	}
}

// arriving is a Queue that is empty at the first look only.
type arriving struct{ looked bool }

func (a *arriving) Empty() bool {
	first := !a.looked
	a.looked = true
	return first
}

func TestParkLooksOnceMore(t *testing.T) {
	w := new(Waiter)
	const forever = 3600 * 1_000_000_000
	q := &asked{empty: false}
	if w.park(q, forever, registerBarrier(), nil) || q.times != 1 || w.word.Load() != awake {
		t.Errorf("looked %d times, word %d", q.times, w.word.Load())
	}
	// Where a publisher may be out of reach, a first look comes before a short sleep.
	for _, publishers := range []reach{nowhere, allProcesses} {
		q.times = 0
		want := 1
		if needsBarrier {
			want = 2
		}
		late := w.park(q, forever, publishers, nil)
		if late || q.times != want || w.word.Load() != awake {
			t.Errorf("reach %d: looked %d times, word %d", publishers, q.times, w.word.Load())
		}
	}
}

// One goroutine parks for an hour at a time, the other wakes it: a lost wake-up
// hangs the test.
func TestWakeEndsThisParkOrTheNext(t *testing.T) {
	const forever = 3600 * 1_000_000_000
	w, q := new(Waiter), &asked{empty: true}
	publishers := registerBarrier()
	w.Wake()
	w.park(q, forever, publishers, nil) // the nudge came before the park
	if q.times != 0 {
		t.Error("a nudged waiter looked at its ring")
	}
	n := rounds(20_000)
	var turn Sequence
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range n {
			for turn.Load() < int64(i) {
				runtime.Gosched()
			}
			w.Wake()
		}
	})
	for i := range n {
		w.park(q, forever, publishers, nil)
		turn.Store(int64(i + 1))
	}
	wg.Wait()
}

// Two goroutines pass one message back and forth and park at once whenever there is none. Sleeps
// are practically endless, so one lost wake-up hangs the test.
func TestParkLosesNoWakeUp(t *testing.T) {
	const hour = 3600 * 1_000_000_000
	tests := []struct {
		name     string
		strategy Strategy
		n        int
	}{
		{"park", Park, 100_000},
		{"adaptive", Adaptive, 200_000},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			rng, n := seeded(t), rounds(tt.n)
			there, back := newTestSPSC(t, 2), newTestSPSC(t, 2)
			delays := [64]uint8{}
			for i := range delays {
				delays[i] = uint8(rng.IntN(100))
			}
			echo := func(in, out *SPSC[msg], serve bool) IdleStats {
				idler := NewIdler(tt.strategy, in.Waiter())
				idler.napNs = hour
				for i := 0; i < n; {
					if serve {
						pause(int(delays[i%len(delays)])) // meet the other side at every stage of its park
						out.Claim().fill(uint64(i))
						out.Publish()
					}
					lo, hi := in.Ready(1)
					for lo == hi {
						idler.Idle(in)
						lo, hi = in.Ready(1)
					}
					idler.Reset()
					if !in.At(lo).ok(uint64(i)) {
						t.Errorf("message %d reads %v", i, *in.At(lo))
					}
					in.Release(hi)
					if !serve {
						out.Claim().fill(uint64(i))
						out.Publish()
					}
					i++
				}
				return idler.Stats()
			}
			var wg sync.WaitGroup
			var a, b IdleStats
			wg.Go(func() { a = echo(back, there, true) })
			wg.Go(func() { b = echo(there, back, false) })
			wg.Wait()
			if a.Rescues+b.Rescues > 2 {
				t.Errorf("rescued %d and %d times", a.Rescues, b.Rescues)
			}
			t.Logf("%+v %+v", a, b)
		})
	}
}

// TestNotifyWakesAfterASequence: no sleep ends by itself while there is work. A lost wake-up makes
// one last a minute.
func TestNotifyWakesAfterASequence(t *testing.T) {
	const minute = 60 * 1_000_000_000
	n := int64(rounds(50_000))
	var s, seen Sequence
	w := new(Waiter)
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := int64(1); i <= n; i++ {
			s.Release(i)
			w.Notify()
			for seen.Load() < i {
				runtime.Gosched()
			}
		}
	})
	q := &behind{s: &s}
	idler := NewIdler(Park, w)
	idler.napNs = minute
	for q.at < n {
		if q.Empty() {
			idler.Idle(q)
			if idler.Stats().Rescues != 0 {
				seen.Store(n) // the other goroutine waits no more
				t.Errorf("the wake-up for %d was lost: %+v", q.at+1, idler.Stats())
				break
			}
			continue
		}
		q.at = s.Load()
		seen.Store(q.at)
	}
	wg.Wait()
}

// behind is a Queue over a Sequence.
type behind struct {
	s  *Sequence
	at int64
}

func (b *behind) Empty() bool { return b.s.Load() == b.at }

func TestPinThreadRefusesCoresThatAreNot(t *testing.T) {
	for _, cpu := range []int{-2, 1 << 20} {
		if CanPin(cpu) == nil {
			t.Errorf("core %d can be bound", cpu)
		}
		if err := PinThread(cpu); err == nil {
			t.Errorf("cpu %d was accepted", cpu)
		}
	}
	if err := CanPin(-1); err != nil {
		t.Error(err)
	}
	if err := PinThread(-1); err != nil {
		t.Error(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() { // the thread and its pinning end with the goroutine
		if err := NewIdler(Spin, nil).Lock(0); (err == nil) != (runtime.GOOS == "linux") {
			t.Error(err)
		}
	})
	wg.Wait()
}
