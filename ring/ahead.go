package ring

// Frontier is a table that is filled in the order of a number that only grows. After a lap it is
// filled from its beginning again.
type Frontier struct {
	Reached func() uint64 // the number that comes next; any goroutine
	Lap     uint64        // how many numbers have a place of their own
	// makes the places of [first, end) resident; any goroutine
	MakeRoom func(first, end uint64) error
}

// Ahead makes the memory of tables resident before it is used. The first write to a large page
// takes some hundreds of microseconds. A goroutine on which no other goroutine waits calls Step and
// spends that time. Ahead has work for one lap of each table. One goroutine at a time.
type Ahead struct {
	distance  uint64
	frontiers []frontierProgress
}

// frontierProgress is a Frontier and its progress: places up to until are resident, and the lap
// ends at end.
type frontierProgress struct {
	Frontier
	until, end uint64
}

// NewAhead returns an Ahead that keeps the places of the next distance numbers resident.
func NewAhead(distance uint64, frontiers ...Frontier) *Ahead {
	a := &Ahead{distance: distance}
	for _, f := range frontiers {
		at := f.Reached()
		a.frontiers = append(a.frontiers, frontierProgress{f, at, at + f.Lap})
	}
	return a
}

// Step makes the missing places of a table resident once at least a quarter of the distance is
// missing. moved reports that Step did so for some table: the next step should come soon. more
// reports that another step can have work to do.
func (a *Ahead) Step() (moved, more bool, err error) {
	for i := range a.frontiers {
		f := &a.frontiers[i]
		at := f.Reached()
		until := min(at+a.distance, f.end)
		if first := max(f.until, at); until >= f.until+min(a.distance/4, f.end-f.until) && first < until {
			if err := f.MakeRoom(first, until); err != nil {
				return moved, true, err
			}
			f.until, moved = until, true
		}
		more = more || f.until < f.end && at < f.end
	}
	return moved, more, nil
}
