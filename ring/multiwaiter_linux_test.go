package ring

import (
	"runtime"
	"testing"
	"time"
)

// A consumer that sleeps on several waiters is woken through any of them, and learns which one.
func TestAMultiWaiterWakesTheConsumer(t *testing.T) {
	old := runtime.GOMAXPROCS(runtime.NumCPU() + 2)
	defer runtime.GOMAXPROCS(old)
	for want := range 3 {
		var m MultiWaiter
		var queues [2]Waiter
		all := []*Waiter{&m.Own, &queues[0], &queues[1]}
		for _, w := range all {
			m.Arm(w)
		}
		m.Barrier()
		go func() {
			runtime.Gosched()
			all[want].Notify()
		}()
		woken, late := -1, false
		for all[want].Parked() { // a signal may end a sleep early
			woken, late = m.Wait(int64(time.Minute))
		}
		if late || woken != want && woken != -1 { // -1: the word had changed before the sleep
			t.Errorf("waiter %d ends the sleep: woken %d, late %v", want, woken, late)
		}
		var told []int
		m.Disarm(woken, func(place int) { told = append(told, place) })
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
		var m MultiWaiter
		m.plain = plain
		m.Arm(&m.Own)
		woken, late := m.Wait(1000)
		for woken == -1 && !late && !plain { // a signal has ended the sleep
			woken, late = m.Wait(1000)
		}
		if woken != -1 || late == plain {
			t.Errorf("plain %v: woken %d, late %v", plain, woken, late)
		}
		m.Disarm(-1, func(int) { t.Error("a waiter rang") })
	}
}
