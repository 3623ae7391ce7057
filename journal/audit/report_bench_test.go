package audit

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"posttrade/journal/audit/lines"
	"posttrade/matcher"
	"posttrade/ring/must"
)

// benchVenue is a journal of n commands: half new orders, two fifths cancels and
// a tenth that trade, over 32 securities and 100 accounts, with a snapshot at nine tenths.
func benchVenue(b *testing.B, n int) *venue {
	g := smallGenesis()
	g.Accounts, g.Securities = nil, nil
	for id := range uint32(100) {
		g.Accounts = append(g.Accounts, matcher.GenesisAccount{ID: id + 1, Enabled: true})
	}
	for id := range 32 {
		g.Securities = append(g.Securities, matcher.GenesisSecurity{Ticker: fmt.Sprintf("TICK%d", id),
			Enabled: true})
	}
	g.Limits = matcher.Limits{
		MaxOrderQty: 1 << 20, MaxOrderNotional: 1 << 60, MaxPositionQty: 1 << 40,
		MaxConcentrationNotional: 1 << 62,
		CreditLimit:              1 << 62, PriceMaxAgeMillis: 1 << 40, IdempotencyCapacity: 1 << 16,
		MaxAccounts:   128,
		MaxSecurities: 64, MaxContracts: 64, MaxOpenOrders: 1 << 17, RetainedOrders: 1 << 16,
	}
	v := newVenue(b, g)
	v.forget = true
	rng := rand.New(rand.NewPCG(42, 1))
	issued := uint32(0)
	for i := range n {
		c := matcher.NewCommand(matcher.OrderNew)
		kind := rng.IntN(10)
		c.AccountID, c.SecurityID, c.Side = 1+rng.Uint32N(100), 1+rng.Uint32N(32),
			matcher.Side(rng.IntN(2))
		c.EventTimeMillis = noon + int64(i/500)
		if c.Qty = (1 + rng.Int32N(20)) * 100; kind < 4 {
			c.Type, c.OrderRef = matcher.OrderCancel, issued-min(issued, rng.Uint32N(4096))
			if o, ok := v.engine.Order(c.OrderRef); ok {
				c.AccountID, c.SecurityID, c.Side = o.AccountID, o.SecurityID, o.Side
			}
		} else if c.LimitPx = 100_000_000 + 1000*(100+rng.Int64N(300)); c.Side == matcher.Buy {
			c.LimitPx = 100_000_000 - 1000*(100+rng.Int64N(300))
		}
		if kind == 9 { // across the book
			c.Side = c.Side.Opposite()
			c.Flags = matcher.FlagIOC
		}
		for _, ev := range v.decide(c) {
			if ev.Kind == matcher.EventAccepted {
				issued = ev.OrderRef
			}
		}
		if i%512 == 511 {
			v.commit()
		}
		if i == n*9/10 {
			v.commit()
			v.snapshot()
		}
	}
	v.commit()
	return v
}

// BenchmarkReport makes reports of the whole history, and reports of its last tenth from a snapshot
// before that tenth.
func BenchmarkReport(b *testing.B) {
	const n = 500_000
	v := benchVenue(b, n)
	r := v.reporter()
	run := func(name string, from uint64) {
		b.Run(name, func(b *testing.B) {
			var records, bytes uint64
			for b.Loop() {
				total, err := r.Write(context.Background(), from, v.head(), func(chunk []byte, _ int) error {
					bytes += uint64(len(chunk))
					return nil
				})
				must.OK(b, err)
				records += total.Count
			}
			b.ReportMetric(float64(records)/b.Elapsed().Seconds(), "records/s")
			b.ReportMetric(float64(bytes)/float64(records), "B/record")
		})
	}
	run("op=whole/start=genesis", 1)
	run("op=tail/start=snapshot", n*9/10+2)
}

// BenchmarkRender measures the rendering of the text and its hash alone.
func BenchmarkRender(b *testing.B) {
	v := newVenue(b, smallGenesis())
	v.trade(newFlow(b, 3), 5000)
	records, at := 0, 0
	p := lines.NewPrinter(func(_ []byte, count int) error { records += count; return nil })
	p.Know(v.engine)
	b.ReportAllocs()
	for b.Loop() {
		if err := p.Print(v.events[at : at+1]); err != nil {
			b.Fatal(err)
		}
		if at++; at == len(v.events) {
			at = 0
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(records), "ns/record")
}
