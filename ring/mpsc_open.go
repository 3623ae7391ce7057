package ring

// NewMPSC formats the region as an empty ring of capacity slots; T, capacity
// and errors are those of NewSPSC, the size is MPSCBytes[T](capacity).
func NewMPSC[T any](region *Region, capacity int) (*MPSC[T], error) {
	v, err := format[T](region, kindMPSC, capacity)
	if err != nil {
		return nil, err
	}
	return newMPSC(region, v, 0), nil
}

// OpenMPSC attaches to a ring that NewMPSC formatted; the errors are those of OpenSPSC.
func OpenMPSC[T any](region *Region) (*MPSC[T], error) {
	v, err := open[T](region, kindMPSC, false)
	if err != nil {
		return nil, err
	}
	_, tail, err := v.cursors(kindMPSC)
	if err != nil {
		return nil, err
	}
	return newMPSC(region, v, tail), nil
}

func newMPSC[T any](region *Region, v parts[T], tail int64) *MPSC[T] {
	registerBarrier()
	r := &MPSC[T]{
		slots: v.slots, laps: v.laps, region: region, waiter: &v.lines.waiter,
		mask: int64(len(v.slots)) - 1, shift: log2(len(v.slots)), capacity: int64(len(v.slots)),
		claimed: &v.lines.head, tail: &v.lines.tail,
		consumed: tail, seen: tail,
	}
	r.gate.Store(tail)
	return r
}

// Waiter is the word on which the consumer parks; it lies in the region. For the
// consumer's Idler, and for Wake when it is to stop.
func (r *MPSC[T]) Waiter() *Waiter { return r.waiter }
