package blotter

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"posttrade/matcher"
	"posttrade/ring"
	"posttrade/ring/must"
)

func same(a, b Depth) bool {
	return a.Sequence == b.Sequence && slices.Equal(a.Bids, b.Bids) && slices.Equal(a.Asks, b.Asks)
}

// A reader copies the book itself: it does not ask the observer, which need not run.
func TestDepthDoesNotNeedTheObserver(t *testing.T) {
	g := smallGenesis()
	s, v := newSource(t, g, 33), newTestViews(t, g)
	v.SetWake(func() { t.Error("the observer is woken") })
	for step := range 3000 {
		observe(v, s.step())
		levels := 1 + step%40
		want := v.copyDepth(1, levels)
		if got, err := v.Depth(1, levels, 0); err != nil || !same(got, want) {
			t.Fatalf("step %d: got %+v, %v, want %+v", step, got, err, want)
		}
	}
	if v.asking.Load() != 0 || v.levels.changes.head.Load() != 0 ||
		v.levels.changes.users.Load() != 0 {
		t.Error("a reader has left something to do")
	}
}

// A reader asks a writer that has stopped in the middle of a command or of a change, and does not
// wait for ever.
func TestDepthBesideAWriterThatStandsStill(t *testing.T) {
	for name, halt := range map[string]func(v *Views){
		"in a command": func(v *Views) {
			v.current++
			v.levels.add(1, matcher.Buy, 7, 1)
		},
		"in a change": func(v *Views) { v.levels.trees[1<<1|1].lock.Begin() },
	} {
		v := newTestViews(t, smallGenesis())
		halt(v)
		if _, err := v.Depth(1, 5, 0); !errors.Is(err, ErrTimeout) || v.asking.Load() != 1 {
			t.Errorf("%s: %v, %d ask", name, err, v.asking.Load())
		}
		if _, err := v.Depth(2, 5, 0); err != nil {
			t.Errorf("%s, another book: %v", name, err)
		}
	}
}

// bookRig is a book that changes one level at a time, each in a command of its own.
type bookRig struct {
	v    *Views
	rng  *rand.Rand
	live []uint32
}

func newBookRig(t *testing.T, seed uint64) *bookRig {
	t.Logf("seed %d", seed)
	g := smallGenesis()
	g.Limits.MaxOpenOrders = 4096
	return &bookRig{v: newTestViews(t, g), rng: rand.New(rand.NewPCG(seed, 1))}
}

// change is one command, which changes up to three levels.
func (r *bookRig) change(wanted int) {
	l := &r.v.levels
	r.v.current++
	for range 1 + r.rng.IntN(3) {
		switch pick := r.rng.IntN(len(r.live) + wanted); {
		case pick >= len(r.live):
			side := matcher.Side(r.rng.IntN(2))
			r.live = append(r.live, l.add(1, side, 1+r.rng.Int64N(int64(4*wanted)), 1_000))
		case r.rng.IntN(3) == 0:
			if lv := &l.all[r.live[pick]]; lv.qty > 1000*int64(lv.orders-1)+500 {
				l.reduce(r.live[pick], 1)
			}
		default:
			at := r.live[pick]
			lv := l.all[at]
			l.leave(at, int32(lv.qty-1000*int64(lv.orders-1)))
			r.live = slices.Delete(r.live, pick, pick+1)
		}
	}
	r.v.applied.Release(int64(r.v.current))
}

// The pieces that a reader copies become the book as it is after the last command, whatever changes
// between the copies.
func TestPiecesBecomeOneMoment(t *testing.T) {
	r := newBookRig(t, 41)
	log := r.v.levels.changes
	for range 800 {
		r.change(600)
	}
	log.users.Add(1)
	moved := 0
	for round := range 3000 {
		b := bookCopy{most: 1 + r.rng.IntN(300), at: r.v.tables.Load()}
		first := log.head.Load()
		for i := range b.sides {
			s := &b.sides[i]
			s.side = 1<<1 | uint32(i)
			for !s.ends && len(s.levels) < b.most+fanout {
				if !b.copyPiece(s) {
					t.Fatal("a branch cannot be copied without a writer")
				}
				for range r.rng.IntN(6) {
					r.change(600)
					moved++
				}
			}
		}
		sequence, ok := r.v.endOf(max(b.sides[0].newest, b.sides[1].newest))
		want := r.v.copyDepth(1, b.most)
		got := Depth{Sequence: sequence, Bids: make([]Level, 0, b.most), Asks: make([]Level, 0, b.most)}
		r.change(600) // the level is outside the requested depth now
		for i := range b.sides {
			s := &b.sides[i]
			if ok = ok && s.bringUp(&r.v.levels, &b.at.trees[s.side], first,
				sequence); len(s.levels) < b.most && !s.ends {
				ok = false // too many levels are gone: a reader begins again
			}
		}
		got.Bids, got.Asks = b.sides[0].best(got.Bids), b.sides[1].best(got.Asks)
		if ok && !same(got, want) {
			t.Fatalf("round %d of %d levels\n got %+v\nwant %+v", round, b.most, got, want)
		}
		if !ok {
			t.Fatalf("round %d: not copied", round)
		}
	}
	if moved == 0 {
		t.Error("nothing has changed beside a reader")
	}
	// One change that was not noted, and changes that are overwritten a lap later.
	s := sideCopy{side: 1 << 1}
	b := bookCopy{at: r.v.tables.Load()}
	b.copyPiece(&s)
	first := log.head.Load()
	log.users.Add(-1)
	r.v.levels.add(1, matcher.Buy, 1, 1)
	log.users.Add(1)
	r.v.levels.add(1, matcher.Buy, 1, 1)
	if s.bringUp(&r.v.levels, &b.at.trees[s.side], first, r.v.current) {
		t.Error("a change that is missing is not missed")
	}
	s = sideCopy{side: 1 << 1}
	b.copyPiece(&s)
	first = log.head.Load()
	for range changesKept {
		r.v.levels.add(1, matcher.Buy, 1, 1)
	}
	if s.bringUp(&r.v.levels, &b.at.trees[s.side], first, r.v.current) {
		t.Error("a lap later the first change is still taken")
	}
}

