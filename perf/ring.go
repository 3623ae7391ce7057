package perf

import (
	"cmp"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"time"
	"unsafe"

	"posttrade/ring"
)

// What the row asks for.
var (
	ringSingle = atLeast("P1", 6, "ring single, shared memory, against a Go channel")
	ringRate   = atLeast("P1", 140, "ring single, shared memory, M messages/s")
	ringShared = atLeast("P1", sameMemory, "ring single, shared memory against private")
	ringBatch  = atLeast("P1", 2.5, "ring batch 64 against a channel of slices")
	ringTrip   = atMost("P1", 1.35, "ring ping-pong p50 against the line round trip")
)

// message is what the ring rows transfer: one cache line.
type message struct{ words [8]uint64 }

// perfRingSlots is the capacity of the rings measured: that of the default input ring.
const perfRingSlots = 1 << 16

// lineRoundTrip is the best of five runs of lineTrips: the floor of every transfer in this run.
func lineRoundTrip(rounds int) (float64, error) {
	best := math.MaxFloat64
	for range 5 {
		one, err := lineTrips(rounds)
		if err != nil {
			return 0, err
		}
		best = min(best, one)
	}
	return best, nil
}

// lineTrips moves one cache line to and fro between two threads and returns the nanoseconds per
// round trip.
func lineTrips(rounds int) (float64, error) {
	words, err := ring.NewSlab[ring.Sequence](2)
	if err != nil {
		return 0, fmt.Errorf("perf: line round trip: %w", err)
	}
	defer words.Close()
	there, back := &words.Slice()[0], &words.Slice()[1]
	elapsed := pair(func() {
		for i := int64(1); i <= int64(rounds); i++ {
			there.Release(i)
			for back.Load() != i {
			}
		}
	}, func() {
		for i := int64(1); i <= int64(rounds); i++ {
			for there.Load() != i {
			}
			back.Release(i)
		}
	})
	return float64(elapsed.Nanoseconds()) / float64(rounds), nil
}

// pair runs two functions on threads of their own and returns how long both took.
func pair(a, b func()) time.Duration {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(runtime.NumCPU() + 2))
	var wg sync.WaitGroup
	gate := make(chan struct{})
	for i, f := range []func(){a, b} {
		wg.Add(1)
		go func() {
			defer wg.Done()
			// never unlocked: the thread ends with the goroutine, and its pinning with it
			runtime.LockOSThread()
			if runtime.NumCPU() > 1 {
				_ = ring.PinThread(i) // refused in a narrower cpuset: then not pinned
			}
			<-gate
			f()
		}()
	}
	start := time.Now()
	close(gate)
	wg.Wait()
	return time.Since(start)
}

// measureRing is row P1: 64-byte messages through a single-producer ring in private and in shared
// memory, beside a Go channel and a channel of slices.
func measureRing(r *Run) error {
	n := r.scale(20_000_000)
	channel := best(func() time.Duration { return channelSingle(n / 10) }) * 10
	slices64 := best(func() time.Duration { return channelOfSlices(n, 64) })
	r.bench("Ring/op=channel/batch=1", n, channel, perSecond(n, channel))
	r.bench("Ring/op=channel-of-slices/batch=64", n, slices64, perSecond(n, slices64))
	single, batch64, err := r.spscs(n)
	if err != nil {
		return err
	}
	trips, err := pingPongs(r.scale(80_000))
	if err != nil {
		return err
	}
	r.figures("Ring/op=ping-pong", metric{trips.p50, "p50-ns"}, metric{trips.p99, "p99-ns"},
		metric{trips.line, "line-ns"})
	shared := single.best["shared"]
	millions := func(d time.Duration) float64 { return float64(n) / d.Seconds() / 1e6 }
	r.judge(ringSingle, channel.Seconds()/shared.Seconds()).
		beside("channel %.4g M/s", millions(channel))
	r.judge(ringRate, millions(shared)).
		beside("line round trip %.0f ns", trips.line)
	r.judge(ringShared, single.ratio).beside("median of %d turns; private %.4g M/s", ringTurns,
		millions(single.best["private"]))
	r.judge(ringBatch, slices64.Seconds()/batch64.best["shared"].Seconds()).
		beside("channel of slices %.4g M/s", millions(slices64))
	r.judge(ringTrip, trips.p50/trips.line).
		beside("line round trip %.0f ns", trips.line)
	return nil
}

