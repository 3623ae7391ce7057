package load

import (
	"time"

	"posttrade/ring"
)

// Clock is the time of a run, from its start. Tests have one of their own, which moves when Nap is
// called and makes a run take no time.
type Clock interface {
	// Now never decreases. Any goroutine may call it: a target may stamp its answers on another one.
	Now() time.Duration
	// Nap releases the core for as short a time as the kernel allows.
	Nap()
}

// NewClock returns the machine's clock, which starts now. Only one goroutine, on a locked thread,
// may call Nap; any goroutine may read the clock. Naps let the core sleep, so that the load costs
// little between requests; an answer that comes meanwhile is noticed at the end of the nap.
func NewClock() Clock { return &machine{start: time.Now()} }

// NewBusyClock returns the machine's clock with naps that only yield the core to another thread
// that wants it. It is for targets with answers that take less time than a sleep, where the run
// would otherwise measure only the sleep.
func NewBusyClock() Clock { return &machine{start: time.Now(), busy: true} }

// machine is both clocks. start is constant.
type machine struct {
	start time.Time
	busy  bool // constant
	keen  bool // the thread's timers have no slack any more
}

func (m *machine) Now() time.Duration { return time.Since(m.start) }

// nap is the shortest length of a nap: the kernel adds what a sleep and a wake-up cost.
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
