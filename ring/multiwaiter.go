package ring

// MaxWaiters is on how many waiters a consumer may sleep at once beside its own: the kernel takes
// 128.
const MaxWaiters = 127

// MultiWaiter is the sleep of one consumer on several waiters at once: Own, which the goroutines of
// its process Notify, and those of queues to which other processes publish. The zero MultiWaiter is
// ready for use.
//
// A publisher wakes the consumer only through the waiter of its own queue, so it cannot delay, wake
// or stop another publisher. No wake-up is lost, because the order is that of a single Waiter: the
// consumer arms the waiters, calls Barrier, looks, waits for DrainNs, looks a last time and waits;
// the publisher stores its cursor, then looks at its waiter. Only the consumer calls the methods.
type MultiWaiter struct {
	Own   Waiter
	armed []*Waiter
	waitVector
}

// Arm adds a waiter to those that end the next sleep. Own comes first.
func (m *MultiWaiter) Arm(w *Waiter) {
	w.word.Store(parked)
	m.armed = append(m.armed, w)
}

// Barrier makes the consumer see every store that a goroutine of its process made before it looked
// at its waiter, and most stores of other processes. So the first sleep is one of DrainNs; after it
// the consumer looks once more (doc.go).
func (m *MultiWaiter) Barrier() {
	if needsBarrier {
		ownProcess.barrier()
		allProcesses.barrier()
	}
}

// Wait sleeps until an armed waiter is woken or ns have passed. woken is the place of the waiter
// that ended the sleep in the order of the calls of Arm; -1 when it is not known. late reports that
// the time ran out. Where the system cannot wait on several words, Wait naps for NapNs.
func (m *MultiWaiter) Wait(ns int64) (woken int, late bool) { return m.wait(m.armed, ns) }

// Disarm ends what Arm began and calls report with the places of the waiters that were woken. woken
// is Wait's: a publisher may wake the sleeper without a change of the word on which it sleeps.
func (m *MultiWaiter) Disarm(woken int, report func(place int)) {
	for place, w := range m.armed {
		if w.word.Swap(awake) != parked || place == woken {
			report(place)
		}
	}
	clear(m.armed)
	m.armed = m.armed[:0]
}

// Parked reports that the consumer has announced its sleep on this waiter, and that no goroutine
// has woken it since.
func (w *Waiter) Parked() bool { return w.word.Load() == parked }

// NapNs is how long a consumer sleeps that no wake-up can end early.
const NapNs = napNs

// Nap sleeps for a while. A signal may end it early.
func Nap(ns int64) { nap(ns) }
