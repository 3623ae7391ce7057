//perf:hot

package blotter

import (
	"sync/atomic"

	"posttrade/ring"
)

// changes are the latest changes of levels, for readers that copy a book piece by piece while it
// changes (depth_read.go). The writer notes them only while a reader reads.
type changes struct {
	slots []change
	_     [64]byte
	head  ring.Sequence // writer: the observer. Number of changes noted so far
	_     [64]byte
	users atomic.Int64 // writers: readers, while they read
	_     [64]byte
}

// change is the new state of a level, in words, because readers may find it half written.
type change struct {
	side, px, qty, orders uint64
	inputSeq              uint64
	version               uint64 // of its side, after the change
}

// changesKept is how many changes a reader may be behind, a power of two. A reader that is further
// behind begins again.
const changesKept = 1 << 14

// note appends a change. Writer only.
func (c *changes) note(is *change) {
	at := c.head.Load()
	s := &c.slots[at&(changesKept-1)]
	ring.StoreRelease(&s.side, is.side)
	ring.StoreRelease(&s.px, is.px)
	ring.StoreRelease(&s.qty, is.qty)
	ring.StoreRelease(&s.orders, is.orders)
	ring.StoreRelease(&s.inputSeq, is.inputSeq)
	ring.StoreRelease(&s.version, is.version)
	c.head.Release(at + 1)
}

// read copies change number at, which is below head. The copy is valid only if keeps, called
// afterwards, reports that the slot was not written again.
func (c *changes) read(at int64, to *change) {
	s := &c.slots[at&(changesKept-1)]
	to.side, to.px = atomic.LoadUint64(&s.side), atomic.LoadUint64(&s.px)
	to.qty, to.orders = atomic.LoadUint64(&s.qty), atomic.LoadUint64(&s.orders)
	to.inputSeq, to.version = atomic.LoadUint64(&s.inputSeq), atomic.LoadUint64(&s.version)
}

// keeps reports that the change is still there: the next change to be written has another slot.
func (c *changes) keeps(at int64) bool { return c.head.Load()-at < changesKept }
