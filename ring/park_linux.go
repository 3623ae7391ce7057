package ring

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Futex operations, without the private flag: the word may be shared between processes.
const (
	futexWait = 0
	futexWake = 1
)

// Commands of membarrier(2).
const (
	membarrierGlobalExpedited          = 1 << 1
	membarrierRegisterGlobalExpedited  = 1 << 2
	membarrierPrivateExpedited         = 1 << 3
	membarrierRegisterPrivateExpedited = 1 << 4
)

// futexWaitFor sleeps while the word says parked; true when the time ran out.
func futexWaitFor(word *uint32, timeoutNs int64) bool {
	ts := unix.NsecToTimespec(timeoutNs)
	_, _, errno := unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)),
		futexWait, parked, uintptr(unsafe.Pointer(&ts)), 0, 0)
	return errno == syscall.ETIMEDOUT
}

// futexWakeOne wakes the consumer that sleeps on the word. It wakes one thread only, because one
// consumer parks on a Waiter. In shared memory a peer may let thousands of threads sleep on the
// word, and a publisher would otherwise wake them all. The call never blocks, so the scheduler is
// not told.
func futexWakeOne(word *uint32) {
	unix.RawSyscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexWake, 1, 0, 0, 0)
}

// registerBarrier makes this process take part in the barriers of parking consumers, its own and
// those of other processes. The result is how far the barrier of a consumer of this process reaches
// at most. The order matters: the second registration also repeats the first one on the cores.
func registerBarrier() reach {
	if !needsBarrier {
		return nowhere
	}
	membarrier(membarrierRegisterGlobalExpedited)
	if membarrier(membarrierRegisterPrivateExpedited) {
		return ownProcess
	}
	return nowhere
}

// barrier makes the threads within reach pass a full barrier; false when a publisher may not have
// passed one.
func (r reach) barrier() bool {
	switch r {
	case ownProcess:
		return membarrier(membarrierPrivateExpedited)
	case allProcesses:
		membarrier(membarrierGlobalExpedited)
	}
	return false
}

func membarrier(command uintptr) bool {
	_, _, errno := unix.RawSyscall(unix.SYS_MEMBARRIER, command, 0, 0)
	return errno == 0
}

// nap sleeps for a while.
func nap(ns int64) {
	ts := unix.NsecToTimespec(ns)
	unix.Nanosleep(&ts, nil)
}

// YieldThread gives the core to another thread, if one waits for it; the goroutine keeps its
// thread.
func YieldThread() {
	unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
}
