//perf:hot

package journal

import (
	"sync/atomic"

	"posttrade/matcher"
	"posttrade/ring"
)

const (
	// recorderBatch is how many events are taken before their slots go back.
	recorderBatch = 256
	// fullFills is how many fills fill a block, as its commands do. The last command's fills come on
	// top, however many they are.
	fullFills = 1 << 16
)

// Recorder is the output ring's gating reader: it turns events into blocks, hands them to the
// journal, feeds the observers and releases the answers.
//
// The goroutine that has the lease owns everything but stop: Run's thread, or a driver while Run's
// thread rests. Where other comments say "the recorder" they mean that goroutine. A block is cut at
// the end of a command as soon as a commit may start: while one block is synced the next is built,
// and under load a block holds what came in meanwhile. When every commit is under way and the block
// is full, the ring fills up, and the edge says so.
//
// While Run's thread rests, Drive does the same on the goroutine that brought the events, as long
// as nothing has to be waited for.
//
// Invariant: the block holds whole commands whenever open is false.
type Recorder struct {
	// Constant after NewRecorder, down to maxBlock.
	j         *Journal
	out       *ring.Fanout[matcher.Event]
	answers   Answers
	observers []Observer
	flush     func() (more bool) // nil: not set
	idler     *ring.Idler
	maxBlock  int

	// What has been taken and not cut yet. With a tail its first part may have been answered already
	// (Block.inTail).
	block Block
	id    []byte // client id of the command that is being read
	// The command's last event has not come yet, so the block's last command may lack fills: nothing
	// is cut or published.
	open bool
	// By age, the newest at the end. They are used again in that order (next).
	commits []*Commit
	// The poison. Once set, events are taken and dropped.
	failed error
	// The number of events taken off the ring. Writer: the goroutine that has the lease.
	events ring.Sequence
	// Which goroutine may use everything here except stop.
	lease ring.Lease
	// 1 after Stop. Writer: Stop; Run's thread reads it when it has nothing to do.
	stop atomic.Uint32
	// The processor that Run's thread is pinned to; -1: none.
	cpu int
}

// loop runs until Stop, or for ever. After each batch answers come first (publish), then the store
// (cut), then the observers' readers (flush). When the ring is empty it does what a driver may have
// left, and only then idles, which also lends the lease.
func (r *Recorder) loop() {
	for {
		if r.take(recorderBatch) {
			r.idler.Reset()
			if r.j.tail != nil && !r.publish() {
				r.cut() // no room in the tail: the store answers
			}
			if r.cuttable() {
				r.cut()
			}
			if r.flush != nil {
				r.flush()
			}
			continue
		}
		if r.j.tail != nil && !r.publish() { // left by a driver
			r.cut()
		}
		if r.cuttable() {
			r.cut()
			continue
		}
		if r.stop.Load() != 0 && r.out.Empty() {
			return
		}
		if r.flush == nil || !r.flush() {
			r.idler.Idle(r)
		}
	}
}

// take records what is there, at most max events. It returns false if there is nothing. While
// answers are held (bound.go) it only completes the command that it has begun, because everything
// that is taken is answered.
//
// The slots go back after every event of the batch has been recorded and observed. No reference to
// a slot is kept.
func (r *Recorder) take(max int) bool {
	if r.j.held() {
		if !r.open {
			return false
		}
		max = 1
	}
	lo, hi := r.out.Ready(max)
	if lo == hi {
		return false
	}
	for pos := lo; pos < hi && r.failed == nil; pos++ {
		r.record(r.out.At(pos))
	}
	// After a failure events are dropped: their answers are never given, and the matcher must not wait
	// for a reader that has ended.
	r.out.Release(hi)
	r.events.Release(hi)
	return true
}

// record takes one event. Every command has a first and a last event, and they may be the same one:
// a full block is cut before the first event, so a block always holds whole commands. Observers see
// an event before it is durable.
func (r *Recorder) record(ev *matcher.Event) {
	if ev.Flags&matcher.EventFirst != 0 {
		// a driver stops drivenEvents earlier, so that it never cuts here
		if r.block.Commands() == r.maxBlock || r.block.fillCount >= fullFills+drivenEvents {
			if r.cut(); r.failed != nil {
				return
			}
		}
		r.begin(ev)
	}
	if ev.Kind == matcher.EventFilled {
		r.block.executed(ev)
	}
	for _, o := range r.observers {
		o.Observe(ev, r.id)
	}
	r.answers.Observe(ev)
	r.open = ev.Flags&matcher.EventLast == 0
}

// begin appends the command of a first event, with its client id if the caller gave one. The id is
// kept for the command's further events: observers get it with each.
func (r *Recorder) begin(ev *matcher.Event) {
	cmd := ev.Cmd()
	r.block.Command(cmd)
	r.id = nil
	if ev.Ref != 0 {
		if id := r.answers.ClientID(ev.Ref); len(id) > 0 {
			r.id = id
			r.block.ClientID(cmd.InputSeq, id)
		}
	}
}

// publish copies the whole commands in the block into the tail, which releases their answers. It
// returns false if the tail has no room for them; the caller then cuts the block and lets the store
// answer. In the middle of a command, and after a failure, it does nothing and returns true.
func (r *Recorder) publish() (taken bool) {
	if r.open || r.failed != nil || len(r.block.records) == r.block.inTail.records {
		return true
	}
	taken, err := r.j.publish(&r.block)
	if err != nil {
		r.fail(err)
		return true
	}
	return taken
}

// pending reports whether there is a block to commit.
func (r *Recorder) pending() bool { return !r.open && r.failed == nil && len(r.block.records) > 0 }

// cuttable reports whether a commit may start now.
func (r *Recorder) cuttable() bool { return r.pending() && r.j.Room(r.block.Commands()) }

// Empty tells the Idler that there is neither an event to take nor a block to hand over.
func (r *Recorder) Empty() bool {
	return (r.out.Empty() || !r.open && r.j.held()) && !r.cuttable()
}

// cut hands the block over; it waits while too many commits are under way, and with a tail that has
// no room until the store has answered. With a tail the committer packs the block, otherwise this
// thread does. A failure ends recording.
func (r *Recorder) cut() {
	var err error
	if c := r.next(); r.j.tail != nil {
		err = r.j.hand(&r.block, c)
	} else if err = r.j.append(&r.block, c); err == nil {
		r.block.Reset()
	}
	if err != nil {
		r.fail(err)
	}
}

// next is the commit to be used next. When there is room for another commit, the commit that used
// the same slot before has ended. There is one slot more than there is room for, for the commit
// that is ending.
func (r *Recorder) next() *Commit {
	if len(r.commits) <= r.j.o.MaxInFlight {
		r.commits = append(r.commits, newCommit(r.j.latch))
		return r.commits[len(r.commits)-1]
	}
	c := r.commits[0]
	copy(r.commits, r.commits[1:])
	r.commits[len(r.commits)-1] = c
	return c
}
