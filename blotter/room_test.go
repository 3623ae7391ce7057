package blotter

import (
	"testing"

	"posttrade/ring/must"
	"posttrade/ring/ringtest"
)

// all fails when a page is missing under the elements of a table from first up to end.
func all[T any](t *testing.T, what string, table []T, first, end int) {
	t.Helper()
	if there, of := ringtest.Pages(t, table, first, end); there != of {
		t.Errorf("%s %d to %d: %d of %d pages are there", what, first, end, there, of)
	}
}

// Rows and their heads lie in resident memory, in every lap of the heads.
func TestTheViewsMakeRoomAhead(t *testing.T) {
	v := newTestViews(t, benchGenesis())
	o := &v.orders
	must.OK(t, v.MakeResident())
	all(t, "levels", v.levels.all, 0, 1000)
	f := v.Frontiers()
	if len(f) != 2 || f[0].Reached() != 1 || f[1].Reached() != 1 {
		t.Fatalf("%d frontiers of empty views", len(f))
	}
	for _, first := range []uint64{1, 99_999, f[0].Lap - 5, 9*f[0].Lap + 12_345} {
		end := first + 20_000
		must.OK(t, f[0].MakeRoom(first, end))
		for ref := first; ref < end; ref += 1_000 {
			at := int(o.headOf(uint32(ref)))
			all(t, "head", o.heads, at, at+1)
		}
	}
	must.OK(t, f[1].MakeRoom(30_000, 60_000))
	all(t, "rows", o.slots, 30_000, 60_000)
	must.OK(t, f[1].MakeRoom(f[1].Lap-10, f[1].Lap))
	all(t, "rows", o.slots, len(o.slots)-10, len(o.slots))
}

// A Frontier knows how far its table is in use.
func TestTheFrontiersOfTheViewsMove(t *testing.T) {
	s := newSource(t, smallGenesis(), 11)
	v := newTestViews(t, smallGenesis())
	f := v.Frontiers()
	for range 2_000 {
		events := s.step()
		for i := range events {
			v.Observe(&events[i], nil)
		}
	}
	if f[0].Reached() != uint64(s.issued)+1 || s.issued == 0 {
		t.Errorf("the next order is %d, %d were seen", f[0].Reached(), s.issued)
	}
	if got, want := f[1].Reached(), uint64(v.orders.top)+1; got != want || got < 3 || got > f[1].Lap {
		t.Errorf("the next row is %d, want %d of %d", got, want, f[1].Lap)
	}
}

// The same for fills, which may begin at any sequence.
func TestTheBlotterMakesRoomAhead(t *testing.T) {
	b := must.Get(New(100_000))(t)
	defer b.Close()
	f := b.Frontier(70_001)
	if f.Reached() != 70_001 || f.Lap != 100_001 {
		t.Errorf("empty: at %d, a lap of %d", f.Reached(), f.Lap)
	}
	must.OK(t, f.MakeRoom(90_000, 120_000))
	all(t, "fills", b.slots, 90_000, 100_001)
	all(t, "fills", b.slots, 0, 120_000-100_001)
	fill := fillOf(70_001)
	b.Append(&fill)
	if f.Reached() != 70_002 {
		t.Errorf("with a fill: at %d", f.Reached())
	}
}
