//perf:hot

package desk

import (
	"sync/atomic"

	"posttrade/matcher"
)

// recorder is what Observe keeps from one event to the next. Writer: the recorder.
type recorder struct {
	_      [64]byte
	answer *Answer // of the command whose events are passing, nil if no holder waits for it
	ticket *Ticket
	_      [64]byte
}

// done states that the last command of a ticket had its last event: the ticket is finished when
// that command's sequence is durable.
type done struct {
	inputSeq uint64
	ticket   uint32
}

// doneQueue takes finished tickets from the recorder to the committer, in sequence. It has room for
// every ticket, and a ticket is in it at most once, so the recorder never finds it full. Each index
// has a line of its own, because each has another writer.
type doneQueue struct {
	slots []done
	mask  uint64
	_     [64]byte
	head  atomic.Uint64 // writer: the recorder
	_     [64]byte
	tail  atomic.Uint64 // writer: the releaser of the answers
	_     [64]byte
}

// Observe takes what an event says about a command of a ticket. The recorder passes every event, in
// order. No other goroutine calls it. It ignores events of commands without a ticket here: of a
// replay, of another member, or of an earlier use of the ticket.
func (d *Desk) Observe(ev *matcher.Event) {
	r := &d.recorder
	if ev.Flags&matcher.EventFirst != 0 {
		r.answer = nil
		if ev.Ref == 0 {
			return
		}
		t, i := d.find(ev.Ref)
		if t == nil || t.unsaid == 0 {
			return
		}
		r.ticket, r.answer = t, &t.answers[i]
		r.answer.first(ev)
	} else if r.answer == nil {
		return
	} else if a := r.answer; ev.OrderRef == a.OrderRef { // of a market trade both are 0
		a.later(ev)
	}
	if ev.Flags&matcher.EventLast != 0 {
		r.answer = nil
		d.said(r.ticket, ev.InputSeq)
	}
}

// find returns the ticket and the place that a correlation id stands for, nil if the id is not this
// desk's or belongs to an earlier use. A ticket that is neither submitted nor given up has no
// command under way, whatever the id says.
func (d *Desk) find(ref uint64) (t *Ticket, i int) {
	index := ref >> commandBits & (MaxTickets - 1)
	if ref&Foreign != 0 || index >= uint64(len(d.tickets)) {
		return nil, 0
	}
	t = &d.tickets[index]
	if t.generation.Load() != ref>>(commandBits+ticketBits) {
		return nil, 0
	}
	switch t.state.Load() {
	case submitted, waiting, abandoned, lost:
	default:
		return nil, 0
	}
	i = int(ref & (MaxBatch - 1))
	if i >= t.n {
		return nil, 0
	}
	return t, i
}

// said counts a command of a ticket as finished and passes on a finished ticket. The store of head
// publishes the answers to the committer, and through it to the holder.
func (d *Desk) said(t *Ticket, inputSeq uint64) {
	t.unsaid--
	if t.unsaid > 0 {
		return
	}
	q := &d.done
	head := q.head.Load()
	q.slots[head&q.mask] = done{inputSeq: inputSeq, ticket: t.index}
	q.head.Store(head + 1)
}

// ClientID returns the caller's name of the command with this correlation id, nil if it has none.
// The name is valid until Durable reaches the command. Only the recorder calls it.
func (d *Desk) ClientID(ref uint64) []byte {
	if ref == 0 {
		return nil
	}
	t, i := d.find(ref)
	if t == nil || t.ids[i].length == 0 {
		return nil
	}
	return t.ids[i].bytes()
}
