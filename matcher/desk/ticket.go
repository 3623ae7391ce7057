package desk

import (
	"fmt"
	"math/bits"
	"sync/atomic"
	"time"

	"posttrade/matcher"
)

// States of a ticket. Writers are named by the arrow's label:
//
//	free ─Acquire─► held ─Submit─► submitted ─Durable─► answered ─Release─► free
//	        held ─Release─► free      │ ├─Refuse─► refused ─Release─► free
//	                                  │ ├─Fail─► lost
//	                                  │ └─Wait─► waiting: as submitted, and its holder gets a token
//	                                  └─Release─► abandoned ─Durable, Refuse─► free
//
// A holder gets a token only if it waits. So an answer that is there when the holder looks for it
// costs neither side a channel operation, and a holder that polls never blocks.
const (
	free uint32 = iota
	held
	submitted
	waiting
	answered
	abandoned
	lost
	refused
)

// Ticket carries commands to the engine and their answers back. From Acquire to Release it belongs
// to the caller of Acquire.
type Ticket struct {
	desk       *Desk
	pool       *Pool // the pool that it returns to
	index      uint32
	n          int // commands of this use
	state      atomic.Uint32
	generation atomic.Uint64 // writer: the holder, in prepare; the recorder compares

	commands []matcher.Command
	ids      []clientID
	answers  []Answer // writer: the recorder, between Submit and the last event
	unsaid   int      // commands without their last event; writer: Submit, then the recorder

	wake  chan token // one "ended" per submission that the holder waited for, at most one nudge
	alarm alarm

	_ [64]byte // another goroutine holds the next ticket
}

// clientID is the caller's own name of a command.
type clientID struct {
	length uint8
	text   [MaxClientIDBytes]byte
}

// keptFills is how many fills of one answer a ticket keeps room for.
const keptFills = 256

// prepare makes a ticket from the pool the caller's. The new generation makes every id of an
// earlier use foreign. Buffers grow to a power of two, so a ticket is seldom made larger.
func (t *Ticket) prepare(n int) {
	if n > len(t.commands) {
		t.grow(1 << bits.Len(uint(n-1)))
	}
	t.n = n
	for i := range n {
		t.ids[i].length = 0
		t.answers[i].reset()
	}
	next := t.generation.Load() + 1
	if next >= 1<<generationBits {
		next = 1
	}
	t.generation.Store(next)
	t.state.Store(held)
}

// grow gives the ticket buffers for size commands; 0 removes them.
func (t *Ticket) grow(size int) {
	t.commands = make([]matcher.Command, size)
	t.ids = make([]clientID, size)
	t.answers = make([]Answer, size)
}

// Len is the number of commands.
func (t *Ticket) Len() int { return t.n }

// Command returns the place to write command i to, before Submit. It still holds the command of an
// earlier use; Submit sets its InputSeq in the ring, and leaves this one alone.
func (t *Ticket) Command(i int) *matcher.Command { return &t.commands[:t.n][i] }

// SetClientID keeps the caller's name of command i, at most MaxClientIDBytes, for the recorder.
// Without a call the command has no name. It copies id, and panics for one that is too long: the
// edge has checked it.
func (t *Ticket) SetClientID(i int, id []byte) {
	if len(id) > MaxClientIDBytes {
		panic(fmt.Sprintf("desk: client id of %d bytes, at most %d", len(id), MaxClientIDBytes))
	}
	c := &t.ids[:t.n][i]
	c.length = uint8(copy(c.text[:], id))
}

// ClientID returns the name that SetClientID was given, valid until Release.
func (t *Ticket) ClientID(i int) []byte { return t.ids[:t.n][i].bytes() }

// bytes has no room behind its end, so that an append by its reader does not write into the ticket.
func (c *clientID) bytes() []byte { return c.text[:c.length:c.length] }

