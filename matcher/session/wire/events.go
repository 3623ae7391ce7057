//perf:hot

package wire

import "sync/atomic"

// Outbox is the writing end of an event ring. The server's goroutine for the
// session owns it; the client's only part in it is one cursor, which is judged
// before it is believed.
//
// Invariant: consumed <= published <= written <= consumed+capacity.
type Outbox struct {
	slots    []Record
	mask     int64
	page     Page
	cursor   *atomic.Int64 // what the client may read; writer: the server
	written  int64
	sent     int64 // what cursor holds
	consumed int64 // the client's cursor, as last believed
}

// Refresh reads the client's cursor, once. False: no correct client writes such a
// one; it was not believed, and the session should end.
func (o *Outbox) Refresh() bool {
	c := o.page.consumed.Load()
	if c < o.consumed || c > o.sent {
		return false
	}
	o.consumed = c
	return true
}

// Room is how many records can be written, as of the last Refresh.
func (o *Outbox) Room() int { return int(o.mask + 1 - (o.written - o.consumed)) }

// Cap is the number of slots.
func (o *Outbox) Cap() int { return len(o.slots) }

// Put writes a record, to be seen after Flush. There must be room.
func (o *Outbox) Put(r *Record) {
	o.slots[o.written&o.mask] = *r
	o.written++
}

// Pending reports that Put has written what Flush has not shown.
func (o *Outbox) Pending() bool { return o.written != o.sent }

// Flush shows what was written and wakes the client if it is parked.
func (o *Outbox) Flush() {
	if o.written == o.sent {
		return
	}
	o.sent = o.written
	o.cursor.Store(o.sent)
	o.page.Waiter.Notify()
}

// Inbox is the reading end of an event ring: the client's.
type Inbox struct {
	slots    []Record
	mask     int64
	page     Page
	cursor   *atomic.Int64
	consumed int64
}

// Next copies what is there, at most len(dst) records, and gives their slots back.
func (i *Inbox) Next(dst []Record) int {
	n := min(int(i.cursor.Load()-i.consumed), len(dst))
	if n <= 0 {
		return 0
	}
	for k := range n {
		dst[k] = i.slots[(i.consumed+int64(k))&i.mask]
	}
	i.consumed += int64(n)
	i.page.consumed.Store(i.consumed)
	return n
}

// Empty reports that there is nothing to read: the last look before parking.
func (i *Inbox) Empty() bool { return i.cursor.Load() == i.consumed }
