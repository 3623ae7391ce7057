package desk

// Durable wakes the holder of every ticket whose last command is at or below
// seq, and takes back those given up. Committer only, in order.
func (d *Desk) Durable(seq uint64) {
	q := &d.done
	tail, head := q.tail.Load(), q.head.Load()
	for ; tail != head; tail++ {
		slot := q.slots[tail&q.mask]
		if slot.inputSeq > seq {
			break
		}
		// Before the ticket can be used again and come round to this slot.
		q.tail.Store(tail + 1)
		d.tickets[slot.ticket].finish(answered)
	}
}

// finish ends a submission: to its holder, who is woken if it waits, or to the pool if nobody
// holds it. One that is lost never goes back: the recorder may still write to it.
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
			continue // its holder has begun to wait, has had enough of it, or has given it up
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

// Refuse ends the submission of the ticket that a correlation id stands for, of
// which nothing was sequenced nor ever will be: its holder is told ErrRefused. A
// ticket given up returns to the pool. An id that means nothing is ignored. For
// whoever stands between the desk and the engine and has not handed it on; any goroutine.
func (d *Desk) Refuse(ref uint64) {
	if t, _ := d.find(ref); t != nil {
		t.finish(refused)
	}
}

// Size is how many commands the ticket of a correlation id has handed in, side by
// side, 0 if the id means nothing. For the same callers as Refuse.
func (d *Desk) Size(ref uint64) int {
	t, _ := d.find(ref)
	if t == nil {
		return 0
	}
	return t.n
}
