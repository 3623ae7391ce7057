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

// moveSleepers moves all threads that sleep on one word to another word, and returns how many.
func moveSleepers(from, to *uint32) int {
	n, _, errno := unix.RawSyscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(from)), futexRequeue, 0,
		1<<30, uintptr(unsafe.Pointer(to)), 0)
	if errno != 0 {
		return 0
	}
	return int(n)
}

// wakeSleepers wakes all threads that sleep on the word, and returns how many.
func wakeSleepers(word *uint32) int {
	n, _, _ := unix.RawSyscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexWake, 1<<30, 0, 0,
		0)
	return int(n)
}

// A peer in another process may let many threads sleep on a waiter's word. A goroutine that wakes
// the consumer still pays for one wake.
func TestWakeWakesOneSleeper(t *testing.T) {
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
			d := dormitory{door: parked}
			defer d.clear()
			for range sleepers {
				d.all.Go(d.sleep)
			}
			left := 0
			for range 100 { // a signal may wake a sleeper at that moment
				w := new(Waiter)
				d.gather(w.addr())
				w.word.Store(parked)
				tt.wake(w)
				if left = wakeSleepers(w.addr()); left == sleepers-1 {
					return
				}
			}
			t.Errorf("%d of %d are still asleep, want %d", left, sleepers, sleepers-1)
		})
	}
}

const sleepers = 5

// dormitory is a set of threads that sleep on its door, or on a word to which they are moved from
// there. A thread that a signal wakes returns to the door.
type dormitory struct {
	door, aside uint32
	all         sync.WaitGroup
}

func (d *dormitory) sleep() {
	const hour = 3600 * 1_000_000_000
	for atomic.LoadUint32(&d.door) == parked {
		futexWaitFor(&d.door, hour)
	}
}

// gather makes all of them sleep on a word at once: only sleepers can be moved.
func (d *dormitory) gather(word *uint32) {
	for {
		moveSleepers(&d.door, word)
		if moveSleepers(word, &d.aside) == sleepers && moveSleepers(&d.aside, word) == sleepers {
			return
		}
		moveSleepers(&d.aside, word)
		runtime.Gosched()
	}
}

// clear wakes all threads and ends them.
func (d *dormitory) clear() {
	atomic.StoreUint32(&d.door, awake)
	gone := make(chan struct{})
	go func() { d.all.Wait(); close(gone) }()
	for {
		select {
		case <-gone:
			return
		default:
			wakeSleepers(&d.door)
			wakeSleepers(&d.aside)
			runtime.Gosched()
		}
	}
}
