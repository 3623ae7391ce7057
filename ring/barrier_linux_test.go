package ring

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"posttrade/ring/must"
)

// The kernel's barrier for several processes passes over a core that rested on a thread of the
// process while the process registered. The barrier of a parking consumer must not.
func TestBarrierReachesACoreThatRestedAtRegistration(t *testing.T) {
	for range 3 { // one process registers once
		must.OK(t, start(t, "late", rounds(200_000)).Wait())
	}
}

// twoCores are cores that this process may use; the same one twice if it may use one only.
func twoCores() (first, second int, err error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return 0, 0, err
	}
	var cores []int
	for cpu := 0; len(cores) < min(2, set.Count()); cpu++ {
		if set.IsSet(cpu) {
			cores = append(cores, cpu)
		}
	}
	return cores[0], cores[len(cores)-1], nil
}

// childLate lets a publisher's thread rest on a core of its own and registers only then. Publisher
// and consumer then store and look at the same moment, as in doc.go: that neither sees the other's
// store is a lost wake-up.
func childLate(n int) error {
	consumer, publisher, err := twoCores()
	if err != nil {
		return err
	}
	if consumer == publisher {
		n = 100 // each turn takes a time slice
	}
	runtime.GOMAXPROCS(4)
	var (
		head, waiter  [16]uint64 // the first word of each has lines of its own
		sawParked     uint64
		round, played atomic.Int64
		pinned        = make(chan error, 1)
		wg            sync.WaitGroup
	)
	wg.Go(func() {
		runtime.LockOSThread()
		pinned <- PinThread(publisher)
		nap(int64(100 * time.Millisecond))
		for i := int64(1); i <= int64(n); i++ {
			for round.Load() != i {
				Pause()
			}
			StoreRelease(&head[0], 1)
			sawParked = atomic.LoadUint64(&waiter[0])
			played.Store(i)
		}
	})
	runtime.LockOSThread()
	if err := <-pinned; err != nil {
		return err
	}
	if err := PinThread(consumer); err != nil {
		return err
	}
	nap(int64(30 * time.Millisecond)) // the publisher's core rests
	reached := registerBarrier()
	nap(int64(100 * time.Millisecond))
	lost := 0
	for i := 1; i <= n; i++ {
		atomic.StoreUint64(&head[0], 0)
		atomic.StoreUint64(&waiter[0], 0)
		round.Store(int64(i))
		for range i % 60 {
			pause(1)
		}
		atomic.StoreUint64(&waiter[0], 1)
		if needsBarrier && !reached.barrier() {
			nap(DrainNs)
		}
		sawHead := atomic.LoadUint64(&head[0])
		for played.Load() != int64(i) {
			Pause()
		}
		if sawHead == 0 && sawParked == 0 {
			lost++
		}
	}
	wg.Wait()
	if lost > 0 {
		return fmt.Errorf("%d of %d wake-ups were lost", lost, n)
	}
	return nil
}
