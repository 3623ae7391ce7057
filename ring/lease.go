//perf:hot

package ring

import (
	"sync/atomic"
	"unsafe"
)

// States of a Lease.
const (
	leaseKept     = 0
	leaseOpen     = 1
	leaseBorrowed = 2
	leaseClaimed  = 3 // borrowed, and the thread is waiting for it
)

// Lease says who owns a consumer: its own thread, or, while that rests, whoever brings it
// work and does the work itself. A message that comes alone is then dealt with on
// the thread that brought it, without a wake-up, which costs more than most messages do.
//
//	kept ─Lend─► open ─Borrow─► borrowed ─Return─► open ─Regain─► kept
//	                                  └─Regain─► claimed ─Return─► kept
//	                                                 └─(thread gives its core away)─► borrowed
//
// Everything that belongs to the consumer goes with the lease; what one owner wrote is
// visible to the next.
//
// A producer publishes without a wake and then borrows:
//
//	Taken  it consumes, returns the lease, and looks once more for what was
//	       published meanwhile: others have relied on that
//	Lent   somebody else has the lease, and is going to look: there is nothing to do
//	Kept   the thread is awake, or about to park: Waiter.Notify, as after any publication
//
// No wake-up is lost: a Borrow that says Lent is a barrier after the publication,
// Return one before the look. One that says Kept is a plain load, and what follows
// is the protocol of the waiter (doc.go), whose consumer lends only after its last look.
// A thread that wants its consumer back is the next to have it, as long as it has a core.
type Lease struct {
	_    [cacheLine]byte
	word atomic.Uint32
	_    [cacheLine - 4]byte
}

// Compile-time check: the word's line is the lease's own.
var _ = [1]struct{}{}[unsafe.Sizeof(Lease{})-2*cacheLine]

// Loan is what came of a Borrow.
type Loan uint8

// The answers of Borrow.
const (
	Kept  Loan = iota // the thread has it
	Lent              // somebody else has it
	Taken             // the caller has it, until Return
)

// Borrow asks for the consumer. Any goroutine but the consumer's own.
func (l *Lease) Borrow() Loan {
	for {
		switch l.word.Load() {
		case leaseKept, leaseClaimed:
			return Kept
		case leaseOpen:
			if l.word.CompareAndSwap(leaseOpen, leaseBorrowed) {
				return Taken
			}
		default:
			// The exchange changes nothing, but comes before the borrower's Return, and orders
			// the caller's stores before the borrower's last look.
			if l.word.CompareAndSwap(leaseBorrowed, leaseBorrowed) {
				return Lent
			}
		}
	}
}

// Return ends what Borrow began. Look for more afterwards.
func (l *Lease) Return() {
	if !l.word.CompareAndSwap(leaseBorrowed, leaseOpen) {
		l.word.Store(leaseKept) // it is claimed
	}
}

// Lend gives the consumer away until Regain. The owner's thread only.
func (l *Lease) Lend() { l.word.Store(leaseOpen) }

// Regain takes the consumer back; it waits for a borrower to finish. The owner's thread only.
//
// It claims the consumer while it has a core, and withdraws the claim before it gives the
// core away: what is returned to a thread that does not run, everybody has to wait for.
func (l *Lease) Regain() {
	for tries := 0; !l.claim(); tries++ {
		if tries < regainYields {
			YieldThread()
		} else {
			nap(regainNapNs)
		}
	}
}

// claim waits some microseconds for a borrower to finish and reports whether the thread has the
// consumer. If not, nothing is claimed any more.
func (l *Lease) claim() bool {
	for range regainLooks {
		switch l.word.Load() {
		case leaseKept:
			return true
		case leaseOpen:
			if l.word.CompareAndSwap(leaseOpen, leaseKept) {
				return true
			}
		case leaseBorrowed:
			l.word.CompareAndSwap(leaseBorrowed, leaseClaimed)
		}
		pause(pausesPerSpin)
	}
	return l.withdraw()
}

// withdraw ends a claim and reports whether it came too late: the consumer has been returned to
// the thread. One that is open or borrowed is not the thread's.
func (l *Lease) withdraw() (kept bool) {
	l.word.CompareAndSwap(leaseClaimed, leaseBorrowed)
	return l.word.Load() == leaseKept
}

const (
	regainLooks  = 50
	regainYields = 32
	regainNapNs  = 20_000 // the borrower has been interrupted: leave it the core
)
