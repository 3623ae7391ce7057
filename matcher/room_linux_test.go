package matcher

import (
	"testing"

	"posttrade/ring/must"
	"posttrade/ring/ringtest"
)

// New orders lie in resident memory, also where a lap ends and the next begins.
func TestTheEngineMakesRoomAhead(t *testing.T) {
	g := testGenesis()
	g.Limits.MaxOpenOrders = 1 << 20
	e := must.Get(New(g))(t)
	defer e.Close()
	must.OK(t, e.MakeResident())
	next := uint64(1)
	f := e.Frontier(func() uint64 { return next })
	if f.Reached() != 1 || f.Lap != uint64(e.orders.homes) {
		t.Errorf("at %d, a lap of %d", f.Reached(), f.Lap)
	}
	for _, first := range []uint64{1, f.Lap / 2, 3*f.Lap - 10_000, 7*f.Lap - 1} {
		end := min(first+20_000, first+f.Lap)
		must.OK(t, f.MakeRoom(first, end))
		for ref := first; ref < end; ref++ {
			i := int(e.orders.homeOf(uint32(ref)))
			if ref%1000 == 0 || ref == first || ref == end-1 {
				hot, _ := ringtest.Pages(t, e.orders.orders, i, i+1)
				cold, _ := ringtest.Pages(t, e.orders.colds, i, i+1)
				if hot != 1 || cold != 1 {
					t.Errorf("from %d on, order %d: %d and %d pages are there", first, ref, hot, cold)
				}
			}
		}
	}
}
