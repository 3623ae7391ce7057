package session

import (
	"slices"

	"posttrade/matcher"
)

// priceLevel is the sum of the orders that rest at one price: their quantity and their number,
// which are never 0 in a ladder.
type priceLevel struct {
	rank   int64
	qty    int64
	orders uint32
}

// ladder is one side of a book: its levels by rank, the best at the end. Most changes happen at the
// end, where no other level has to be moved. Its memory is kept when it empties.
type ladder struct{ levels []priceLevel }

// rankOf orders the prices of a side from worst to best; pxOf is its inverse. Both are the same
// exclusive or, which reverses the order of all int64 for a seller.
func rankOf(side matcher.Side, px int64) int64 { return px ^ -int64(side&1) }

func pxOf(side matcher.Side, rank int64) int64 { return rankOf(side, rank) }

// find is the place of a rank, or the place where it belongs. It tries the best level first, then
// searches in halves.
func (l *ladder) find(rank int64) (at int, ok bool) {
	if n := len(l.levels); n > 0 && l.levels[n-1].rank == rank {
		return n - 1, true
	}
	return slices.BinarySearchFunc(l.levels, rank, func(r priceLevel, rank int64) int {
		switch {
		case r.rank < rank:
			return -1
		case r.rank > rank:
			return 1
		}
		return 0
	})
}

// add adds an order to a level.
func (l *ladder) add(rank, qty int64) {
	at, ok := l.find(rank)
	if !ok {
		l.levels = slices.Insert(l.levels, at, priceLevel{rank: rank})
	}
	l.levels[at].qty += qty
	l.levels[at].orders++
}

// take subtracts quantity of an order from a level, and removes the order itself when it leaves.
// The level goes with its last order. A level that is not there is a fault of the caller, and take
// panics.
func (l *ladder) take(rank, qty int64, leaves bool) {
	at, ok := l.find(rank)
	if !ok {
		panic("session: an order left a level that is not there")
	}
	l.levels[at].qty -= qty
	if !leaves {
		return
	}
	if l.levels[at].orders--; l.levels[at].orders == 0 {
		l.levels = slices.Delete(l.levels, at, at+1)
	}
}

// best is the best level, if there is one.
func (l *ladder) best() (r priceLevel, ok bool) {
	if n := len(l.levels); n > 0 {
		return l.levels[n-1], true
	}
	return r, false
}