// Readers of a deep book beside a writer that only changes it get books of one moment, each later
// than the one before.
func TestDeepBooksBesideABusyWriter(t *testing.T) {
	r := newBookRig(t, 43)
	var truth sync.Map // Depth by sequence
	var stop atomic.Bool
	var answers, asked atomic.Int64
	const wanted, levels = 400, 200
	for range 600 {
		r.change(wanted)
	}
	r.v.SetWake(func() { asked.Add(1) })
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for before := uint64(0); !stop.Load(); answers.Add(1) {
				d, err := r.v.Depth(1, levels, later)
				if err != nil {
					t.Error(err)
					return
				}
				want, ok := truth.Load(d.Sequence)
				for !ok && !stop.Load() { // the writer is about to store it
					runtime.Gosched()
					want, ok = truth.Load(d.Sequence)
				}
				if ok && !same(d, want.(Depth)) || d.Sequence < before {
					t.Errorf("after %d, before it %d: %d bids and %d asks are not the book of that command",
						d.Sequence, before, len(d.Bids), len(d.Asks))
					return
				}
				before = d.Sequence
			}
		})
	}
	raised := int64(0)
	for answers.Load() < 300 && !t.Failed() {
		if answers.Load() >= 25*(raised+1) { // and the trees move to larger tables
			raised++
			c := r.v.Capacities()
			c.Securities++
			c.Open += 10
			must.OK(t, r.v.grow(c))
		}
		for range 1 + r.rng.IntN(4) {
			r.change(wanted)
			d := r.v.copyDepth(1, levels)
			truth.Store(d.Sequence, d)
		}
		r.v.Flush()
	}
	stop.Store(true)
	for r.v.Flush() || r.v.asking.Load() != 0 {
		runtime.Gosched()
	}
	wg.Wait()
	t.Logf("%d answers, %d asked for", answers.Load(), asked.Load())
}

// BenchmarkDepthBesideTheWriter measures the cost of a read of the book for the writer, in the CPU
// time of its thread. The writer makes a change every microsecond or so, and readers only read. The
// cost of one read is the difference of cpu-ns/op with and without readers, times the changes per
// read.
func BenchmarkDepthBesideTheWriter(b *testing.B) {
	for _, readers := range []int{0, 1} {
		b.Run(fmt.Sprintf("op=level/readers=%d/levels=1000", readers), func(b *testing.B) {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			v, err := NewViews(benchGenesis())
			if err != nil {
				b.Fatal(err)
			}
			defer v.Close()
			for px := range int64(1100) {
				v.levels.add(1, matcher.Buy, 1+px, 10)
				v.levels.add(1, matcher.Sell, 2000+px, 10)
			}
			var stop atomic.Bool
			var reads atomic.Int64
			var wg sync.WaitGroup
			for range readers {
				wg.Go(func() {
					for !stop.Load() {
						if _, err := v.Depth(1, 1000, later); err != nil {
							b.Error(err)
							return
						}
						reads.Add(1)
					}
				})
			}
			begun := threadNanos(b)
			for i := 0; b.Loop(); i++ {
				at := v.levels.add(1, matcher.Side(i&1), 1000+int64(i&1023), 10)
				v.levels.leave(at, 10)
				v.current++
				v.applied.Release(int64(v.current))
				v.Flush()
				for range 20 {
					ring.Pause()
				}
			}
			worked := threadNanos(b) - begun
			stop.Store(true)
			for v.Flush() || readers > 0 && v.asking.Load() != 0 {
			}
			wg.Wait()
			b.ReportMetric(float64(worked)/float64(b.N), "cpu-ns/op")
			if n := reads.Load(); n > 0 {
				b.ReportMetric(float64(b.N)/float64(n), "ops/read")
			}
		})
	}
}

// threadNanos is the CPU time of this thread.
func threadNanos(b *testing.B) int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts); err != nil {
		b.Fatal(err)
	}
	return ts.Nano()
}
