package ring

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
)

// benchCapacity is 4 MiB of slots: with a much smaller ring the two threads work in lockstep, and
// the benchmark measures the machine's line transfers.
const benchCapacity = 65536

// readBatch is what the consumer of an MPSC takes at once; the others take a batch.
const readBatch = 256

// BenchmarkRing: op=spsc, fanout and mpsc move 64-byte messages from one thread
// to another, batch is the number of slots a publication; op=ping-pong is one
// message there and one back. An op is one message.
func BenchmarkRing(b *testing.B) {
	for _, batch := range []int{1, 16, 64, 256} {
		b.Run(fmt.Sprintf("op=spsc/batch=%d", batch), func(b *testing.B) {
			benchSPSC(b, newTestSPSC(b, benchCapacity), batch)
		})
	}
	b.Run("op=spsc/batch=1/size=shared", func(b *testing.B) {
		region, err := Memfd("bench", SPSCBytes[msg](benchCapacity))
		if err != nil {
			b.Fatal(err)
		}
		defer region.Close()
		r, err := NewSPSC[msg](region, benchCapacity)
		if err != nil {
			b.Fatal(err)
		}
		benchSPSC(b, r, 1)
	})
	for _, batch := range []int{1, 64} {
		b.Run(fmt.Sprintf("op=fanout/batch=%d", batch), func(b *testing.B) {
			benchFanout(b, newTestFanout(b, benchCapacity), batch)
		})
		b.Run(fmt.Sprintf("op=mpsc/producers=1/batch=%d", batch), func(b *testing.B) {
			benchMPSC(b, newTestMPSC(b, benchCapacity), batch)
		})
	}
	b.Run("op=ping-pong", func(b *testing.B) {
		benchPingPong(b, newTestSPSC(b, benchCapacity), newTestSPSC(b, benchCapacity))
	})
	b.Run("op=channel/batch=1", benchChannel)
}

// onThread runs f on a thread of its own, pinned when there are enough cores.
func onThread(wg *sync.WaitGroup, cpu int, f func()) {
	wg.Go(func() {
		runtime.LockOSThread() // never unlocked: the thread ends with its pinning
		if runtime.NumCPU() > 1 {
			PinThread(cpu)
		}
		f()
	})
}

// await pauses, and yields now and then, so that a benchmark ends on a busy machine too.
func await(spins *int) {
	pause(pausesPerSpin)
	if *spins++; *spins&0xfff == 0 {
		YieldThread()
	}
}

func benchSPSC(b *testing.B, r *SPSC[msg], batch int) {
	r.region.Populate()
	n, step := int64(b.N), int64(batch)
	var wg sync.WaitGroup
	var got uint64
	b.ResetTimer()
	onThread(&wg, 0, func() {
		var spins int
		for i := int64(0); i < n; {
			if batch == 1 {
				slot := r.Claim()
				if slot == nil {
					await(&spins)
					continue
				}
				slot.fill(uint64(i))
				r.Publish()
				i++
				continue
			}
			lo, hi := r.ClaimSome(int(n - i))
			if lo == hi {
				await(&spins)
				continue
			}
			for pos := lo; pos < hi; pos++ {
				r.At(pos).fill(uint64(pos))
				if (pos+1)%step == 0 {
					r.PublishTo(pos + 1)
				}
			}
			i = hi
		}
		r.Publish()
	})
	onThread(&wg, 1, func() {
		var spins int
		for i := int64(0); i < n; {
			lo, hi := r.Ready(batch)
			if lo == hi {
				await(&spins)
				continue
			}
			for pos := lo; pos < hi; pos++ {
				got += r.At(pos).sum()
			}
			r.Release(hi)
			i = hi
		}
	})
	wg.Wait()
	b.StopTimer()
	mustSum(b, got, uint64(n))
}

func benchFanout(b *testing.B, r *Fanout[msg], batch int) {
	r.region.Populate()
	n, step := int64(b.N), int64(batch)
	var wg sync.WaitGroup
	var got uint64
	b.ResetTimer()
	onThread(&wg, 0, func() {
		var spins int
		var limit int64
		slots, mask := r.Slots(), r.Mask()
		for pos := int64(0); pos < n; {
			hi := min(pos+step, n)
			if hi > limit {
				if limit = r.Limit(); hi > limit {
					await(&spins)
					continue
				}
			}
			for ; pos < hi; pos++ {
				slots[pos&mask].fill(uint64(pos))
			}
			r.PublishTo(hi)
		}
	})
	onThread(&wg, 1, func() {
		var spins int
		slots, mask := r.Slots(), r.Mask()
		for i := int64(0); i < n; {
			lo, hi := r.Ready(batch)
			if lo == hi {
				await(&spins)
				continue
			}
			for pos := lo; pos < hi; pos++ {
				got += slots[pos&mask].sum()
			}
			r.Release(hi)
			i = hi
		}
	})
	wg.Wait()
	b.StopTimer()
	mustSum(b, got, uint64(n))
}

func benchMPSC(b *testing.B, r *MPSC[msg], batch int) {
	r.region.Populate()
	n, step := int64(b.N), int64(batch)
	var wg sync.WaitGroup
	var got uint64
	b.ResetTimer()
	onThread(&wg, 0, func() {
		var spins int
		for i := int64(0); i < n; {
			size := min(step, n-i)
			lo, ok := r.ClaimN(int(size))
			if !ok {
				await(&spins)
				continue
			}
			for pos := lo; pos < lo+size; pos++ {
				r.At(pos).fill(uint64(pos))
			}
			r.Publish(lo, int(size))
			i += size
		}
	})
	onThread(&wg, 1, func() {
		var spins int
		for i := int64(0); i < n; {
			lo, hi := r.Ready(readBatch)
			if lo == hi {
				await(&spins)
				continue
			}
			for pos := lo; pos < hi; pos++ {
				got += r.At(pos).sum()
			}
			r.Release(hi)
			i = hi
		}
	})
	wg.Wait()
	b.StopTimer()
	mustSum(b, got, uint64(n))
}

func benchPingPong(b *testing.B, there, back *SPSC[msg]) {
	n := b.N
	var wg sync.WaitGroup
	b.ResetTimer()
	onThread(&wg, 0, func() {
		var spins int
		for i := range n {
			there.Claim().fill(uint64(i))
			there.Publish()
			lo, hi := back.Ready(1)
			for lo == hi {
				await(&spins)
				lo, hi = back.Ready(1)
			}
			back.Release(hi)
		}
	})
	onThread(&wg, 1, func() {
		var spins int
		for range n {
			lo, hi := there.Ready(1)
			for lo == hi {
				await(&spins)
				lo, hi = there.Ready(1)
			}
			*back.Claim() = *there.At(lo)
			there.Release(hi)
			back.Publish()
		}
	})
	wg.Wait()
}

func benchChannel(b *testing.B) {
	n := b.N
	ch := make(chan msg, benchCapacity)
	var wg sync.WaitGroup
	var got uint64
	wg.Go(func() {
		for i := range n {
			var m msg
			m.fill(uint64(i))
			ch <- m
		}
	})
	wg.Go(func() {
		for range n {
			m := <-ch
			got += m.sum()
		}
	})
	wg.Wait()
	mustSum(b, got, uint64(n))
}

func mustSum(b *testing.B, got, n uint64) {
	b.Helper()
	if want := 8*(n*(n-1)/2) + 28*n; got != want {
		b.Fatalf("sum of %d messages is %d, want %d", n, got, want)
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds()/1e6, "Mmsg/s")
}
