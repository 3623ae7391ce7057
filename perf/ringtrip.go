package perf

import (
	"cmp"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"time"

	"posttrade/ring"
)

// trips are the times of round trips through two rings, and of a bare line beside them, in
// nanoseconds. line is the mean of a reading before and one after the rings.
type trips struct{ p50, p99, line float64 }

// lineRoundTrip is the best of five runs of lineTrips, in nanoseconds: the floor of every transfer
// between threads in this run.
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
// round trip. It has no payload, no capacity and no waiting strategy: what a ring adds to it is the
// ring's. The two sequences are padded, so that they share no line.
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

// pair runs two functions on threads of their own and returns how long both took. Thread i is
// pinned to core i where there are two cores, because a thread that moves would measure the
// scheduler. While they run there are two scheduler processors more than cores, so that spinning
// threads leave some for the runtime's own work.
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

// pingPongs measures line and rings in turns and returns the turn with the median ratio of both p50
// and line: on a shared machine the placement of the two cores changes within a second.
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
//
// Both sides spin, without a waiting strategy. The p99 is that of groups of eight trips, which
// hides a single slow trip; nothing is judged by it.
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
