//go:build checks || race

package matcher

import (
	"testing"

	"posttrade/ring/must"
)

// In a build with checks every index into a table has to lie in it: one past the end of each is
// caught where it is used, not by what it overwrites.
func TestIndexesOutsideTheTablesPanic(t *testing.T) {
	r := newRig(t, testGenesis())
	l := &r.e.ladders[0]
	end := uint32(len(l.pool.orders))
	tests := map[string]func(){
		"orders": func() { l.orders.at(ix(end)) },
		"colds":  func() { l.pool.cold(ix(end)) },
		"levels": func() { l.levels.at(uint32(len(l.pages.levels))) },
		"leaves": func() { l.leaves.at(uint32(len(l.pages.leaves))) },
		"kids":   func() { l.kid(node(uint32(len(l.pages.kids)/fanout)|digitBits<<numBits), 0) },
		"books":  func() { r.e.books.at(uint32(len(r.e.ladders))) },
		"keys":   func() { r.e.keys.entries.at(uint32(len(r.e.keys.ring))) },
		"rows":   func() { r.e.positions.table.at(uint32(len(r.e.positions.rows))) },
		"an index below the first": func() {
			r.e.accounts.table.at(^uint32(0))
		},
	}
	for name, use := range tests {
		t.Run(name, func(t *testing.T) { must.Panic(t, "of a table of", use) })
	}
	t.Run("buckets", func(t *testing.T) {
		k := r.e.keys
		k.shift--
		must.Panic(t, "index out of range", func() { k.bucket(^uint64(0)) })
	})
	t.Run("window of events", func(t *testing.T) {
		out := NewOutlet(8, func([]Event) {})
		out.Mask = 15
		must.Panic(t, "index out of range", func() { out.slot(8) })
	})
}

// A link that leads out of the memory of orders stops the engine at the command that follows it.
func TestACommandOverABrokenLinkPanics(t *testing.T) {
	r := newRig(t, testGenesis())
	r.do(sell(1, 10, 100))
	l := &r.e.ladders[0]
	first := l.levels.at(l.tops[Sell].level).head
	l.orders.at(first).next = ix(len(l.pool.orders)) + 7
	c := buy(2, 10, 100)
	must.Panic(t, "of a table of", func() { r.e.Apply(&c, r.out) })
}

// The list of doc.go is looked at after the first, the second, the fourth command and so on.
func TestABrokenInvariantPanics(t *testing.T) {
	r := newRig(t, testGenesis())
	for r.e.applied&(r.e.applied-1) != 0 {
		r.do(buy(1, 1, 90))
	}
	r.e.openOrders++
	c := buy(1, 1, 90)
	must.Panic(t, "open orders, counted", func() { r.e.Apply(&c, r.out) })
}
