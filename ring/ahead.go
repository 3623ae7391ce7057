package ring

// Frontier is a table whose places are used in the order of a number that only grows, and
// from its beginning again after a lap.
type Frontier struct {
	Reached func() uint64 // the number that comes next; any goroutine
	Lap     uint64        // how many numbers have a place of their own
	// makes the places of these resident, not end's; any goroutine
	MakeRoom func(first, end uint64) error
}

// Ahead makes the memory of tables resident before it is used. The first write to a large
// page takes some hundreds of microseconds, which a goroutine that nobody waits for had better
// spend. It has something to do for one lap of each table. One goroutine at a time.
type Ahead struct {
	distance uint64
	fronts   []front
}

// front is a Frontier and how far it has been looked after: up to until, of a lap that ends.
type front struct {
	Frontier
	until, end uint64
}

// NewAhead returns an Ahead that keeps so many numbers ready.
func NewAhead(distance uint64, frontiers ...Frontier) *Ahead {
	a := &Ahead{distance: distance}
	for _, f := range frontiers {
		at := f.Reached()
		a.fronts = append(a.fronts, front{f, at, at + f.Lap})
	}
	return a
}

// Step brings every table up to where it should be, once at least a quarter of the
// distance is missing. It says whether any table has moved that far, which is when
// the next step had better come soon, and whether another step can have anything to do.
func (a *Ahead) Step() (moved, more bool, err error) {
	for i := range a.fronts {
		f := &a.fronts[i]
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
