package journal

import "posttrade/ring"

// drivenEvents is how many events a driver takes in a turn, drivenTurns how many turns it takes. A
// steady flow of events belongs to the recorder's own thread: after that many turns the driver
// wakes it, and goes back to its own work.
const (
	drivenEvents = 256
	drivenTurns  = 4
)

// Drive records, on the calling goroutine, what the matcher has published quietly, if the
// recorder's thread rests. If the thread does not rest, or something has to be waited for, Drive
// wakes the thread. With a tail the answers are released at once. The block goes to the store, or
// with a tail to the committer, if a commit may start. Any goroutine.
//
// After the lease has been returned the driver looks once more: events that another goroutine
// published meanwhile are the driver's to record, because that goroutine found the lease lent
// (ring.Lease).
func (r *Recorder) Drive() {
	for range drivenTurns {
		switch r.lease.Borrow() {
		case ring.Lent:
			return
		case ring.Kept:
			r.out.Waiter().Notify()
			return
		}
		whole := r.onFault(r.driven)
		next, pending, commands := r.out.Consumed(), r.pending(), r.block.Commands()
		r.lease.Return()
		if !whole {
			break
		}
		if r.out.Published() == next && !(pending && r.j.Room(commands)) {
			return
		}
	}
	r.out.Waiter().Notify()
}

// driven is one turn of a driver. It waits for nothing: it takes at most as many events as the
// block has room for commands, so record never cuts a full block, and it cuts only when a commit
// may start. It reports whether it has done everything that could be done.
func (r *Recorder) driven() (whole bool) {
	free := r.maxBlock - r.block.Commands()
	if r.block.fillCount >= fullFills {
		free = 0
	}
	r.take(min(drivenEvents, free))
	whole = r.j.tail == nil || r.publish()
	if whole && r.cuttable() {
		r.cut()
	}
	if r.flush != nil && r.flush() {
		whole = false
	}
	return whole && free > 0
}

// room is called by the committer when another commit may start. With a tail it only takes the
// block: no answer waits for the commit, and a driver that needs the lease gets it sooner.
func (r *Recorder) room() {
	if r.j.tail != nil && r.lease.Borrow() == ring.Taken {
		whole := r.onFault(r.handOver)
		next := r.out.Consumed()
		r.lease.Return()
		if whole && r.out.Published() == next {
			return
		}
	}
	r.Drive()
}

// handOver gives the block to the committer, if a commit may start and the block's answers have
// been released. Answers that the tail has no room for wait for the store, and the committer cannot
// wait for them. It reports whether the answers have been released.
func (r *Recorder) handOver() (told bool) {
	told = r.publish()
	if told && r.cuttable() {
		r.cut()
	}
	return told
}
