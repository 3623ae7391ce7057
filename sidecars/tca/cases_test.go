package tca

import (
	"strings"
	"testing"

	"posttrade/matcher"
	"posttrade/sidecars/store"
)

const (
	aaa = 1
	ddd = 4

	second = int64(1000)
)

// field is the text of one field of a report.
func field(report, name string) string {
	_, rest, _ := strings.Cut(report, `"`+name+`":`)
	value, _, _ := strings.Cut(strings.TrimRight(rest, "}"), `,"`)
	return value
}

// TestReportOf plays small scenes. Each row is the expected report on the last trade, and the
// oracle must give the same.
func TestReportOf(t *testing.T) {
	tests := []struct {
		name  string
		scene func(v *venue)
		want  map[string]string
	}{
		{"a trade before any price has no benchmark, though its order arrived", func(v *venue) {
			v.at(0).must(limit(1, ddd, matcher.Sell, 5, 50*unit))
			v.at(10).must(limit(2, ddd, matcher.Buy, 5, 50*unit))
		}, map[string]string{
			"arrivalPrice": "null", "arrivalAt": `"2023-11-14T22:13:20.000Z"`, "twap": "null",
			"twapSampleCount": "0", "slippageBps": "null", "arrivalSlippageBps": "null", "side": `"Sell"`,
		}},
		{"one sample is the whole average, from when it took force", func(v *venue) {
			v.at(0).must(tick(aaa, 100*unit))
			v.at(60 * second).must(trade(1, aaa, matcher.Buy, 3))
		}, map[string]string{
			"arrivalPrice": "100", "arrivalAt": `"2023-11-14T22:14:20.000Z"`, "twap": "100",
			"twapSampleCount": "1",
			"twapWindowStart": `"2023-11-14T22:09:20.000Z"`, "twapWindowEnd": `"2023-11-14T22:14:20.000Z"`,
			"slippageBps": "0", "arrivalSlippageBps": "0", "quantity": "3", "executionPrice": "100",
		}},
		{"a sample at the moment of the trade weighs nothing", func(v *venue) {
			v.at(0).must(tick(aaa, 100*unit))
			v.must(trade(1, aaa, matcher.Buy, 3))
		}, map[string]string{"arrivalPrice": "100", "twap": "null", "twapSampleCount": "0",
			"arrivalSlippageBps": "0"}},
		{"of several samples at one millisecond the last carries the weight", func(v *venue) {
			v.at(0).must(tick(aaa, 100*unit))
			v.at(0).must(tick(aaa, 200*unit))
			v.at(0).must(tick(aaa, 300*unit))
			v.at(second).must(trade(1, aaa, matcher.Buy, 3))
		}, map[string]string{"arrivalPrice": "300", "twap": "300", "twapSampleCount": "1"}},
		{"a sample whose clock ran backwards takes force with the one before it", func(v *venue) {
			older := tick(aaa, 200*unit)
			older.Version = 1
			v.at(10 * second).must(tick(aaa, 100*unit))
			v.at(5 * second).must(older)
			v.at(20 * second).must(trade(1, aaa, matcher.Buy, 3))
		}, map[string]string{"arrivalPrice": "200", "twap": "200", "twapSampleCount": "1"}},
		{"a price that came late never was in force", func(v *venue) {
			v.at(10 * second).must(tick(aaa, 100*unit))
			v.at(5 * second).must(tick(aaa, 200*unit))
			v.at(9 * second).must(limit(1, aaa, matcher.Sell, 5, 140*unit))
			v.at(9 * second).must(limit(2, aaa, matcher.Buy, 5, 140*unit))
			v.at(20 * second).must(trade(1, aaa, matcher.Buy, 3))
		}, map[string]string{"arrivalPrice": "100", "twap": "100", "twapSampleCount": "1",
			"executionPrice": "100"}},
		{"a fill that came late is measured all the same", func(v *venue) {
			v.at(10 * second).must(tick(aaa, 100*unit))
			v.at(30 * second).must(tick(aaa, 300*unit))
			v.at(20 * second).must(limit(1, aaa, matcher.Sell, 5, 290*unit))
			v.must(limit(2, aaa, matcher.Buy, 5, 290*unit))
		}, map[string]string{"arrivalPrice": "300", "twap": "100", "slippageBps": "-19000",
			"side": `"Sell"`}},
		{"a trade whose clock ran backwards is measured at its own time", func(v *venue) {
			v.at(10 * second).must(tick(aaa, 100*unit))
			v.at(30 * second).must(tick(aaa, 300*unit))
			v.at(20 * second).must(trade(1, aaa, matcher.Buy, 3))
		}, map[string]string{"arrivalPrice": "300", "arrivalAt": `"2023-11-14T22:13:40.000Z"`,
			"twap":            "100",
			"twapSampleCount": "1", "slippageBps": "20000", "arrivalSlippageBps": "0"}},
		{"a trade before the first price's time has no average", func(v *venue) {
			v.at(10 * second).must(tick(aaa, 100*unit))
			v.at(7 * second).must(trade(1, aaa, matcher.Buy, 3))
		}, map[string]string{"arrivalPrice": "100", "twap": "null", "twapSampleCount": "0"}},
		{"a sample exactly at the window's start leaves nothing to the one before", func(v *venue) {
			v.at(0).must(tick(aaa, 100*unit))
			v.at(60 * second).must(tick(aaa, 200*unit))
			v.at(360 * second).must(trade(1, aaa, matcher.Buy, 3))
		}, map[string]string{"twap": "200", "twapSampleCount": "1"}},
		{"the price in force at the window's start is carried in", func(v *venue) {
			v.at(0).must(tick(aaa, 100*unit))
			v.at(60 * second).must(tick(aaa, 200*unit))
			v.at(359 * second).must(trade(1, aaa, matcher.Buy, 3))
		}, map[string]string{"twap": "199.666667", "twapSampleCount": "2", "slippageBps": "16.69"}},
		{"the same sold is as much better", func(v *venue) {
			v.at(0).must(tick(aaa, 100*unit))
			v.at(60 * second).must(tick(aaa, 200*unit))
			v.at(359 * second).must(trade(1, aaa, matcher.Sell, 3))
		}, map[string]string{"twap": "199.666667", "slippageBps": "-16.69"}},
		{"a window long after the last sample has that one", func(v *venue) {
			v.at(0).must(tick(aaa, 100*unit))
			v.at(60 * second).must(tick(aaa, 200*unit))
			v.at(3_600 * second).must(trade(1, aaa, matcher.Buy, 3))
		}, map[string]string{"twap": "200", "twapSampleCount": "1"}},
		{"an average between two millionths is rounded up", func(v *venue) {
			v.at(0).must(tick(aaa, 1))
			v.at(second).must(tick(aaa, 2))
			v.at(2 * second).must(trade(1, aaa, matcher.Buy, 3))
		}, map[string]string{"twap": "0.000002", "twapSampleCount": "2", "slippageBps": "3333.33"}},
		{"half a hundredth is rounded up for a purchase", func(v *venue) {
			v.at(0).must(tick(aaa, 80*unit))
			v.must(limit(1, aaa, matcher.Buy, 5, 80*unit+1000))
			v.at(second).must(force(1, 1, 5, 80*unit+1000))
		}, map[string]string{"slippageBps": "0.13", "arrivalSlippageBps": "0.13"}},
		{"half a hundredth is rounded up, towards zero, for a sale", func(v *venue) {
			v.at(0).must(tick(aaa, 80*unit))
			v.must(limit(1, aaa, matcher.Sell, 5, 80*unit+1000))
			v.at(second).must(force(1, 1, 5, 80*unit+1000))
		}, map[string]string{"slippageBps": "-0.12", "arrivalSlippageBps": "-0.12"}},
		{"a resting order that fills later keeps its arrival, through replaces and part fills",
			func(v *venue) {
				v.at(0).must(tick(aaa, 100*unit))
				ref := v.at(second).must(limit(1, aaa, matcher.Buy, 10, 99*unit))
				v.at(2 * second).must(tick(aaa, 101*unit))
				v.at(3 * second).must(limit(2, aaa, matcher.Sell, 2, 99*unit))
				v.at(4 * second).must(limit(2, aaa, matcher.Sell, 9, 103*unit))
				// The replace crosses, trades, and the remainder rests again.
				v.at(5 * second).must(replace(1, aaa, matcher.Buy, ref, 20, 103*unit))
				v.at(6 * second).must(tick(aaa, 90*unit))
				v.at(7 * second).must(force(1, ref, 4, 104*unit))
			}, map[string]string{"executionPrice": "104", "arrivalPrice": "100",
				"arrivalAt":          `"2023-11-14T22:13:21.000Z"`,
				"arrivalSlippageBps": "400", "quantity": "4"}},
		{"an incoming order meets the price before its own first fill", func(v *venue) {
			v.at(0).must(tick(aaa, 100*unit))
			v.must(limit(1, aaa, matcher.Sell, 1, 101*unit))
			v.must(limit(1, aaa, matcher.Sell, 1, 102*unit))
			c := limit(2, aaa, matcher.Buy, 3, 102*unit)
			c.Flags = matcher.FlagIOC
			v.at(second).must(c)
			v.trades = v.trades[:3] // the buyer's second
		}, map[string]string{"executionPrice": "102", "arrivalPrice": "100", "arrivalSlippageBps": "200",
			"side": `"Buy"`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			v := newVenue(t)
			tt.scene(v)
			options := v.options()
			x := open(t, options)
			follow(t, x, v)
			last := v.trades[len(v.trades)-1]
			got := text(t, x, last)
			for name, want := range tt.want {
				if value := field(got, name); value != want {
					t.Errorf("%s is %s, want %s", name, value, want)
				}
			}
			if want := newOracle(options.Window, v.events).report(last); got != want {
				t.Errorf("\n got %s\nwant %s", got, want)
			}
		})
	}
}

