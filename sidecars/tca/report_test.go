package tca

import (
	"testing"

	"posttrade/matcher"
)

// compareSome compares n random reports, and the last trade's, with the oracle's.
func compareSome(t *testing.T, x *TCA, v *venue, o *oracle, n int, pick func(n int) int) {
	t.Helper()
	for i := range n {
		trade := v.trades[pick(len(v.trades))]
		if i == 0 {
			trade = v.trades[len(v.trades)-1]
		}
		if got, want := text(t, x, trade), o.report(trade); got != want {
			t.Fatalf("trade %+v\n got %s\nwant %s", trade, got, want)
		}
	}
}

func TestReportsEqualTheOracleAcrossRestartAndRebuild(t *testing.T) {
	rnd := seeded(t)
	v := newVenue(t)
	f := &flow{v: v, rnd: rnd}
	f.steps(scaled(30_000))
	options := v.options()
	options.CheckpointCommands = 7_000

	x := open(t, options)
	follow(t, x, v)
	o := newOracle(options.Window, v.events)
	t.Logf("%d commands, %d trades, %d open orders, %d blocks of samples", len(v.commands),
		len(v.trades),
		len(x.index.open), x.index.samples.file.blocks)
	compareSome(t, x, v, o, scaled(1000), rnd.IntN)
	arrivalsOfOpenOrders(t, x, v)
	closeAll(t, x)

	t.Log("after a restart from the checkpoint, with new orders")
	f.steps(scaled(5_000))
	o = newOracle(options.Window, v.events)
	x = open(t, options)
	if want := uint64(scaled(30_000)); x.Applied() != want {
		t.Fatalf("opened at inputSeq=%d, want the checkpoint of Close at %d", x.Applied(), want)
	}
	follow(t, x, v)
	compareSome(t, x, v, o, scaled(1000), rnd.IntN)
	closeAll(t, x)

	t.Log("after a rebuild in an empty folder")
	fresh := options
	fresh.Dir = t.TempDir()
	y := open(t, fresh)
	follow(t, y, v)
	compareSome(t, y, v, o, scaled(1000), rnd.IntN)
	arrivalsOfOpenOrders(t, y, v)
	closeAll(t, y)
	sameFiles(t, options.Dir, fresh.Dir)
}

// arrivalsOfOpenOrders checks that the index holds exactly the orders on the book.
func arrivalsOfOpenOrders(t *testing.T, x *TCA, v *venue) {
	t.Helper()
	open := 0
	v.engine.EachOrder(func(o matcher.OrderInfo) bool {
		if !o.Open() {
			return true
		}
		open++
		if met, ok := x.index.open[o.Ref]; !ok || met.millis != o.CreatedMillis {
			t.Errorf("order %d of %d has arrival %+v, %v", o.Ref, o.CreatedMillis, met, ok)
		}
		return true
	})
	if open != len(x.index.open) {
		t.Errorf("%d arrivals of %d open orders", len(x.index.open), open)
	}
}
