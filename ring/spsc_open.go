package ring

import "unsafe"

// NewSPSC formats the region as an empty ring of capacity slots.
//
//   - Shape: T is 64 or 128 bytes (ErrSlotSize) without pointers (ErrPointers); capacity is a power
//     of two from 2 to 2^30 (ErrCapacity); the region holds SPSCBytes[T](capacity) or more
//     (ErrSize).
//   - The caller keeps owning the region and closes it after both sides have stopped.
//   - Source: the layout is drawn in doc.go.
func NewSPSC[T any](region *Region, capacity int) (*SPSC[T], error) {
	v, err := format[T](region, kindSPSC, capacity)
	if err != nil {
		return nil, err
	}
	return newSPSC(region, v, 0, 0), nil
}

// OpenSPSC attaches to a ring that NewSPSC formatted, usually in another process. ErrFormat when
// magic, version, kind, slot size, capacity, region length or cursors are not valid. Each value is
// read once.
func OpenSPSC[T any](region *Region) (*SPSC[T], error) {
	v, err := open[T](region)
	if err != nil {
		return nil, err
	}
	head, tail, err := v.cursors()
	if err != nil {
		return nil, err
	}
	return newSPSC(region, v, head, tail), nil
}

func newSPSC[T any](region *Region, v parts[T], head, tail int64) *SPSC[T] {
	registerBarrier()
	capacity := int64(len(v.slots))
	r := &SPSC[T]{slots: v.slots, mask: capacity - 1, region: region, waiter: &v.lines.waiter}
	r.producer.start(v.lines, capacity, head, tail)
	r.producer.base, r.producer.slotBytes = unsafe.Pointer(unsafe.SliceData(v.slots)),
		int64(unsafe.Sizeof(v.slots[0]))
	r.consumer.start(v.lines, capacity, head, tail)
	return r
}

// start gives the writing end its lines and the positions found there.
func (p *producer) start(l *lines, capacity, head, tail int64) {
	p.claimed, p.limit, p.warm, p.free, p.room = head, head, head, tail+capacity, capacity
	p.published, p.gate, p.parked = word(&l.head.v), &l.tail, l.waiter.addr()
}

// start gives the reading end its lines and the positions found there.
func (c *consumer) start(l *lines, capacity, head, tail int64) {
	c.consumed, c.seen, c.capacity, c.head, c.tail = tail, head, capacity, &l.head, &l.tail
	c.pace = pacer{burst: min(burstSlots, capacity/4), apart: ticksIn(lookNs)}
}

// Waiter is the word on which the consumer parks; it lies in the region. For the consumer's Idler,
// and for Wake when it is to stop.
func (r *SPSC[T]) Waiter() *Waiter { return r.waiter }

// Corrupt reports that the other side wrote a cursor that no correct peer can
// write. The ring then moves no further; drop the peer. Any goroutine.
func (r *SPSC[T]) Corrupt() bool { return r.foul.Load() || r.broken.Load() }