// ringTurns is how often private and shared memory take turns. The distance between two cores of a
// virtual machine changes within seconds, so only what lies side by side compares.
const ringTurns = 5

// memoryTurns is one way to use a ring, in private and in shared memory.
type memoryTurns struct {
	best  map[string]time.Duration
	ratio float64 // the rate in shared memory against private; the median of the turns
}

// spscs measures the ring in both kinds of memory, message by message and in batches.
func (r *Run) spscs(n int) (single, batch64 memoryTurns, err error) {
	for _, batch := range []int{0, 1, 16, 64, 256} {
		turns, err := spscInTurns(n, batch)
		if err != nil {
			return single, batch64, err
		}
		for _, memory := range ringMemories {
			name := fmt.Sprintf("Ring/op=spsc/batch=%d/memory=%s", batch, memory)
			if batch == 0 {
				name = "Ring/op=spsc-claim/batch=1/memory=" + memory
			}
			r.bench(name, n, turns.best[memory], perSecond(n, turns.best[memory]))
		}
		switch batch {
		case 1:
			single = turns
		case 64:
			batch64 = turns
		}
	}
	return single, batch64, nil
}

var ringMemories = []string{"private", "shared"}

func spscInTurns(n, batch int) (memoryTurns, error) {
	t := memoryTurns{best: map[string]time.Duration{}}
	var ratios []float64
	for range ringTurns {
		took := map[string]time.Duration{}
		for _, memory := range ringMemories {
			d, err := spsc(memory, n, batch)
			if err != nil {
				return t, err
			}
			took[memory] = d
			if t.best[memory] == 0 || d < t.best[memory] {
				t.best[memory] = d
			}
		}
		ratios = append(ratios, took["private"].Seconds()/took["shared"].Seconds())
	}
	t.ratio = median(ratios)
	return t, nil
}

// sameMemory is the share of the rate in private memory that shared memory must reach to count as
// equal.
const sameMemory = 0.9

func perSecond(n int, d time.Duration) metric {
	return metric{float64(n) / d.Seconds() / 1e6, "M/s"}
}

// best is the fastest of three runs: on a shared machine the slower ones measure the neighbours.
func best(f func() time.Duration) time.Duration {
	best := time.Duration(math.MaxInt64)
	for range 3 {
		best = min(best, f())
	}
	return best
}

// spsc moves n messages, batch messages per publication; with batch 0 it claims and publishes each
// message separately.
func spsc(memory string, n, batch int) (time.Duration, error) {
	size := ring.SPSCBytes[message](perfRingSlots)
	make := ring.Anonymous
	if memory == "shared" {
		make = func(bytes int) (*ring.Region, error) { return ring.Memfd("posttrade-perf", bytes) }
	}
	region, err := make(size)
	if err != nil {
		return 0, err
	}
	defer region.Close()
	q, err := ring.NewSPSC[message](region, perfRingSlots)
	if err != nil {
		return 0, err
	}
	var sum uint64
	send := func() { produce(q, n, batch) }
	if batch == 0 {
		send = func() { produceSingly(q, n) }
	}
	elapsed := pair(send, func() { sum = consume(q, n, batch) })
	if want := uint64(n) * uint64(n-1) / 2; sum != want {
		return 0, fmt.Errorf("ring lost or invented messages: sum %d, want %d", sum, want)
	}
	return elapsed, nil
}

// produce publishes after every batch messages, independent of the number of slots per claim.
func produce(q *ring.SPSC[message], n, batch int) {
	written := 0 // messages since the last publication
	for i := 0; i < n; {
		lo, hi := q.ClaimSome(n - i)
		for p := lo; p < hi; p++ {
			m := q.At(p)
			m.words[0], m.words[7] = uint64(i), uint64(i)
			i++
			if written++; written == batch {
				q.PublishTo(p + 1)
				written = 0
			}
		}
	}
	q.Publish()
}

