package evidence

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"posttrade/matcher"
	"posttrade/ring/must"
)

// BenchmarkLog catches up with a history: half new orders, two fifths cancels and a tenth that
// trade, as the other figures about the journal have it.
func BenchmarkLog(b *testing.B) {
	const n = 500_000
	v := newVenue(b, 50)
	for i := range n {
		c, id := v.command()
		if kind := i % 10; kind < 9 && c.TemplateID == matcher.TemplateCommand {
			id = ""
			c.Type, c.Qty = matcher.OrderNew, 100
			c.LimitPx = 90_000_000 + 1000*int64(i%50)
			if c.Side == matcher.Sell {
				c.LimitPx += 20_000_000
			}
			if kind%2 == 1 {
				c.Type, c.OrderRef = matcher.OrderCancel, v.orders
				if o, ok := v.engine.Order(v.orders); ok {
					c.AccountID, c.SecurityID, c.Side = o.AccountID, o.SecurityID, o.Side
				}
			}
		}
		v.decide(c, id)
		if i%4096 == 4095 {
			v.commit()
		}
	}
	v.commit()
	must.OK(b, v.j.WaitStable(context.Background(), n))
	b.Run(fmt.Sprintf("op=catch-up/commands=%d", n), func(b *testing.B) {
		for b.Loop() {
			must.OK(b, removeAllBut(v.logDir(), keyName))
			l, err := Open(v.j, v.logOptions())
			must.OK(b, err)
			f, _, err := l.resume(context.Background())
			must.OK(b, err)
			must.OK(b, errors.Join(l.step(context.Background(), f), f.close()))
		}
		b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "commands/s")
	})
}
