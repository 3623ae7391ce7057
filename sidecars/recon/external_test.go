package recon

import (
	"testing"

	"posttrade/ring/must"
	"posttrade/sidecars/store"
	"posttrade/sidecars/store/storetest"
)

// TestBookingFromOutsideIsSeenSinceBothSidesAreThere, and last by the reading that shows it.
func TestBookingFromOutsideIsSeenSinceBothSidesAreThere(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		g := settlementRig(t, db, 2)
		booked := g.journal.fills[0].TimeMillis + 1000
		g.millis = booked
		g.book(1, 2, 1)
		g.edit("update trades set id = 'ext-1', trade_seq = $1 where trade_seq = 2",
			int64(store.FirstExternal))
		want := func(first int64, fields ...string) {
			t.Helper()
			found := g.breaks(External)
			if len(found) != 1 || len(found[0].Fields) != len(fields) ||
				found[0].FirstSeenMillis != first || found[0].LastSeenMillis != g.millis {
				t.Errorf("%+v, want one since %d that differs in %v", found, first, fields)
			}
		}
		g.millis += 500
		want(booked)
		row := g.breaks(External)[0].Projection
		line := StatementLine{ID: "ext-1", Trade: *row}
		line.Quantity++
		must.Get(g.TakeStatement(t.Context(), []StatementLine{line}))(t)
		loaded := g.millis
		g.millis += 500
		want(loaded, "quantity")
		line.Trade = *row
		must.Get(g.TakeStatement(t.Context(), []StatementLine{line}))(t)
		if left := g.breaks(External); len(left) != 0 {
			t.Errorf("confirmed: %+v", left)
		}
	})
}
