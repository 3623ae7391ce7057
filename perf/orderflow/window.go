package orderflow

import (
	"slices"

	"posttrade/matcher"
)

// openWindow is rule 4: it makes the levels that come into sight with row k hold what row k says,
// and changes nothing else.
//
// A side with fewer levels than the file can show has no edge: nothing is beyond it.
func (l *Lobster) openWindow(m message) {
	for _, side := range []matcher.Side{matcher.Buy, matcher.Sell} {
		before := levelsOf(&l.previous, side)
		if len(before) < l.Levels() {
			continue // the whole side was in sight
		}
		edge := before[len(before)-1].Px
		now := levelsOf(&l.row, side)
		for _, level := range now {
			if better(side, edge, level.Px) {
				l.correct(side, level.Px, max(level.Qty-l.effect(m, side, level.Px), 0))
			}
		}
		l.clearGhosts(side, edge, now)
	}
}

// effect is the quantity that the message itself will add at a price. Only an add can reach beyond
// the window's edge.
func (l *Lobster) effect(m message, side matcher.Side, px int64) int64 {
	if m.kind == lobsterAdd && m.side == side && m.px == px {
		return m.qty
	}
	return 0
}

// correct makes the level at px hold the quantity want, 0 to remove it. A level that has too little
// gets a seed behind its orders, which is its youngest.
func (l *Lobster) correct(side matcher.Side, px, want int64) {
	have := int64(0)
	if r := l.book.at(side, px); r != nil {
		have = r.open()
	}
	switch {
	case want > have:
		l.addSeed(side, px, want-have)
		l.stats.EdgeSeeds++
	case want < have:
		l.reduceLevel(side, px, have-want, nil)
		l.stats.EdgeRemovals++
	}
}

// clearGhosts removes the levels between the old edge and the worst level now in sight that row k
// does not have: they disappeared without a message. If row k shows the side to its end, everything
// beyond the old edge is in sight.
func (l *Lobster) clearGhosts(side matcher.Side, edge int64, now []Level) {
	var ghosts []*rung
	for _, r := range l.book.sides[side] {
		if !better(side, edge, r.px) {
			continue
		}
		inSight := len(now) < l.Levels() || better(side, r.px, now[len(now)-1].Px)
		published := slices.ContainsFunc(now, func(level Level) bool { return level.Px == r.px })
		if inSight && !published {
			ghosts = append(ghosts, r)
		}
	}
	for _, r := range ghosts {
		l.reduceLevel(side, r.px, r.open(), nil)
		l.stats.EdgeRemovals++
	}
}
