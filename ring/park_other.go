//go:build !linux

package ring

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
)

// membarrierGlobalExpedited is the command that park asks membarrier for.
const membarrierGlobalExpedited = 0

// ward is the sleepers of the words that share it, oldest first. It stands for the futex.
type ward struct {
	mu   sync.Mutex
	beds []bed
}

type bed struct {
	word *uint32
	wake chan struct{} // closed by the waker
}

// wards has a place for each word by its address. A word has one sleeper at a time, its consumer.
var wards [64]ward

func wardOf(word *uint32) *ward {
	return &wards[(uintptr(unsafe.Pointer(word))>>6)%uintptr(len(wards))]
}

// futexWaitFor sleeps while the word says parked; true when the time ran out.
func futexWaitFor(word *uint32, timeoutNs int64) bool {
	w := wardOf(word)
	w.mu.Lock()
	if atomic.LoadUint32(word) != parked { // a waker changes the word before it looks here
		w.mu.Unlock()
		return false
	}
	wake := make(chan struct{})
	w.beds = append(w.beds, bed{word, wake})
	w.mu.Unlock()
	timer := time.NewTimer(time.Duration(timeoutNs))
	defer timer.Stop()
	select {
	case <-wake:
		return false
	case <-timer.C:
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range w.beds {
		if w.beds[i].wake == wake {
			w.beds = append(w.beds[:i], w.beds[i+1:]...)
			return true
		}
	}
	return false // woken in the same moment
}

// futexWakeOne wakes the consumer that sleeps on the word.
func futexWakeOne(word *uint32) {
	w := wardOf(word)
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range w.beds {
		if w.beds[i].word == word {
			close(w.beds[i].wake)
			w.beds = append(w.beds[:i], w.beds[i+1:]...)
			return
		}
	}
}

// registerBarrier and membarrier find no barrier of processes: a parking consumer drains instead.
func registerBarrier() bool { return false }

func membarrier(uintptr) bool { return false }

// nap sleeps for a while.
func nap(ns int64) { time.Sleep(time.Duration(ns)) }

// YieldThread gives the core to another goroutine. In a browser and under Node timers run only when
// no goroutine can.
func YieldThread() {
	if runtime.GOOS == "js" {
		time.Sleep(1)
		return
	}
	runtime.Gosched()
}