func TestRowsThatAreNotTheJournalsHaveNoArrival(t *testing.T) {
	v := newVenue(t)
	v.at(0).must(tick(aaa, 100*unit))
	v.at(second).must(trade(1, aaa, matcher.Buy, 3))
	v.at(2 * second).must(tick(aaa, 110*unit))
	options := v.options()
	x := open(t, options)
	stop := run(t, x)
	caughtUp(t, x, v)
	o := newOracle(options.Window, v.events)
	row := v.trades[0]
	edits := []struct {
		name string
		edit func(*store.Trade)
	}{
		{"account", func(r *store.Trade) { r.AccountID++ }},
		{"side", func(r *store.Trade) { r.Side = matcher.Sell }},
		{"quantity", func(r *store.Trade) { r.Quantity++ }},
		{"price", func(r *store.Trade) { r.Price++ }},
		{"time", func(r *store.Trade) { r.ExecutedAt++ }},
		{"a later time", func(r *store.Trade) { r.ExecutedAt += 4 * second }},
		{"a price below zero", func(r *store.Trade) { r.Price = -5 }},
		{"sequence of no fill", func(r *store.Trade) { r.Seq, r.ID = 17, "trd-17" }},
		{"sequence 0", func(r *store.Trade) { r.Seq, r.ID = 0, "by hand" }},
	}
	for _, tt := range edits {
		edited := row
		tt.edit(&edited)
		if got, want := text(t, x, edited), o.render(edited, aaa, 0, nil); got != want {
			t.Errorf("%s edited\n got %s\nwant %s", tt.name, got, want)
		}
	}
	foreign := row
	foreign.Security = "BBB"
	if got, want := text(t, x, foreign), o.render(foreign, 2, 0, nil); got != want {
		t.Errorf("security edited\n got %s\nwant %s", got, want)
	}
	foreign.Security = `NO "SUCH`
	if got, want := text(t, x, foreign), o.render(foreign, 99, 0, nil); got != want {
		t.Errorf("unknown security\n got %s\nwant %s", got, want)
	}
	if got, want := text(t, x, row), o.report(row); got != want {
		t.Errorf("unedited\n got %s\nwant %s", got, want)
	}
	stop()
}

func TestATradeAtTheEdgeOfTimeHasAReport(t *testing.T) {
	v := newVenue(t)
	v.now = -1 << 63
	v.must(tick(aaa, 1<<60))
	v.must(trade(1, aaa, matcher.Buy, 1))
	v.now = 1<<63 - 2
	v.must(tick(aaa, 1<<60))
	v.now++
	v.must(trade(1, aaa, matcher.Buy, 1))
	options := v.options()
	options.Window = 1<<63 - 1
	x := open(t, options)
	follow(t, x, v)
	first, err := x.Report(t.Context(), v.trades[0])
	if err != nil || first.Twap != 0 || first.TwapWindowStart != -1<<63 ||
		first.ArrivalPrice != 1<<60 {
		t.Errorf("got %+v, %v; want no average and an arrival at %d", first, err, int64(1<<60))
	}
	last, err := x.Report(t.Context(), v.trades[1])
	if err != nil || last.Twap != 1<<60 || last.SlippageBps.String() != "0" ||
		last.TwapSampleCount != 2 {
		t.Errorf("got %+v, %v; want an average of %d", last, err, int64(1<<60))
	}
}
