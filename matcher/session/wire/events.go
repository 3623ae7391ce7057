//perf:hot

package wire

import "sync/atomic"

// Outbox is the writing end of an event ring. The server's goroutine for the session owns it. The
// client writes only one cursor, which is checked before use.
//
// Invariant: consumed <= published <= written <= consumed+capacity.
type Outbox struct {
	// The writer keeps its own copies of all cursors: nothing in shared memory but the client's one
	// cursor is ever read back.
	slots    []Record
	mask     int64
	page     Page
	cursor   *atomic.Int64 // end of the records that the client may read; writer: the server
	written  int64
	sent     int64 // the value of cursor
	consumed int64 // the client's cursor, as last accepted
}

// Refresh reads the client's cursor, once. It returns false when no correct client writes such a
// cursor; the value is then ignored, and the session should end.
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

// Put writes a record, which the client sees after Flush. There must be room: Put does not look.
// The copy costs two lines.
func (o *Outbox) Put(r *Record) {
	o.slots[o.written&o.mask] = *r
	o.written++
}

// Pending reports that Put has written records that Flush has not shown.
func (o *Outbox) Pending() bool { return o.written != o.sent }

// Flush shows the written records and wakes the client if it is parked.
func (o *Outbox) Flush() {
	if o.written == o.sent {
		return
	}
	o.sent = o.written
	o.cursor.Store(o.sent)
	o.page.Waiter.Notify()
}

// Inbox is the reading end of an event ring. The client owns it: one goroutine at a time. Its
// cursor lies in the client's page, because the ring itself is read-only here.
type Inbox struct {
	slots    []Record
	mask     int64
	page     Page
	cursor   *atomic.Int64
	consumed int64
}

// Next copies the records that are there, at most len(dst), and releases their slots. It returns
// how many, 0 for none, and never waits. One goroutine at a time.
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

// Empty reports that there is no record to read: the last look before parking.
func (i *Inbox) Empty() bool { return i.cursor.Load() == i.consumed }
