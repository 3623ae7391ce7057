package ring

import (
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

// rounds is the length of the tests with real threads; it is shorter under the race detector.
func rounds(n int) int {
	if raceEnabled || testing.Short() {
		return n / 10
	}
	return n
}

func TestSPSCKeepsOrderBetweenThreads(t *testing.T) {
	for _, strategy := range []Strategy{Spin, Yield, Adaptive, Park} {
		t.Run(strategy.String(), func(t *testing.T) {
			rng, n := seeded(t), rounds(300_000)
			r := newTestSPSC(t, 64)
			var wg sync.WaitGroup
			wg.Go(func() {
				for i := 0; i < n; {
					lo, hi := r.ClaimSome(min(1+rng.IntN(16), n-i))
					if lo == hi {
						runtime.Gosched()
						continue
					}
					for pos := lo; pos < hi; pos++ {
						r.At(pos).fill(uint64(pos))
					}
					r.Publish()
					i = int(hi)
				}
			})
			idler := NewIdler(strategy, r.Waiter())
			for next := int64(0); next < int64(n); {
				lo, hi := r.Ready(32)
				if lo == hi {
					idler.Idle(r)
					if strategy == Spin {
						runtime.Gosched() // otherwise the producer waits for its turn
					}
					continue
				}
				idler.Reset()
				for ; next < hi; next++ {
					if !r.At(next).ok(uint64(next)) {
						t.Fatalf("slot %d holds %v", next, *r.At(next))
					}
				}
				r.Release(hi)
			}
			wg.Wait()
			if r.Corrupt() || r.Depth() != 0 {
				t.Errorf("corrupt %v, depth %d", r.Corrupt(), r.Depth())
			}
		})
	}
}

func TestMPSCLosesAndDoublesNothing(t *testing.T) {
	const producers = 8
	rng, n := seeded(t), rounds(40_000)
	r := newTestMPSC(t, 128)
	var wg sync.WaitGroup
	var full atomic.Int64
	for p := range producers {
		seed := rng.Uint64()
		wg.Go(func() {
			for i := 0; i < n; {
				size := min(1+int(seed>>(i%60)&7), n-i)
				lo, ok := r.ClaimN(size)
				if !ok {
					full.Add(1)
					runtime.Gosched()
					continue
				}
				for k := range size {
					r.At(lo + int64(k)).fill(uint64(p)<<32 | uint64(i+k))
				}
				r.Publish(lo, size)
				i += size
			}
		})
	}
	idler := NewIdler(Adaptive, r.Waiter())
	var next [producers]uint64
	for left := producers * n; left > 0; {
		lo, hi := r.Ready(50)
		if lo == hi {
			idler.Idle(r)
			continue
		}
		idler.Reset()
		for pos := lo; pos < hi; pos++ {
			slot := r.At(pos)
			p := slot.w[0] >> 32
			if p >= producers || !slot.ok(p<<32|next[p]) {
				t.Fatalf("slot %d holds %v, producer %d is at %d", pos, *slot, p, next[p])
			}
			next[p]++
		}
		left -= int(hi - lo)
		r.Release(hi)
	}
	wg.Wait()
	if r.Depth() != 0 || !r.Empty() || idler.Stats().Rescues != 0 {
		t.Errorf("depth %d, empty %v, stats %+v", r.Depth(), r.Empty(), idler.Stats())
	}
	t.Logf("refused as full %d times, %+v", full.Load(), idler.Stats())
}

// The gating reader gets every slot in order. A free reader gets whole slots in order, and the
// slots that it gets and misses add up. A free reader that waits for half the stream before its
// first look is certainly lapped.
func TestFanoutReadersSeeWholeSlots(t *testing.T) {
	rng, n := seeded(t), int64(rounds(400_000))
	r := newTestFanout(t, 256)
	prompt, late := r.Reader(), r.Reader() // before the first publication: they begin at 0
	var wg sync.WaitGroup
	wg.Go(func() {
		var limit int64
		for pos := int64(0); pos < n; {
			hi := min(pos+1+rng.Int64N(40), n)
			if hi > limit {
				if limit = r.Limit(); hi > limit {
					runtime.Gosched()
					continue
				}
			}
			for ; pos < hi; pos++ {
				r.Slots()[pos&r.Mask()].fill(uint64(pos))
			}
			r.PublishTo(hi)
		}
	})
	wg.Go(func() {
		idler := NewIdler(Adaptive, r.Waiter())
		for next := int64(0); next < n; {
			lo, hi := r.Ready(100)
			if lo == hi {
				idler.Idle(r)
				continue
			}
			idler.Reset()
			for ; next < hi; next++ {
				if !r.At(next).ok(uint64(next)) {
					t.Errorf("gating reader: slot %d holds %v", next, *r.At(next))
					r.Release(n) // let the producer finish
					return
				}
			}
			r.Release(hi)
		}
	})
	free := func(name string, rd *Reader[msg], from int64) {
		dst, got, laps := make([]msg, 64), int64(0), 0
		for r.Published() < from {
			runtime.Gosched()
		}
		for rd.Position() < n {
			pos := rd.Position()
			k, err := rd.Next(dst)
			if errors.Is(err, ErrLapped) {
				laps++
				continue
			}
			if k == 0 {
				runtime.Gosched()
			}
			for i := range k {
				if !dst[i].ok(uint64(pos) + uint64(i)) {
					t.Errorf("%s: position %d copied as %v", name, pos+int64(i), dst[i])
					return
				}
			}
			got += int64(k)
		}
		if got+rd.Missed() != n || from > 0 && laps == 0 {
			t.Errorf("%s: %d read, %d missed, %d in all, lapped %d times", name, got, rd.Missed(), n, laps)
		}
		t.Logf("%s: %d read, %d missed, lapped %d times", name, got, rd.Missed(), laps)
	}
	wg.Go(func() { free("prompt reader", prompt, 0) })
	wg.Go(func() { free("late reader", late, n/2) })
	wg.Wait()
}

// The ring is small, the producer never waits, and the reader copies nearly all slots that may be
// whole. So the producer often overwrites slots in the middle of a copy.
func TestLappedReaderReturnsNoTornSlot(t *testing.T) {
	n := int64(rounds(3_000_000))
	r := newTestFanout(t, 64)
	var wg sync.WaitGroup
	wg.Go(func() {
		for pos := int64(0); pos < n; {
			hi := min(pos+32, n)
			r.Limit()
			for ; pos < hi; pos++ {
				r.At(pos).fill(uint64(pos))
			}
			r.PublishTo(hi)
			_, hi = r.Ready(64) // the producer plays the gating reader too
			r.Release(hi)
		}
	})
	rd, dst, laps := r.Reader(), make([]msg, 32), 0
	for rd.Position() < n {
		pos := rd.Position()
		k, err := rd.Next(dst)
		if err != nil {
			laps++
		}
		for i := range k {
			if !dst[i].ok(uint64(pos) + uint64(i)) {
				t.Errorf("position %d copied as %v", pos+int64(i), dst[i])
				rd.pos = n
			}
		}
		if k == 0 && err == nil {
			runtime.Gosched()
		}
	}
	wg.Wait()
	t.Logf("%d missed, lapped %d times", rd.Missed(), laps)
}

func TestSequenceCarriesWhatWasWrittenBefore(t *testing.T) {
	n := int64(rounds(200_000))
	var s Sequence
	data := make([]int64, n+1)
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := int64(1); i <= n; i++ {
			data[i] = i
			if i%2 == 0 {
				s.Store(i)
			} else {
				s.Release(i)
			}
		}
	})
	for seen := int64(0); seen < n; {
		if got := s.Load(); got < seen {
			t.Fatalf("the sequence went back from %d to %d", seen, got)
		} else {
			seen = got
		}
		if data[seen] != seen {
			t.Fatalf("at %d the data says %d", seen, data[seen])
		}
		runtime.Gosched()
	}
	wg.Wait()
}

