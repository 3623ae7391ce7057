package ring

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// futex2Size32 says that a word of futex_waitv has 32 bits.
const futex2Size32 = 2

// waitWord is struct futex_waitv.
type waitWord struct {
	value uint64
	addr  uint64
	flags uint32
	_     uint32
}

// waitVector is the words that one call of futex_waitv waits for.
type waitVector struct {
	words [MaxWaiters + 1]waitWord
	plain bool // the kernel cannot wait on several words (before Linux 5.16): nap
}

func (m *waitVector) wait(armed []*Waiter, ns int64) (woken int, late bool) {
	if m.plain {
		nap(napNs)
		return -1, false
	}
	for i, w := range armed {
		m.words[i] = waitWord{value: parked, addr: uint64(uintptr(unsafe.Pointer(w.addr()))),
			flags: futex2Size32}
	}
	var until unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &until); err != nil {
		nap(napNs)
		return -1, false
	}
	until = unix.NsecToTimespec(until.Nano() + ns)
	index, _, errno := unix.Syscall6(unix.SYS_FUTEX_WAITV, uintptr(unsafe.Pointer(&m.words[0])),
		uintptr(len(armed)), 0, uintptr(unsafe.Pointer(&until)), unix.CLOCK_MONOTONIC, 0)
	if errno == syscall.ENOSYS || errno == syscall.EPERM {
		m.plain = true
	}
	if errno != 0 {
		return -1, errno == syscall.ETIMEDOUT
	}
	return int(index), false
}
