package blotter

import "posttrade/matcher"

// What the observer's own goroutine reads between two events: the state of one level, the best
// levels, a whole book. No lock, because the only writer is the caller.

// Resting reports that the order is on the book.
func (r *OrderRow) Resting() bool { return r.level != 0 }

// LevelAt is the level of a price (x 1e6); one that is not there has no orders. It costs a search
// of the side's tree. Observer only.
func (v *Views) LevelAt(security uint32, side matcher.Side, px int64) Level {
	tree := security<<1 | uint32(side&1)
	at := v.levels.branches.search(&v.levels.trees[tree], rank(tree, px))
	if at == 0 {
		return Level{Px: px}
	}
	l := &v.levels.all[at]
	return Level{Px: px, Qty: l.qty, Orders: l.orders}
}

// Best are the best levels of a registered security; a side without orders has a zero level.
// Observer only.
func (v *Views) Best(security uint32) (bid, ask Level) {
	best := func(side uint32) (l Level) {
		v.levels.branches.each(&v.levels.trees[side], func(at uint32) bool {
			found := &v.levels.all[at]
			l = Level{Px: found.px, Qty: found.qty, Orders: found.orders}
			return false
		})
		return l
	}
	return best(security << 1), best(security<<1 | 1)
}

// WholeDepth is the book of a registered security with every level. Observer only, between two
// commands.
func (v *Views) WholeDepth(security uint32) Depth {
	d := Depth{Sequence: v.current}
	whole := func(side uint32) []Level {
		levels := make([]Level, 0, v.levels.trees[side].count)
		if cap(levels) == 0 {
			return nil
		}
		return v.levels.copySide(side, levels)
	}
	d.Bids, d.Asks = whole(security<<1), whole(security<<1|1)
	return d
}

// SecurityCount is how many securities are registered; their ids are 1 to that. Any goroutine.
func (v *Views) SecurityCount() uint32 { return uint32(v.securities.count.Load()) }
