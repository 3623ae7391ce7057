package orderflow

import (
	"fmt"
	"slices"

	"posttrade/matcher"
)

// resting is an order that the translation believes to be on the book. Quantities are shares,
// prices x 1e6.
type resting struct {
	// clientID is its name at the venue: that of the step that sent it.
	clientID string
	side     matcher.Side
	px       int64
	// total is the order's quantity as the venue knows it: filled and open. A replace names a new
	// total.
	total int64
	// leaves is the open quantity.
	leaves int64
	// unnamed is, of an added order, the quantity that no message has taken yet. It differs from
	// leaves when the venue has filled another order of the level in this one's place.
	unnamed int64
	// seed says that no message will name it, or will name it again: the first to shrink when a level
	// must.
	seed bool
}

// rung is the queue of orders at one price, oldest first, never empty while it is in a ladder.
type rung struct {
	px    int64
	queue []*resting
}

// open is the quantity of all orders of the queue.
func (r *rung) open() (total int64) {
	for _, o := range r.queue {
		total += o.leaves
	}
	return total
}

// ladder is a price-time book in its simplest form. The rungs of each side are sorted, the worst
// price first, so that the touch is at the end. It matches only where the translation asks for it
// (take), and knows neither accounts nor client ids.
//
// Invariants: rungs are sorted and not empty; every order has leaves.
type ladder struct {
	// sides is indexed by matcher.Side.
	sides [2][]*rung
}

// better reports whether price a is nearer to the touch than b.
func better(side matcher.Side, a, b int64) bool {
	if side == matcher.Buy {
		return a > b
	}
	return a < b
}

// find returns the index of the rung at px, or the index where it would be inserted. It is a binary
// search.
func (l *ladder) find(side matcher.Side, px int64) (int, bool) {
	return slices.BinarySearchFunc(l.sides[side], px, func(r *rung, px int64) int {
		switch {
		case r.px == px:
			return 0
		case better(side, px, r.px):
			return -1
		}
		return 1
	})
}

// at returns the rung at px, or nil.
func (l *ladder) at(side matcher.Side, px int64) *rung {
	if i, ok := l.find(side, px); ok {
		return l.sides[side][i]
	}
	return nil
}

// best returns the rung at the touch, or nil.
func (l *ladder) best(side matcher.Side) *rung {
	if n := len(l.sides[side]); n > 0 {
		return l.sides[side][n-1]
	}
	return nil
}

// rest puts o behind the others at its price: the newest at a price is the last to trade. It does
// not match, so the caller makes sure that o does not cross.
func (l *ladder) rest(o *resting) {
	i, ok := l.find(o.side, o.px)
	if !ok {
		l.sides[o.side] = slices.Insert(l.sides[o.side], i, &rung{px: o.px})
	}
	r := l.sides[o.side][i]
	r.queue = append(r.queue, o)
}

// shrink reduces an order's leaves by qty and removes the order at zero. The order keeps its place.
// An order without a rung is a bug and panics.
func (l *ladder) shrink(o *resting, qty int64) {
	o.leaves -= qty
	if o.leaves > 0 {
		return
	}
	i, ok := l.find(o.side, o.px)
	if !ok {
		panic(fmt.Sprintf("orderflow: order %s rests at %d, where there is no rung", o.clientID, o.px))
	}
	r := l.sides[o.side][i]
	r.queue = slices.DeleteFunc(r.queue, func(other *resting) bool { return other == o })
	if len(r.queue) == 0 {
		l.sides[o.side] = slices.Delete(l.sides[o.side], i, i+1)
	}
}

// take fills qty against the resting side down to limit, best price and oldest order first, as the
// venue will, and returns the quantity for which there was no order.
func (l *ladder) take(side matcher.Side, limit, qty int64) int64 {
	for qty > 0 {
		r := l.best(side)
		if r == nil || better(side, limit, r.px) {
			return qty
		}
		maker := r.queue[0]
		filled := min(qty, maker.leaves)
		qty -= filled
		l.shrink(maker, filled)
	}
	return 0
}
