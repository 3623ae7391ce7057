package ring

// NewFanout formats the region as an empty ring of capacity slots; T, capacity
// and errors are those of NewSPSC, the size is FanoutBytes[T](capacity).
func NewFanout[T any](region *Region, capacity int) (*Fanout[T], error) {
	v, err := format[T](region, kindFanout, capacity)
	if err != nil {
		return nil, err
	}
	registerBarrier()
	r := &Fanout[T]{
		slots: v.slots, mask: int64(capacity) - 1, region: region, waiter: &v.lines.waiter,
		limit:     int64(capacity),
		published: &v.lines.head, gate: &v.lines.tail, parked: v.lines.waiter.addr(),
	}
	r.consumer.start(v.lines, int64(capacity), 0, 0)
	return r, nil
}

// Reader returns a free reader that starts at the oldest slot that is certainly
// whole. It may belong to any one goroutine.
func (r *Fanout[T]) Reader() *Reader[T] {
	words := int(r.capacity) * wordsOf[T]()
	rd := &Reader[T]{
		words: sliceAs[uint64](r.slots, words), region: r.region, published: r.published,
		mask: r.mask, slotWords: wordsOf[T](),
	}
	rd.pos = rd.oldest(r.Published())
	return rd
}

// Waiter is the word on which the gating reader parks; it lies in the region.
// For the reader's Idler, and for Wake when it is to stop.
func (r *Fanout[T]) Waiter() *Waiter { return r.waiter }
