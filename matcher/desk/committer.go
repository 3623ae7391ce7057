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
		t.wake <- struct{}{}
		return
	}
	if t.state.CompareAndSwap(abandoned, free) {
		t.desk.back(t)
	}
}
