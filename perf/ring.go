package perf

import (
	"fmt"
	"math"
	"time"
	"unsafe"

	"posttrade/ring"
)

// What the row asks for. The ratios compare with what Go offers by itself, in the same run. 140
// million messages a second is in the range of the fastest rings of other languages, and holds for
// two cores that are near each other: with the cores far apart the figure measures their distance,
// which stands beside it. A round trip through two rings may take a third longer than the bare
// cache line.
var (
	ringSingle = atLeast("P1", 6, "ring single, shared memory, against a Go channel")
	ringRate   = atLeast("P1", 140, "ring single, shared memory, M messages/s")
	ringShared = atLeast("P1", sameMemory, "ring single, shared memory against private")
	ringBatch  = atLeast("P1", 2.5, "ring batch 64 against a channel of slices")
	ringTrip   = atMost("P1", 1.35, "ring ping-pong p50 against the line round trip")
)

// message is what the ring rows transfer: one cache line. Producer and consumer touch its first and
// its last word, so that a whole line must move.
type message struct{ words [8]uint64 }

// perfRingSlots is the capacity of the rings measured: that of the default input ring, 4 MiB of
// slots.
const perfRingSlots = 1 << 16

// measureRing is row P1: 64-byte messages through a single-producer ring in private and in shared
// memory, beside a Go channel and a channel of slices.
//
// The load is one thread that sends as fast as it can and one that receives and adds up a word of
// each message, which also shows that none was lost. It is the rate of a full pipe. It says nothing
// of the latency at a lower rate, for which ping-pong stands, nor of a ring with many producers or
// consumers.
//
// The figures are million messages a second, and nanoseconds a round trip. The channel gets a tenth
// of the messages, and its time is multiplied. A figure lies when anything else wants one of the
// two cores, or when the kernel refuses the pinning.
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
// virtual machine changes within seconds, so only what lies side by side compares. The ratio is the
// median of the turns; the rates are those of the best turn.
const ringTurns = 5

// memoryTurns is one way to use a ring, in private and in shared memory.
type memoryTurns struct {
	// best is the least time of the turns by the kind of memory: "private" or "shared".
	best map[string]time.Duration
	// ratio is the rate in shared memory against private; the median of the turns.
	ratio float64
}

// spscs measures the ring in both kinds of memory, message by message and in batches. It returns
// the two that are judged: batch 1, which publishes after every message with as few claims as
// possible, and batch 64. Batch 0 claims each message separately; it is shown and not judged.
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

// ringMemories are the kinds of memory in the order of a turn: private is anonymous memory of the
// process, shared is a memfd, as sessions of other processes map it.
var ringMemories = []string{"private", "shared"}

// spscInTurns measures one way to use the ring in both kinds of memory, by turns, n messages each
// time.
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
// equal. Two turns of the same memory differ too, so the limit is not 1.
const sameMemory = 0.9

// perSecond is the rate of n messages in d, in millions a second.
func perSecond(n int, d time.Duration) metric {
	return metric{float64(n) / d.Seconds() / 1e6, "M/s"}
}

// best is the fastest of three runs: on a shared machine the slower ones measure the neighbours. It
// is for floors and peers, so that a comparator is not slower than it is.
func best(f func() time.Duration) time.Duration {
	best := time.Duration(math.MaxInt64)
	for range 3 {
		best = min(best, f())
	}
	return best
}

// spsc moves n messages, batch messages per publication; with batch 0 it claims and publishes each
// message separately.
//
// memory is "private" or "shared". The consumer adds up the numbers of the messages; another sum
// than that of 0 to n-1 is an error, because a ring that loses messages is fast.
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

// produceSingly claims and publishes each message separately, and spins while the ring is full.
func produceSingly(q *ring.SPSC[message], n int) {
	for i := 0; i < n; {
		if m := q.Claim(); m != nil {
			m.words[0], m.words[7] = uint64(i), uint64(i)
			q.Publish()
			i++
		}
	}
}

// consume takes n messages and adds up their last words. It releases what it has read in one piece,
// at most 64 slots or a batch, as the stages of an engine do.
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

// Compile-time check: a message is one cache line. The index is out of range otherwise.
var _ = [1]struct{}{}[unsafe.Sizeof(message{})-64]