func TestSeqLockShowsWholeRows(t *testing.T) {
	const words = 9
	n := uint64(rounds(200_000))
	var lock SeqLock
	row := make([]uint64, words)
	var done atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() {
		src := make([]uint64, words)
		for i := uint64(1); i <= n; i++ {
			for k := range src {
				src[k] = i
			}
			lock.Begin()
			CopyIn(row, src)
			lock.End()
			if i%64 == 0 {
				runtime.Gosched()
			}
		}
		done.Store(true)
	})
	var whole, torn int
	dst := make([]uint64, words)
	for !done.Load() || whole == 0 {
		if runtime.GOOS == "js" {
			runtime.Gosched() // to the writer: there is one thread
		}
		stamp, ok := lock.Read()
		if !ok {
			torn++
			continue
		}
		CopyOut(dst, row)
		if lock.Retry(stamp) {
			torn++
			continue
		}
		whole++
		for k := range dst {
			if dst[k] != stamp/2 {
				t.Fatalf("row %v at stamp %d", dst, stamp)
			}
		}
	}
	wg.Wait()
	t.Logf("%d whole, %d thrown away", whole, torn)
}

func TestSeqLockRefusesWhileTheRowChanges(t *testing.T) {
	var lock SeqLock
	stamp, ok := lock.Read()
	if !ok || lock.Retry(stamp) {
		t.Error("an untouched row is not readable")
	}
	lock.Begin()
	if _, ok := lock.Read(); ok || !lock.Retry(stamp) {
		t.Error("a changing row is readable")
	}
	lock.End()
	if _, ok := lock.Read(); !ok || !lock.Retry(stamp) {
		t.Error("after the change the old stamp is good or the row unreadable")
	}
}
