package installation

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// mixedFlow is a random order flow over HTTP: batches of orders, market trades, prices, cancels and
// OTC bookings. The same seed gives the same flow.
type mixedFlow struct {
	random *rand.Rand
	orders int
}

func newMixedFlow(seed uint64) *mixedFlow {
	return &mixedFlow{random: rand.New(rand.NewPCG(seed, 0))}
}

var mixedTickers = []string{"AAPL", "MSFT", "NVDA", "AMZN"}

// next is a request, and the number of its commands.
func (f *mixedFlow) next() (path, body string, commands int) {
	r := f.random
	ticker := mixedTickers[r.IntN(len(mixedTickers))]
	switch r.IntN(20) {
	case 0:
		return "/prices", fmt.Sprintf(`[{"security":%q,"price":%d}]`, ticker, 90+r.IntN(20)), 1
	case 1:
		f.orders++
		return "/trades",
			fmt.Sprintf(`{"clientOrderId":"m%d","accountId":%d,"security":%q,"side":"Buy","quantity":1}`,
				f.orders, 1+r.IntN(3), ticker), 1
	case 2, 3:
		f.orders++
		return "/swaps", fmt.Sprintf(
			`{"clientOrderId":"m%d","accountId":%d,"payReceive":"Pay","notional":%d,"fixedRate":%d.25,`+
				`"effectiveDate":"2026-11-23",`+
				`"maturityDate":"2031-11-23","conventions":"USD-SOFR-1Y-ACT360"}`, f.orders, 1+r.IntN(3),
			1+r.IntN(1e6), 1+r.IntN(5)), 1
	}
	var b strings.Builder
	n := 1 + r.IntN(400)
	for i := range n {
		f.orders++
		side := "Buy"
		if r.IntN(2) == 0 {
			side = "Sell"
		}
		fmt.Fprintf(&b,
			`,{"clientOrderId":"m%d","accountId":%d,"security":%q,"side":%q,"quantity":%d,"limitPrice":%d}`,
			f.orders, 1+r.IntN(3), mixedTickers[(i+n)%len(mixedTickers)], side, 1+r.IntN(50), 95+r.IntN(10))
	}
	return "/orders/batch", "[" + b.String()[1:] + "]", n
}
