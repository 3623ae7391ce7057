package recon

import (
	"slices"
)

// span is a range of trade sequences, both ends inclusive.
type span struct{ lo, hi uint64 }

func (s span) count() uint64 { return s.hi - s.lo + 1 }

// farApart is the number of entries without a row between two rows from which on their fills are
// read separately.
//
// Below it, reading the fills in between costs less than another read.
const farApart = 4096

// runs splits the owned rows of a page where they are far apart, so that the
// fills of a wide range without rows are not read.
func runs(rows []row, each func(run []row) error) error {
	for len(rows) > 0 {
		end := 1
		for end < len(rows) && rows[end].seq-rows[end-1].seq <= farApart {
			end++
		}
		if err := each(rows[:end]); err != nil {
			return err
		}
		rows = rows[end:]
	}
	return nil
}

// overlap counts the numbers that are in both of two lists of ascending, disjoint spans.
//
// It takes one pass over both.
func overlap(a, b []span) (count uint64) {
	for len(a) > 0 && len(b) > 0 {
		if lo, hi := max(a[0].lo, b[0].lo), min(a[0].hi, b[0].hi); lo <= hi {
			count += hi - lo + 1
		}
		if a[0].hi < b[0].hi {
			a = a[1:]
		} else {
			b = b[1:]
		}
	}
	return count
}

// total counts the numbers in disjoint spans.
func total(spans []span) (count uint64) {
	for _, s := range spans {
		count += s.count()
	}
	return count
}

// ascending sorts disjoint spans.
//
// It sorts in place.
func ascending(spans []span) []span {
	slices.SortFunc(spans, func(a, b span) int {
		if a.lo < b.lo {
			return -1
		}
		return 1
	})
	return spans
}
