//go:build checks || race

package blotter

import "testing"

// The list of doc.go is looked at after the first, the second, the fourth command and so on.
func TestABrokenInvariantPanicsWhereItIsLookedAt(t *testing.T) {
	g := smallGenesis()
	s, v := newSource(t, g, 5), newTestViews(t, g)
	for v.current != 127 {
		observe(v, s.step())
	}
	v.orders.open++
	events := s.step()
	mustPanic(t, "the count of open orders", func() { observe(v, events) })
}
