package matcher

import (
	"fmt"
	"testing"

	"posttrade/matcher/flow"
	"posttrade/ring/must"
)

// TestBookTradesLikeTheBareLadder compares every trade of the benchmark flows, by the hash of the
// trades, and all levels at the end.
func TestBookTradesLikeTheBareLadder(t *testing.T) {
	for _, o := range benchFlows {
		if testing.Short() {
			o.N, o.Prefill = 50_000, 10_000
		}
		t.Run(fmt.Sprintf("symbols=%d", o.Symbols), func(t *testing.T) { tradeFlow(t, flow.Generate(o)) })
	}
	for _, regime := range flow.Regimes() {
		t.Run(regime.String(), func(t *testing.T) {
			tradeFlow(t, flow.Realistic(flow.RealisticOptions{Seed: 3, Regime: regime, N: 50_000,
				Prefill: 5_000}))
		})
	}
}

func tradeFlow(t *testing.T, f *flow.Flow) {
	books := newFlowBooks(t, f.Symbols, 1<<17)
	for i := range f.Commands {
		c := &f.Commands[i]
		if got := books.apply(c); got.Reject != BookOK ||
			got.Rests != (c.Op == flow.New || c.Op == flow.Modify) {
			t.Fatalf("command %d %+v: %+v", i, *c, got)
		}
	}
	if books.sum != f.Result {
		t.Errorf("got %+v, want %+v", books.sum, f.Result)
	}
	levels := 0
	for _, b := range books.books {
		must.OK(t, b.check())
		for side := range Side(2) {
			b.ladder.eachLevel(side, func(int64, int64, int) bool { levels++; return true })
		}
	}
	if levels != f.Levels {
		t.Errorf("%d levels at the end, want %d", levels, f.Levels)
	}
	if err := books.memory.Close(); err != nil {
		t.Error(err)
	}
}
