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

// Lease says which thread owns a consumer: its own, or, while that thread rests, a borrower that
// brings work and does it itself. A single message is then processed on the thread that brought it,
// without a wake-up. A wake-up costs more than the work on most messages.
//
//	kept ─Lend─► open ─Borrow─► borrowed ─Return─► open ─Regain─► kept
//	                                  └─Regain─► claimed ─Return─► kept
//	                                                 └─(thread gives its core away)─► borrowed
//
// All state of the consumer goes with the lease; the writes of one owner are visible to the next.
//
// A producer publishes without a wake and then borrows:
//
//	Taken  it consumes, returns the lease, and looks once more for what was
//	       published meanwhile: other producers rely on that look
//	Lent   another borrower has the lease and is going to look: nothing to do
//	Kept   the thread is awake or about to park: Waiter.Notify, as after any publication
//
// No wake-up is lost. A Borrow that returns Lent is a barrier after the publication, and Return is
// a barrier before the look. A Borrow that returns Kept is a plain load, and the protocol of the
// waiter (doc.go) follows; the consumer lends only after its last look. A thread that wants its
// consumer back gets it next, as long as the thread has a core.
type Lease struct {
	_    [cacheLine]byte
	word atomic.Uint32
	_    [cacheLine - 4]byte
}

// Compile-time check: no other word shares the line of the lease's word.
var _ = [1]struct{}{}[unsafe.Sizeof(Lease{})-2*cacheLine]

// BorrowResult is the result of a Borrow.
type BorrowResult uint8

// The answers of Borrow.
const (
	Kept  BorrowResult = iota // the consumer's own thread has it
	Lent                      // another borrower has it
	Taken                     // the caller has it, until Return
)

// Borrow asks for the consumer. Any goroutine except the consumer's own.
func (l *Lease) Borrow() BorrowResult {
	for {
		switch l.word.Load() {
		case leaseKept, leaseClaimed:
			return Kept
		case leaseOpen:
			if l.word.CompareAndSwap(leaseOpen, leaseBorrowed) {
				return Taken
			}
		default:
			// The exchange does not change the word. It comes before the borrower's Return, so it orders the
			// caller's stores before the borrower's last look.
			if l.word.CompareAndSwap(leaseBorrowed, leaseBorrowed) {
				return Lent
			}
		}
	}
}

// Return ends a loan that Borrow began. The caller looks for more work afterwards.
func (l *Lease) Return() {
	if !l.word.CompareAndSwap(leaseBorrowed, leaseOpen) {
		l.word.Store(leaseKept) // the thread has claimed it
	}
}

// Lend gives the consumer away until Regain. The owner's thread only.
func (l *Lease) Lend() { l.word.Store(leaseOpen) }

// Regain takes the consumer back; it waits for a borrower to finish. The owner's thread only.
//
// The thread claims the consumer while it has a core and withdraws the claim before it gives the
// core away. Otherwise the consumer is returned to a thread that does not run, and all producers
// wait for that thread.
func (l *Lease) Regain() {
	for !l.claim() {
		YieldThread()
	}
}

// claim waits some microseconds for a borrower to finish and reports whether the thread has the
// consumer. If it does not, the claim is withdrawn.
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

// withdraw ends a claim. kept reports that it came too late: the consumer has already been returned
// to the thread. An open or borrowed consumer does not belong to the thread.
func (l *Lease) withdraw() (kept bool) {
	l.word.CompareAndSwap(leaseClaimed, leaseBorrowed)
	return l.word.Load() == leaseKept
}

const regainLooks = 50
