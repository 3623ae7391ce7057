package desk

import (
	"errors"
	"fmt"
	"math/bits"
	"sync/atomic"
	"time"

	"posttrade/matcher"
	"posttrade/ring"
)

// The reasons why a command was not handed in, or its answer did not come; test by errors.Is.
var (
	// No ticket is free: the caller may try again.
	ErrBusy = errors.New("too many commands are waiting for their answers")
	// The engine does not keep up: the caller may try again.
	ErrFull = errors.New("input ring is full")
	// The process is stopping.
	ErrClosed = errors.New("desk is closed")
	// From Submit: nothing was sequenced. From Wait: the outcome is unknown.
	ErrFailed  = errors.New("journal has failed")
	ErrRefused = errors.New("not sequenced: this member does not lead any more")
	// The outcome is unknown; the command is still under way.
	ErrTimeout = errors.New("no answer in time")
	ErrSize    = errors.New("size is out of range")
)

// Limits of a desk.
const (
	MaxBatch         = 1 << commandBits // of one ticket
	MaxTickets       = 1 << ticketBits
	MaxClientIDBytes = 64
)

// The parts of a correlation id, from the lowest bit: command, ticket, generation, and the top bit,
// which a desk never sets. A generation is reused after 2^33 uses of a ticket; it begins at 1, so
// no id is 0.
const (
	commandBits    = 10
	ticketBits     = 20
	generationBits = 33
)

// Foreign is set in the correlation ids that do not come from a desk, such as those of another
// member's commands. Observe ignores them.
const Foreign = 1 << 63

// Desk hands tickets out and wakes their holders. The tickets are made once and never move, so an
// index names one for good.
type Desk struct {
	in      *ring.MPSC[matcher.Command]
	tickets []Ticket
	drive   func()        // constant after Drives
	state   atomic.Uint32 // open, closed or failed; only rises
	epoch   time.Time     // start of the alarms' clock

	pools []*Pool // each with its own range of tickets
	kinds [kinds]*Pool

	recorder recorder
	done     doneQueue
}

// States of a desk.
const (
	open uint32 = iota
	closed
	failed
)

// New returns a desk in front of the engine's input ring that has up to maxTickets tickets out at a
// time, of any kind. ErrSize when maxTickets is not 1 to MaxTickets.
func New(in *ring.MPSC[matcher.Command], maxTickets int) (*Desk, error) {
	if maxTickets < 1 {
		return nil, fmt.Errorf("desk: new tickets=%d: %w", maxTickets, ErrSize)
	}
	return newDesk(in, []int{maxTickets}, []int{0})
}

// NewShared returns a desk that divides its tickets among the kinds of callers: tickets that one
// kind holds are never missing to another. A kind with 0 tickets cannot acquire any. ErrSize when
// one number is negative, or when the sum is not 1 to MaxTickets.
func NewShared(in *ring.MPSC[matcher.Command], s Shares) (*Desk, error) {
	return newDesk(in, []int{s.Requests, s.Sessions, s.Sidecars},
		[]int{spareOf(in.Cap(), SpareOfRequests), spareOf(in.Cap(), spareOfSessions), 0})
}

// newDesk makes a pool of each size; the last pool serves the remaining kinds. spares are the slots
// that the pool's commands leave free in the ring.
func newDesk(in *ring.MPSC[matcher.Command], sizes, spares []int) (*Desk, error) {
	total := 0
	for _, n := range sizes {
		if n < 0 || n > MaxTickets-total {
			return nil, fmt.Errorf("desk: new tickets=%v: %w", sizes, ErrSize)
		}
		total += n
	}
	if total == 0 {
		return nil, fmt.Errorf("desk: new tickets=%v: %w", sizes, ErrSize)
	}
	d := &Desk{in: in, tickets: make([]Ticket, total), epoch: time.Now()}
	first := 0
	for i, n := range sizes {
		d.pools = append(d.pools, newPool(d, first, n, spares[i]))
		first += n
	}
	for kind := range d.kinds {
		d.kinds[kind] = d.pools[min(kind, len(d.pools)-1)]
	}
	d.done.slots = make([]done, 1<<bits.Len(uint(total-1)))
	d.done.mask = uint64(len(d.done.slots) - 1)
	return d, nil
}

// Drives sets what decides and records quietly published commands on the goroutine that submits
// them, while the threads that otherwise do so rest. Without it Submit wakes those threads. The
// caller sets it before the first Submit.
func (d *Desk) Drives(drive func()) { d.drive = drive }

// Acquire returns a ticket for n commands of a caller's request, which the caller fills in and
// submits; see Pool.Acquire.
func (d *Desk) Acquire(n int) (*Ticket, error) { return d.kinds[Requests].Acquire(n) }

// Pool returns the tickets of a kind of callers. Of a desk that New made, all kinds share one pool.
func (d *Desk) Pool(k Kind) *Pool { return d.kinds[k] }

// refusal returns why the desk takes nothing any more, nil while it does. One load.
func (d *Desk) refusal() error {
	switch d.state.Load() {
	case open:
		return nil
	case closed:
		return ErrClosed
	}
	return ErrFailed
}

// Out returns how many tickets are out: held, waiting, or given up without an answer yet. Any
// goroutine may call it.
func (d *Desk) Out() (n int) {
	for _, p := range d.pools {
		n += p.Out()
	}
	return n
}

// InputSlots returns how many commands the input ring has room for.
func (d *Desk) InputSlots() int { return d.in.Cap() }

// Close makes the desk refuse new commands; it still answers those on their way. Any goroutine;
// after Fail it has no effect.
func (d *Desk) Close() { d.state.CompareAndSwap(open, closed) }

// Fail wakes every waiting holder with ErrFailed and refuses everything from now on. What was
// handed in may or may not be durable. Only the first call has an effect. Any goroutine may call
// it. There is no way back: a process whose journal has failed ends.
func (d *Desk) Fail() {
	if d.state.Swap(failed) == failed {
		return
	}
	for i := range d.tickets {
		d.tickets[i].finish(lost)
	}
}
