package load

import (
	"time"

	"golang.org/x/sys/unix"

	"posttrade/ring"
)

// Clock is the time of a run, from its start.
type Clock interface {
	Now() time.Duration
	// Nap gives the core away for as short a time as the kernel allows.
	Nap()
}

// NewClock returns the machine's clock, which starts now. Its naps belong to one
// goroutine on a locked thread; anybody may read it.
func NewClock() Clock { return &machine{start: time.Now()} }

// NewBusyClock returns the machine's clock with naps that only give the core to another
// thread if one wants it: for targets whose answers take less time than a sleep does, which
// would otherwise be the only thing measured.
func NewBusyClock() Clock { return &machine{start: time.Now(), busy: true} }

type machine struct {
	start time.Time
	busy  bool // constant
	keen  bool // the thread's timers have no slack any more
}

func (m *machine) Now() time.Duration { return time.Since(m.start) }

// nap is how long a nap lasts at least.
const nap = 10 * time.Microsecond

// Nap sleeps in the kernel: the runtime's own timers are a millisecond late when the
// process is idle. What it is late by is charged to the requests that were due.
func (m *machine) Nap() {
	if m.busy {
		ring.YieldThread()
		return
	}
	if !m.keen {
		_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) // refused: 50 us later, and counted
		m.keen = true
	}
	short := unix.NsecToTimespec(int64(nap))
	_ = unix.Nanosleep(&short, nil) // a signal ends it early, which does no harm
}
