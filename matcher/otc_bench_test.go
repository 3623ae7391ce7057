package matcher

import (
	"fmt"
	"slices"
	"testing"
)

// BenchmarkBooking decides swaps and swaptions under keys, in batches as the stage does, while the
// store already holds many contracts or none. It reports the lower quartile of the laps, because
// the time of an interrupted lap means nothing.
func BenchmarkBooking(b *testing.B) {
	const timed = 1 << 17
	for _, held := range []int{0, 1 << 16, 1<<20 - timed} {
		b.Run(fmt.Sprintf("contracts=%d", held), func(b *testing.B) {
			g := flowEngineGenesis(1)
			g.Limits.MaxContracts = 1 << 20
			out := &Outlet{Slots: make([]Event, 1<<17), Mask: 1<<17 - 1}
			var ns []float64
			for b.Loop() {
				e, err := New(g)
				if err != nil {
					b.Fatal(err)
				}
				out.Next, out.Limit = 0, 1<<62
				book(e, out, 0, held)
				ns = append(ns, laps(timed, func(lo, hi int) { book(e, out, held+lo, held+hi) })...)
				if n := e.Counts().Contracts; n != held+timed {
					b.Fatalf("%d contracts, want %d", n, held+timed)
				}
				if err := e.Close(); err != nil {
					b.Fatal(err)
				}
			}
			slices.Sort(ns)
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(ns[len(ns)/4], "ns/booking")
			b.ReportMetric(ns[len(ns)/2], "median-ns/booking")
		})
	}
}

// book makes the bookings with the numbers from lo up to hi.
func book(e *Engine, out *Outlet, lo, hi int) {
	var batch [maxBatch]Command
	for ; lo < hi; lo += maxBatch {
		n := min(hi-lo, maxBatch)
		for i := range batch[:n] {
			at := lo + i
			terms := ContractTerms{
				AccountID: uint32(at%flowEngineAccounts) + 1, Side: Side(at & 1), Notional: 1_000_000,
				FixedRate: 25_000,
				Effective: 20_000, Maturity: 21_000, Convention: uint32(at % 5), Swaption: at&2 != 0,
				Expiry: 19_000,
			}
			batch[i] = terms.Command()
			batch[i].PriceTicks, batch[i].EventTimeMillis = int64(uint64(at+1)*0x9e3779b97f4a7c15), noon
		}
		e.ApplyBatch(batch[:n], out)
	}
}
