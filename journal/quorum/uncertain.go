package quorum

import (
	"slices"
	"sync"
)

// uncertainEntries tracks entries of this process that were in the log when it lost its leadership:
// they may still be agreed. An entry is uncertain until it is applied, or until it is certain that
// it never will be: the log is past its place, a later term has begun, or a later entry of this
// process is applied. The last holds because this process's entries lie in the log in the order of
// their numbers.
type uncertainEntries struct {
	mu    sync.Mutex // guards what follows
	own   uint64     // number of the last entry of this process that was applied
	gaps  []uint64   // numbers below own that were not
	index uint64     // of the last entry applied
	term  uint64     // and its term
	open  []uncertainEntry
}

// uncertainEntry is an entry that may or may not be agreed: its number, where it lies in this
// member's log, and the submissions in it.
type uncertainEntry struct {
	number, index uint64
	term          uint64 // at or after the term in which it was proposed
	refs          []uint64
}

// add adds an uncertain entry. It returns the submissions that will certainly never be agreed.
func (d *uncertainEntries) add(x uncertainEntry) (dead []uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	// they come in order
	d.gaps = slices.DeleteFunc(d.gaps, func(n uint64) bool { return n < x.number })
	switch {
	case x.number <= d.own:
		if slices.Contains(d.gaps, x.number) {
			return x.refs
		}
		return nil // agreed after all
	case d.passed(&x):
		return x.refs
	}
	d.open = append(d.open, x)
	return nil
}

// passed reports that another entry has the place of x, or that its term is over. Either makes it
// certain that x never will be agreed: entries are applied in the order of the log, and terms only
// rise.
func (d *uncertainEntries) passed(x *uncertainEntry) bool {
	return d.index >= x.index || d.term > x.term
}

// applied records an applied entry: own is its number if it is this process's, else 0. It returns
// the submissions that will certainly never be agreed.
func (d *uncertainEntries) applied(own, index, term uint64) (dead []uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.index, d.term = index, term
	if own != 0 {
		for n := d.own + 1; n < own; n++ {
			d.gaps = append(d.gaps, n)
		}
		d.own = own
	}
	d.open = slices.DeleteFunc(d.open, func(x uncertainEntry) bool {
		switch {
		case own != 0 && x.number == own:
			return true
		case own != 0 && x.number < own, d.passed(&x):
			dead = append(dead, x.refs...)
			return true
		}
		return false
	})
	return dead
}
