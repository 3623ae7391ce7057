package ring

import (
	"fmt"
	"runtime"
)

// Strategy is how a consumer waits: how much CPU time it spends against how fast it reacts.
type Strategy uint8

// The strategies, from fastest and most CPU time to slowest and least.
const (
	Spin     Strategy = iota // never gives its core away: tens of nanoseconds
	Yield                    // lets others run between looks
	Adaptive                 // spins briefly, yields, then parks: the default everywhere
	Park                     // parks at once: a few microseconds to wake, no CPU time
)

var strategies = [...]string{Spin: "spin", Yield: "yield", Adaptive: "adaptive", Park: "park"}

// ParseStrategy reads spin, yield, adaptive or park.
func ParseStrategy(name string) (Strategy, error) {
	for s, known := range strategies {
		if name == known {
			return Strategy(s), nil
		}
	}
	return 0, fmt.Errorf("ring: unknown idle strategy %q, want spin, yield, adaptive or park", name)
}

func (s Strategy) String() string {
	if int(s) < len(strategies) {
		return strategies[s]
	}
	return fmt.Sprintf("Strategy(%d)", uint8(s))
}

// napNs is how long a consumer without a waiter sleeps when its strategy parks.
const napNs = 500_000

// IdleStats counts what an Idler did; its writer is the consumer.
type IdleStats struct {
	Parks   uint64 // sleeps begun
	Rescues uint64 // sleeps that ran out although there was work: 0 between correct peers
}

// NewIdler returns the Idler of one consumer. The waiter is that of the consumer's ring. With nil,
// for a free reader, parking is a nap of half a millisecond that no wake-up ends early.
func NewIdler(s Strategy, waiter *Waiter) *Idler {
	i := &Idler{waiter: waiter, napNs: backstopNs, reach: registerBarrier()}
	if waiter == nil {
		i.waiter, i.napNs = new(Waiter), napNs
	}
	switch s {
	case Spin:
		i.spins, i.forever = spinsFor(s, Cores()), true
	case Yield:
		i.yields, i.forever = 1, true
	case Adaptive:
		i.spins, i.yields = spinsFor(s, Cores()), 4
	}
	return i
}

// Cores is on how many of the machine's cores this process may be busy: no more than GOMAXPROCS,
// which follows a container's CPU limit. A process that raises GOMAXPROCS for threads that sleep
// (doc.go, Threads) does so after it has made its Idlers.
func Cores() int { return min(runtime.NumCPU(), runtime.GOMAXPROCS(0)) }

// spinsFor is the length of the spin phase in steps of some 20 to 100 ns. With one core spinning
// only delays the producer; with two, the other goroutines of the process wait for the spinner, so
// it spins for a few microseconds only.
func spinsFor(s Strategy, cores int) int {
	if s == Spin {
		return 1 << 62
	}
	return Spins(cores)
}

// Spins is the length of Adaptive's spin phase, for a consumer with a waiting loop of its own.
func Spins(cores int) int {
	switch {
	case cores <= 1:
		return 0
	case cores == 2:
		return 50
	default:
		return 500
	}
}

// Lock ties the calling goroutine to its thread and the thread to a core (-1:
// any). Yielding then gives the core to other threads by sched_yield instead of
// handing the goroutine over, which costs a locked thread tens of
// microseconds. Call it first on the consumer goroutine.
func (i *Idler) Lock(cpu int) error {
	runtime.LockOSThread()
	i.locked = true
	return PinThread(cpu)
}

// Shared says that publishers in other processes wake this consumer, and that they publish by plain
// stores, as a ring does. Call Shared before the first Idle.
func (i *Idler) Shared() { i.reach = allProcesses }

// Lends makes the consumer's lease open to others whenever its thread, which is locked, gives its
// core away or sleeps. A consumer that spins or yields without end never lends: its strategy asks
// for the work on this thread. Call Lends before the first Idle.
func (i *Idler) Lends(l *Lease) {
	i.lease = l
	if !i.forever {
		i.spins = lendingSpins(i.spins, Cores())
	}
}

// lendingSpins is the length of the spin phase of a consumer that lends; it does not lend in that
// phase. With two cores there is no spin phase: the producer that brings work has one core and does
// the work, and a spinner would take the other core from the next stage. A spinner that is
// interrupted would also hold up all work until it runs again.
func lendingSpins(spins, cores int) int {
	if cores <= 2 {
		return 0
	}
	return spins
}

// Stats counts what the Idler has done so far. Consumer only.
func (i *Idler) Stats() IdleStats { return i.stats }

// IdleAtMost is Idle with a sleep of at most ns: for a consumer that also waits for an event that
// sends no wake-up. Such a sleep is never counted as a rescue.
func (i *Idler) IdleAtMost(q Queue, ns int64) {
	long := i.napNs
	i.napNs = min(long, ns)
	rescues := i.stats.Rescues
	i.Idle(q)
	if ns < long {
		i.stats.Rescues = rescues
	}
	i.napNs = long
}

// backOff is the part of Idle after the spin phase.
func (i *Idler) backOff(q Queue) {
	if i.step < i.spins+i.yields || i.forever {
		if !i.forever {
			i.step++
		}
		i.yield()
		return
	}
	i.stats.Parks++
	if i.waiter.park(q, i.napNs, i.reach, i.lease) {
		i.stats.Rescues++
	}
}

// yield gives the core, or the goroutine's turn, to others.
func (i *Idler) yield() {
	if !i.locked {
		runtime.Gosched()
		return
	}
	if i.lease == nil || i.forever {
		YieldThread()
		return
	}
	i.lease.Lend()
	YieldThread()
	i.lease.Regain()
}
