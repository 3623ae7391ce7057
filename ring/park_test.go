package ring

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

const futexRequeue = 3

// moveSleepers has everybody who sleeps on one word sleep on another one, and says how
// many they were.
func moveSleepers(from, to *uint32) int {
	n, _, errno := unix.RawSyscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(from)), futexRequeue, 0,
		1<<30, uintptr(unsafe.Pointer(to)), 0)
	if errno != 0 {
		return 0
	}
	return int(n)
}

// wakeSleepers wakes everybody who sleeps on the word, and says how many they were.
func wakeSleepers(word *uint32) int {
	n, _, _ := unix.RawSyscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexWake, 1<<30, 0, 0, 0)
	return int(n)
}

// However many threads sleep on a waiter's word, which a peer in another process may have
// them do, whoever wakes the consumer pays for one.
func TestWakeWakesOneSleeper(t *testing.T) {
	const sleepers, forever = 5, 3600 * 1_000_000_000
	for _, tt := range []struct {
		name string
		wake func(*Waiter)
	}{
		{"a publisher", (*Waiter).Notify},
		{"Wake", (*Waiter).Wake},
	} {
		t.Run(tt.name, func(t *testing.T) {
			old := runtime.GOMAXPROCS(runtime.NumCPU() + sleepers)
			defer runtime.GOMAXPROCS(old)
			door, w := uint32(parked), new(Waiter)
			w.word.Store(parked)
			var all sync.WaitGroup
			for range sleepers {
				all.Go(func() { futexWaitFor(&door, forever) })
			}
			// On the waiter's word they are asleep for certain: only sleepers can be moved.
			for n := 0; n < sleepers; n += moveSleepers(&door, w.addr()) {
				runtime.Gosched()
			}
			tt.wake(w)
			if left := wakeSleepers(w.addr()); left != sleepers-1 {
				t.Errorf("%d of %d are still asleep, want %d", left, sleepers, sleepers-1)
			}
			atomic.StoreUint32(&door, awake)
			all.Wait()
		})
	}
}
