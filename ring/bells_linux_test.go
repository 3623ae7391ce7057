package ring

import (
	"runtime"
	"testing"
	"time"
)

// A consumer that sleeps on several waiters is woken through any of them, and learns which one.
func TestBellsWakeTheConsumer(t *testing.T) {
	old := runtime.GOMAXPROCS(runtime.NumCPU() + 2)
	defer runtime.GOMAXPROCS(old)
	for want := range 3 {
		var b Bells
		var queues [2]Waiter
		all := []*Waiter{&b.Own, &queues[0], &queues[1]}
		for _, w := range all {
			b.Arm(w)
		}
		b.Barrier()
		go func() {
			runtime.Gosched()
			all[want].Notify()
		}()
		rung, late := -1, false
		for all[want].Parked() { // a signal may end a sleep early
			rung, late = b.Wait(int64(time.Minute))
		}
		if late || rung != want && rung != -1 { // -1: the word had changed before the sleep
			t.Errorf("waiter %d ends the sleep: rung %d, late %v", want, rung, late)
		}
		var told []int
		b.Disarm(rung, func(place int) { told = append(told, place) })
		if len(told) != 1 || told[0] != want {
			t.Errorf("woken through %d, told %v", want, told)
		}
		for i, w := range all {
			if w.Parked() {
				t.Errorf("waiter %d is still armed", i)
			}
		}
	}
}

// Without a wake-up the sleep ends by itself, and says so. A kernel without futex_waitv only naps.
func TestASleepWithoutAWakeUpEnds(t *testing.T) {
	for _, plain := range []bool{false, true} {
		var b Bells
		b.plain = plain
		b.Arm(&b.Own)
		rung, late := b.Wait(1000)
		for rung == -1 && !late && !plain { // a signal has ended the sleep
			rung, late = b.Wait(1000)
		}
		if rung != -1 || late == plain {
			t.Errorf("plain %v: rung %d, late %v", plain, rung, late)
		}
		b.Disarm(-1, func(int) { t.Error("a waiter rang") })
	}
}
