package desk

import (
	"errors"
	"fmt"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"posttrade/matcher"
	"posttrade/ring"
)

// Why a command was not handed in, or its answer did not come; test by errors.Is.
var (
	ErrBusy    = errors.New("too many commands are waiting for their answers")
	ErrFull    = errors.New("input ring is full")
	ErrClosed  = errors.New("desk is closed")
	ErrFailed  = errors.New("journal has failed")
	ErrRefused = errors.New("not sequenced: this member does not lead any more")
	ErrTimeout = errors.New("no answer in time")
	ErrSize    = errors.New("size is out of range")
)

// Limits of a desk.
const (
	MaxBatch         = 1 << commandBits // of one ticket
	MaxTickets       = 1 << ticketBits
	MaxClientIDBytes = 64
)

// The parts of a correlation id, from the lowest bit: command, ticket,
// generation, and the top bit, which is not ours.
const (
	commandBits    = 10
	ticketBits     = 20
	generationBits = 33
)

// Foreign is set in the correlation ids that are not a desk's.
const Foreign = 1 << 63

// Desk hands tickets out and wakes their holders.
type Desk struct {
	in      *ring.MPSC[matcher.Command]
	tickets []Ticket
	drive   func()        // constant after Drives
	state   atomic.Uint32 // open, closed or failed; only rises
	epoch   time.Time     // what the alarms count from

	pool struct {
		mu    sync.Mutex // Acquire and Release; the committer only for a ticket given up
		small []uint32   // tickets with room for one command, or none yet
		large []uint32   // tickets that have carried a batch: they keep their buffers
		cause error      // of Fail
	}

	recorder recorder
	done     doneQueue
}

// States of a desk.
const (
	open uint32 = iota
	closed
	failed
)

// New returns a desk in front of the engine's input ring that has up to
// maxTickets tickets out at a time. ErrSize when that is not 1 to MaxTickets.
func New(in *ring.MPSC[matcher.Command], maxTickets int) (*Desk, error) {
	if maxTickets < 1 || maxTickets > MaxTickets {
		return nil, fmt.Errorf("desk: new tickets=%d: %w", maxTickets, ErrSize)
	}
	d := &Desk{in: in, tickets: make([]Ticket, maxTickets), epoch: time.Now()}
	d.pool.small = make([]uint32, 0, maxTickets)
	d.pool.large = make([]uint32, 0, maxTickets)
	for i := maxTickets - 1; i >= 0; i-- {
		t := &d.tickets[i]
		t.desk, t.index, t.wake = d, uint32(i), make(chan token, tokens)
		d.pool.small = append(d.pool.small, uint32(i))
	}
	d.done.slots = make([]done, 1<<bits.Len(uint(maxTickets-1)))
	d.done.mask = uint64(len(d.done.slots) - 1)
	return d, nil
}

// Drives names what decides and records quietly published commands on the goroutine that
// submits them, while the threads that do so otherwise rest. Without it they are woken. Before the
// first Submit.
func (d *Desk) Drives(drive func()) { d.drive = drive }

// Acquire returns a ticket for n commands, to be filled in and submitted.
//
// Errors: ErrBusy when all tickets are out (try again later), ErrSize for an n
// outside 1 to MaxBatch, ErrClosed, ErrFailed. The caller must Release it.
func (d *Desk) Acquire(n int) (*Ticket, error) {
	if n < 1 || n > MaxBatch {
		return nil, fmt.Errorf("desk: acquire n=%d: %w", n, ErrSize)
	}
	if err := d.refusal(); err != nil {
		return nil, err
	}
	first, second := &d.pool.small, &d.pool.large
	if n > 1 {
		first, second = second, first
	}
	d.pool.mu.Lock()
	list := first
	if len(*list) == 0 {
		list = second
	}
	last := len(*list) - 1
	if last < 0 {
		d.pool.mu.Unlock()
		return nil, ErrBusy
	}
	t := &d.tickets[(*list)[last]]
	*list = (*list)[:last]
	d.pool.mu.Unlock()
	t.prepare(n)
	return t, nil
}

// refusal is why the desk takes nothing any more, nil while it does.
func (d *Desk) refusal() error {
	switch d.state.Load() {
	case open:
		return nil
	case closed:
		return ErrClosed
	}
	return ErrFailed
}

// back puts a ticket into the pool.
func (d *Desk) back(t *Ticket) {
	list := &d.pool.small
	if len(t.commands) > 1 {
		list = &d.pool.large
	}
	d.pool.mu.Lock()
	*list = append(*list, t.index)
	d.pool.mu.Unlock()
}

// Out is how many tickets are out: held, waiting, or given up without an answer
// yet. Any goroutine.
func (d *Desk) Out() int {
	d.pool.mu.Lock()
	defer d.pool.mu.Unlock()
	return len(d.tickets) - len(d.pool.small) - len(d.pool.large)
}

// Cap is how many tickets there are.
func (d *Desk) Cap() int { return len(d.tickets) }

// Close makes the desk refuse new commands; those on their way are answered.
func (d *Desk) Close() { d.state.CompareAndSwap(open, closed) }

// Fail wakes everyone who waits with ErrFailed and refuses everything from now
// on: what was handed in may or may not be durable. The first call counts. Any goroutine.
func (d *Desk) Fail(cause error) {
	if d.state.Swap(failed) == failed {
		return
	}
	d.pool.mu.Lock()
	d.pool.cause = cause
	d.pool.mu.Unlock()
	for i := range d.tickets {
		d.tickets[i].finish(lost)
	}
}

// Cause is what Fail was called with, nil before.
func (d *Desk) Cause() error {
	d.pool.mu.Lock()
	defer d.pool.mu.Unlock()
	return d.pool.cause
}
