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

// sleeperList is the sleepers of the words that share it, oldest first. It stands for the futex.
type sleeperList struct {
	mu       sync.Mutex
	sleepers []sleeper
}

// sleeper is one sleep on a word.
type sleeper struct {
	word *uint32
	wake chan struct{} // closed by the waker
}

// sleeperLists has a place for each word by its address. A word has one sleeper at a time, its
// consumer.
var sleeperLists [64]sleeperList

func sleepersOf(word *uint32) *sleeperList {
	at := (uintptr(unsafe.Pointer(word)) >> 6) % uintptr(len(sleeperLists))
	return &sleeperLists[at]
}

// futexWaitFor sleeps while the word says parked; true when the time ran out.
func futexWaitFor(word *uint32, timeoutNs int64) bool {
	l := sleepersOf(word)
	l.mu.Lock()
	if atomic.LoadUint32(word) != parked { // a waker changes the word before it looks here
		l.mu.Unlock()
		return false
	}
	wake := make(chan struct{})
	l.sleepers = append(l.sleepers, sleeper{word, wake})
	l.mu.Unlock()
	timer := time.NewTimer(time.Duration(timeoutNs))
	defer timer.Stop()
	select {
	case <-wake:
		return false
	case <-timer.C:
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.sleepers {
		if l.sleepers[i].wake == wake {
			l.sleepers = append(l.sleepers[:i], l.sleepers[i+1:]...)
			return true
		}
	}
	return false // woken in the same moment
}

// futexWakeOne wakes the consumer that sleeps on the word.
func futexWakeOne(word *uint32) {
	l := sleepersOf(word)
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.sleepers {
		if l.sleepers[i].word == word {
			close(l.sleepers[i].wake)
			l.sleepers = append(l.sleepers[:i], l.sleepers[i+1:]...)
			return
		}
	}
}

// registerBarrier and barrier find no barrier of processes: a parking consumer drains instead.
func registerBarrier() reach { return nowhere }

func (r reach) barrier() bool { return false }

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
