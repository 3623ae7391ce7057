package desk

import (
	"fmt"
	"sync"
)

// Kind is a kind of callers: each has its own tickets, so that a crowd of one kind cannot take
// those of another.
type Kind int

// The kinds. Requests are those of HTTP, which come and go. Sessions are those of shared memory;
// their answers wait for their reader. Sidecars are those of this process; the control state and
// the prices depend on them.
const (
	Requests Kind = iota
	Sessions
	Sidecars
	kinds
)

// Shares are the tickets of each kind: how many callers of the kind may wait for answers at one
// time. 0 shuts the kind out.
type Shares struct{ Requests, Sessions, Sidecars int }

// Parts of the input ring, one of so many, that requests and sessions leave free. A session leaves
// room for the sidecars, and a request also leaves room for sessions: a crowd of either does not
// fill the ring for the others. (The sessions themselves bound what they have in the ring.)
const (
	SpareOfRequests = 4
	spareOfSessions = 16
)

// spareOf returns a part of a ring of slots, and leaves room for the largest batch.
func spareOf(slots, part int) int { return max(0, min(slots/part, slots-MaxBatch)) }

// keptCommands is the number of commands that the batch tickets of a pool keep room for while they
// are in the pool, some 270 bytes each. The collector gets back what a crowd of large batches has
// needed beyond that.
const keptCommands = 1 << 15

// Pool is the tickets of one kind of callers. Any goroutine may use it. The last ticket that came
// back goes out first.
type Pool struct {
	desk  *Desk
	size  int
	spare int // slots of the input ring that its commands leave free

	mu    sync.Mutex // Acquire and Release lock it; the committer only for a ticket given up
	small []uint32   // tickets with room for one command, or none yet
	large []uint32   // tickets that have carried a batch: they keep their buffers
	room  int        // commands that the tickets in large have room for
	_     [64]byte   // other callers use the next pool
}

// newPool makes the pool of n tickets that begin at first.
func newPool(d *Desk, first, n, spare int) *Pool {
	p := &Pool{desk: d, size: n, spare: spare, small: make([]uint32, 0, n)}
	for i := first + n - 1; i >= first; i-- {
		t := &d.tickets[i]
		t.desk, t.pool, t.index, t.wake = d, p, uint32(i), make(chan token, tokens)
		p.small = append(p.small, uint32(i))
	}
	return p
}

// Acquire returns a ticket for n commands, which the caller fills in and submits.
//
// Errors: ErrBusy when all tickets are out (try again later), ErrSize for an n outside 1 to
// MaxBatch, ErrClosed, ErrFailed. The caller must Release the ticket.
func (p *Pool) Acquire(n int) (*Ticket, error) {
	if n < 1 || n > MaxBatch {
		return nil, fmt.Errorf("desk: acquire n=%d: %w", n, ErrSize)
	}
	if err := p.desk.refusal(); err != nil {
		return nil, err
	}
	t := p.take(n)
	if t == nil {
		return nil, ErrBusy
	}
	t.prepare(n)
	return t, nil
}

// take takes a ticket out of the pool, if possible one with enough room; nil: all are out. The
// ticket that came back last goes out first, because its memory is still in the caches.
func (p *Pool) take(n int) *Ticket {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := &p.small
	if n > 1 && len(p.large) > 0 || len(p.small) == 0 {
		list = &p.large
	}
	last := len(*list) - 1
	if last < 0 {
		return nil
	}
	t := &p.desk.tickets[(*list)[last]]
	*list = (*list)[:last]
	if list == &p.large {
		p.room -= len(t.commands)
	}
	return t
}

// back puts a ticket into its pool, without its buffers when the pool has enough buffers. The
// caller has set the state to free; the ticket may be out again before back returns.
func (p *Pool) back(t *Ticket) {
	p.mu.Lock()
	defer p.mu.Unlock()
	size := len(t.commands)
	if size <= 1 {
		p.small = append(p.small, t.index)
		return
	}
	if p.room+size > keptCommands {
		t.grow(0)
		p.small = append(p.small, t.index)
		return
	}
	p.room += size
	p.large = append(p.large, t.index)
}

// Cap returns how many tickets the pool has.
func (p *Pool) Cap() int { return p.size }

// Out returns how many of them are out. Any goroutine may call it.
func (p *Pool) Out() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.size - len(p.small) - len(p.large)
}
