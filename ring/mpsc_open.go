package ring

// NewMPSC formats the region as an empty ring of capacity slots; T, capacity
// and errors are those of NewSPSC, the size is MPSCBytes[T](capacity).
func NewMPSC[T any](region *Region, capacity int) (*MPSC[T], error) {
	v, err := format[T](region, kindMPSC, capacity)
	if err != nil {
		return nil, err
	}
	registerBarrier()
	return &MPSC[T]{
		slots: v.slots, laps: v.laps, region: region, waiter: &v.lines.waiter,
		mask: int64(capacity) - 1, shift: log2(capacity), capacity: int64(capacity),
		claimed: &v.lines.head, tail: &v.lines.tail,
	}, nil
}

// Waiter is the word on which the consumer parks; it lies in the region. For the
// consumer's Idler, and for Wake when it is to stop.
func (r *MPSC[T]) Waiter() *Waiter { return r.waiter }
