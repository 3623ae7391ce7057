package orderflow

import (
	"fmt"
	"slices"

	"posttrade/matcher"
)

// resting is an order that the translation believes to be on the book.
type resting struct {
	clientID string
	side     matcher.Side
	px       int64
	total    int64 // as the venue knows it: filled and open
	leaves   int64 // open
	unnamed  int64 // of an added order: the quantity that no message has taken yet
	seed     bool  // no message will name it (again)
}

// rung is the queue of orders at one price, oldest first.
type rung struct {
	px    int64
	queue []*resting
}

func (r *rung) open() (total int64) {
	for _, o := range r.queue {
		total += o.leaves
	}
	return total
}

// ladder is a price-time book in its simplest form. The rungs of each side are sorted, the worst
// price first, so that the touch is at the end.
//
// Invariants (check): rungs are sorted and not empty; every order has leaves.
type ladder struct {
	sides [2][]*rung
}

// better reports whether price a is nearer to the touch than b.
func better(side matcher.Side, a, b int64) bool {
	if side == matcher.Buy {
		return a > b
	}
	return a < b
}

// find returns the index of the rung at px, or the index where it would be inserted.
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

// rest puts o behind the others at its price.
func (l *ladder) rest(o *resting) {
	i, ok := l.find(o.side, o.px)
	if !ok {
		l.sides[o.side] = slices.Insert(l.sides[o.side], i, &rung{px: o.px})
	}
	r := l.sides[o.side][i]
	r.queue = append(r.queue, o)
}

// shrink reduces an order's leaves by qty and removes the order at zero.
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

// take fills qty against the resting side down to limit, as the venue will, and returns the
// quantity for which there was no order.
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