// produceSingly claims and publishes each message separately.
func produceSingly(q *ring.SPSC[message], n int) {
	for i := 0; i < n; {
		if m := q.Claim(); m != nil {
			m.words[0], m.words[7] = uint64(i), uint64(i)
			q.Publish()
			i++
		}
	}
}

func consume(q *ring.SPSC[message], n, batch int) (sum uint64) {
	idler := ring.NewIdler(ring.Spin, q.Waiter())
	for got := 0; got < n; {
		lo, hi := q.Ready(max(batch, 64))
		if lo == hi {
			idler.Idle(q) // as a stage does: reading the producer's cache line delays the producer
			continue
		}
		idler.Reset()
		for p := lo; p < hi; p++ {
			sum += q.At(p).words[7]
		}
		q.Release(hi)
		got += int(hi - lo)
	}
	return sum
}

func channelSingle(n int) time.Duration {
	c := make(chan message, perfRingSlots)
	return pair(func() {
		for i := range n {
			c <- message{[8]uint64{uint64(i)}}
		}
		close(c)
	}, func() {
		for range c {
		}
	})
}

func channelOfSlices(n, batch int) time.Duration {
	c := make(chan []message, perfRingSlots/batch)
	free := make(chan []message, perfRingSlots/batch+2)
	for range cap(free) {
		free <- make([]message, 0, batch)
	}
	return pair(func() {
		for i := 0; i < n; {
			b := (<-free)[:0]
			for len(b) < batch && i < n {
				b = append(b, message{[8]uint64{uint64(i)}})
				i++
			}
			c <- b
		}
		close(c)
	}, func() {
		var sum uint64
		for b := range c {
			for k := range b {
				sum += b[k].words[0]
			}
			free <- b
		}
	})
}

// trips are the times of round trips through two rings, and of a bare line beside them, in
// nanoseconds.
type trips struct{ p50, p99, line float64 }

// pingPongs measures line and rings in turns and returns the turn with the median ratio: on a
// shared machine the placement of the two cores changes within a second.
func pingPongs(rounds int) (trips, error) {
	turns := make([]trips, 9)
	for i := range turns {
		t := &turns[i]
		before, err := lineTrips(rounds / 4)
		if err != nil {
			return trips{}, err
		}
		if t.p50, t.p99, err = pingPong(rounds); err != nil {
			return trips{}, err
		}
		after, err := lineTrips(rounds / 4)
		if err != nil {
			return trips{}, err
		}
		t.line = (before + after) / 2
	}
	slices.SortFunc(turns, func(a, b trips) int { return cmp.Compare(a.p50/a.line, b.p50/b.line) })
	return turns[len(turns)/2], nil
}

// pingPong sends one message there and another back, and returns the p50 and p99 of a round trip in
// nanoseconds. It times trips in groups of eight, because a reading of the clock costs a fifth of a
// trip.
func pingPong(rounds int) (p50, p99 float64, err error) {
	const group = 8
	rings := [2]*ring.SPSC[message]{}
	for i := range rings {
		region, err := ring.Memfd("posttrade-perf", ring.SPSCBytes[message](64))
		if err != nil {
			return 0, 0, err
		}
		defer region.Close()
		if rings[i], err = ring.NewSPSC[message](region, 64); err != nil {
			return 0, 0, err
		}
	}
	send := func(q *ring.SPSC[message], v uint64) { q.Claim().words[0] = v; q.Publish() }
	receive := func(q *ring.SPSC[message]) uint64 {
		for {
			if lo, hi := q.Ready(1); hi > lo {
				v := q.At(lo).words[0]
				q.Release(hi)
				return v
			}
		}
	}
	samples := make([]int64, 0, rounds/group)
	rounds = rounds / group * group
	pair(func() {
		for i := 0; i < rounds; i += group {
			begun := time.Now()
			for k := range group {
				send(rings[0], uint64(i+k))
				receive(rings[1])
			}
			samples = append(samples, time.Since(begun).Nanoseconds())
		}
	}, func() {
		for range rounds {
			send(rings[1], receive(rings[0]))
		}
	})
	return float64(percentile(samples, 50)) / group, float64(percentile(samples, 99)) / group, nil
}

var _ = [1]struct{}{}[unsafe.Sizeof(message{})-64]
