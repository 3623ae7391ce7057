package load

import (
	"time"

	"posttrade/ring"
)

// Clock is the time of a run, from its start.
type Clock interface {
	Now() time.Duration
	// Nap releases the core for as short a time as the kernel allows.
	Nap()
}

// NewClock returns the machine's clock, which starts now. Only one goroutine, on a locked thread,
// may call Nap; any goroutine may read the clock.
func NewClock() Clock { return &machine{start: time.Now()} }

// NewBusyClock returns the machine's clock with naps that only yield the core to another thread
// that wants it. It is for targets with answers that take less time than a sleep, where the run
// would otherwise measure only the sleep.
func NewBusyClock() Clock { return &machine{start: time.Now(), busy: true} }

type machine struct {
	start time.Time
	busy  bool // constant
	keen  bool // the thread's timers have no slack any more
}

func (m *machine) Now() time.Duration { return time.Since(m.start) }

// nap is the shortest length of a nap.
const nap = 10 * time.Microsecond

// Nap sleeps in the kernel, because the runtime's own timers are a millisecond late when the
// process is idle. If Nap ends late, that time is charged to the requests that were due.
func (m *machine) Nap() {
	if m.busy {
		ring.YieldThread()
		return
	}
	if !m.keen {
		// if refused, timers may be 50 us later, which is counted
		promptTimers()
		m.keen = true
	}
	ring.Nap(int64(nap)) // a signal ends it early, which does no harm
}
