package desk

// Durable wakes the holder of every ticket with its last command at or below seq, and takes back
// the tickets that were given up. Only the releaser of the answers calls it, one goroutine at a
// time, in order of seq. Its cost follows the tickets that it finishes.
func (d *Desk) Durable(seq uint64) {
	q := &d.done
	tail, head := q.tail.Load(), q.head.Load()
	for ; tail != head; tail++ {
		slot := q.slots[tail&q.mask]
		if slot.inputSeq > seq {
			break
		}
		// This store comes before the ticket can be used again and return to this slot.
		q.tail.Store(tail + 1)
		d.tickets[slot.ticket].finish(answered)
	}
}

// finish ends a submission. The ticket goes to its holder, which is woken if it waits, or to the
// pool if it has no holder. A lost ticket never goes back: the recorder may still write to it.
//
// Of two calls for one submission, as of Durable and Fail, the first one counts. Any goroutine.
func (t *Ticket) finish(as uint32) {
	for {
		was, to := t.state.Load(), as
		switch {
		case was == submitted || was == waiting:
		case was == abandoned && as != lost:
			to = free
		default:
			return
		}
		if !t.state.CompareAndSwap(was, to) {
			// Its holder has begun to wait, has stopped waiting, or has given the ticket up.
			continue
		}
		switch was {
		case waiting:
			t.wake <- ended
		case abandoned:
			t.pool.back(t)
		}
		return
	}
}

// Refuse ends the submission of the ticket that a correlation id stands for. Nothing of it was
// sequenced or ever will be, and its holder gets ErrRefused. A ticket that was given up returns to
// the pool. Refuse ignores an id without a ticket. It is for a stage between the desk and the
// engine that has not handed the submission on. Any goroutine may call it.
func (d *Desk) Refuse(ref uint64) {
	if t, _ := d.find(ref); t != nil {
		t.finish(refused)
	}
}

// Size is how many commands the ticket of a correlation id has handed in, side by side, 0 if the id
// has no ticket. It is for the same callers as Refuse, which must hand a submission on as a whole.
func (d *Desk) Size(ref uint64) int {
	t, _ := d.find(ref)
	if t == nil {
		return 0
	}
	return t.n
}