// Submit hands the commands to the engine, all or none, side by side. If they are few and the
// threads that decide and record rest, it also decides and records them on this goroutine: the
// answer may be there when it returns.
//
// Errors: ErrFull when the ring has no room now, ErrClosed, ErrFailed. After an error nothing was
// sequenced, and the caller can submit the ticket again or release it.
func (t *Ticket) Submit() error {
	lo, err := t.put()
	if err != nil {
		return err
	}
	if t.desk.drive == nil || t.n > matcher.DriveAtMost {
		t.desk.in.Publish(lo, t.n)
		return nil
	}
	t.desk.in.PublishQuietly(lo, t.n)
	t.desk.drive()
	return nil
}

// put claims slots and fills them in. The caller publishes them. A ticket that is not submitted
// because of an error is held again, so the caller may try once more. Fail can come at any moment:
// the state is what decides which of the two sees the other.
func (t *Ticket) put() (lo int64, err error) {
	if state := t.state.Load(); state != held {
		panic(fmt.Sprintf("desk: submit of a ticket in state %d", state))
	}
	d := t.desk
	t.unsaid = t.n
	t.state.Store(submitted)
	// From here Fail sees the ticket. If Fail came before, this load sees it.
	if err = d.refusal(); err == nil {
		var ok bool
		if lo, ok = d.in.ClaimLeaving(t.n, t.pool.spare); ok {
			first := t.generation.Load()<<(commandBits+ticketBits) | uint64(t.index)<<commandBits
			for i := range t.n {
				c := d.in.At(lo + int64(i))
				*c = t.commands[i]
				c.InputSeq = first | uint64(i)
			}
			return lo, nil
		}
		err = ErrFull
	}
	if !t.state.CompareAndSwap(submitted, held) { // Fail has changed the state
		t.state.Store(held)
		err = ErrFailed
	}
	return 0, err
}

// Wait parks until every command of the ticket is durable and its Answer can be read. With a
// timeout of 0 or less it waits without a limit. Only the holder calls it, after Submit.
//
// Errors: after ErrTimeout the holder may call Wait again. After ErrTimeout or ErrFailed the
// outcome is unknown. After ErrRefused nothing was sequenced, and never will be. The holder must
// not read an Answer after an error.
func (t *Ticket) Wait(timeout time.Duration) error {
	if !t.Ready() && !t.await(timeout) {
		return ErrTimeout
	}
	switch t.state.Load() {
	case answered:
		return nil
	case lost:
		return ErrFailed
	case refused:
		return ErrRefused
	}
	panic("desk: wait for a ticket that was not submitted")
}

// Ready reports that Wait would return at once. It is for a holder that polls several tickets. One
// load.
func (t *Ticket) Ready() bool {
	state := t.state.Load()
	return state == answered || state == lost || state == refused
}

// await waits for the submission to end. It returns false when the submission has not ended in
// time.
func (t *Ticket) await(timeout time.Duration) bool {
	if !t.state.CompareAndSwap(submitted, waiting) {
		return true // ended in the meantime, or never begun
	}
	if timeout <= 0 {
		t.end()
		return true
	}
	due := t.alarm.begin(t, timeout)
	defer t.alarm.disarm()
	for !t.take() {
		if t.alarm.again(t, due) {
			continue
		}
		if t.state.CompareAndSwap(waiting, submitted) {
			return false
		}
		t.end() // it ended at the last moment
		return true
	}
	return true
}

// Answer returns the answer to command i after Wait returned nil and before Release, nil otherwise.
// It points into the ticket: copy what must outlive the Release.
func (t *Ticket) Answer(i int) *Answer {
	if t.state.Load() != answered {
		return nil
	}
	return &t.answers[:t.n][i]
}

// Release gives the ticket up; the caller must not touch it afterwards. After ErrTimeout the ticket
// returns to the pool when its answer has come.
func (t *Ticket) Release() {
	for {
		switch state := t.state.Load(); state {
		case held:
			t.state.Store(free)
			t.pool.back(t)
			return
		case submitted:
			if t.state.CompareAndSwap(submitted, abandoned) {
				return
			}
		case answered, refused:
			t.state.Store(free)
			t.pool.back(t)
			return
		case lost:
			return // the recorder may still write to it, so it never returns to the pool
		default:
			panic(fmt.Sprintf("desk: release of a ticket in state %d", state))
		}
	}
}
