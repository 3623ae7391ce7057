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
		d.tickets[slot.ticket].answer()
	}
}

// answer ends a submission: to its holder, or to the pool if nobody holds it.
func (t *Ticket) answer() {
	if t.state.CompareAndSwap(submitted, answered) {
		t.wake <- ended
		return
	}
	if t.state.CompareAndSwap(abandoned, free) {
		t.desk.back(t)
	}
}

// Refuse ends the submission of the ticket that a correlation id stands for, of
// which nothing was sequenced nor ever will be: its holder is told ErrRefused. A
// ticket given up returns to the pool. An id that means nothing is ignored. For
// whoever stands between the desk and the engine and has not handed it on; any goroutine.
func (d *Desk) Refuse(ref uint64) {
	t, _ := d.find(ref)
	if t == nil {
		return
	}
	if t.state.CompareAndSwap(submitted, refused) {
		t.wake <- ended
		return
	}
	if t.state.CompareAndSwap(abandoned, free) {
		d.back(t)
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
