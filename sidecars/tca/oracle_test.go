package tca

import (
	"fmt"
	"math/big"
	"strings"
	"time"

	"posttrade/matcher"
	"posttrade/sidecars/store"
)

// oracle computes reports in a slow way: from the list of all events, from the start, with rational
// numbers, one trade after the other.
type oracle struct {
	window int64
	events []matcher.Event
	trades map[uint64]int // the index of a fill in events
}

func newOracle(window time.Duration, events []matcher.Event) *oracle {
	o := &oracle{window: window.Milliseconds(), events: events, trades: map[uint64]int{}}
	for i := range events {
		if events[i].Kind == matcher.EventFilled {
			o.trades[events[i].TradeSeq] = i
		}
	}
	return o
}

// price reports whether an event is a sample of a security: an event that came late never is.
func price(ev *matcher.Event, security uint32) bool {
	if ev.SecurityID != security || ev.Flags&matcher.EventLate != 0 {
		return false
	}
	return ev.Kind == matcher.EventFilled ||
		ev.Kind == matcher.EventApplied && ev.Cmd().Type == matcher.PriceTick
}

// report is the JSON of the report on a trade of the journal.
func (o *oracle) report(trade store.Trade) string {
	at := o.trades[trade.Seq]
	fill := &o.events[at]
	// The command that accepted the order, or booked the market trade.
	came := at
	for {
		ev := &o.events[came]
		if fill.OrderRef == 0 && ev.Kind == matcher.EventBooked ||
			fill.OrderRef != 0 && ev.Kind == matcher.EventAccepted && ev.OrderRef == fill.OrderRef {
			break
		}
		came--
	}
	arrival := int64(0)
	for i := range came {
		if price(&o.events[i], fill.SecurityID) {
			arrival = o.events[i].Px
		}
	}
	return o.render(trade, fill.SecurityID, arrival, &o.events[came].TimeMillis)
}

// render is the JSON of a report on a row, with or without a known arrival.
func (o *oracle) render(trade store.Trade, security uint32, arrival int64,
	arrivedAt *int64) string {
	start, end := trade.ExecutedAt-o.window, trade.ExecutedAt
	area, weight, samples := new(big.Int), int64(0), 0
	// The price between two samples is the earlier one's. Sentinels: before the first there is none,
	// after the last it stays for ever.
	px, since := int64(0), int64(-1<<62)
	inForce := func(until int64) {
		from, to := max(since, start), min(until, end)
		if px > 0 && to > from {
			area.Add(area, new(big.Int).Mul(big.NewInt(px), big.NewInt(to-from)))
			weight += to - from
			samples++
		}
	}
	for i := range o.events {
		if ev := &o.events[i]; price(ev, security) {
			from := max(ev.TimeMillis, since)
			inForce(from)
			px, since = ev.Px, from
		}
	}
	inForce(1 << 62)

	twap, slip, arrivalSlip := "null", "null", "null"
	if weight > 0 {
		exact := new(big.Rat).SetFrac(area, big.NewInt(weight)) // x 1e6
		twap = decimal(halfUp(exact), 6)
		slip = bps(trade, exact)
	}
	arrivalPrice, arrivalAt := "null", "null"
	if arrivedAt != nil {
		arrivalAt = stamp(*arrivedAt)
		if arrival > 0 {
			arrivalPrice = decimal(big.NewInt(arrival), 6)
			arrivalSlip = bps(trade, new(big.Rat).SetInt64(arrival))
		}
	}
	side := map[matcher.Side]string{matcher.Buy: "Buy", matcher.Sell: "Sell"}[trade.Side]
	return fmt.Sprintf(
		`{"tradeId":%q,"accountId":%d,"security":%q,"side":%q,"quantity":%d,"executionPrice":%s,`+
			`"arrivalPrice":%s,"arrivalAt":%s,"twap":%s,"twapWindowStart":%s,"twapWindowEnd":%s,`+
			`"twapSampleCount":%d,`+
			`"slippageBps":%s,"arrivalSlippageBps":%s}`,
		trade.ID, trade.AccountID, trade.Security, side, trade.Quantity,
		decimal(big.NewInt(trade.Price), 6),
		arrivalPrice, arrivalAt, twap, stamp(start), stamp(end), samples, slip, arrivalSlip)
}

// bps is the slippage of a trade against a benchmark in millionths, as text.
func bps(trade store.Trade, benchmark *big.Rat) string {
	return decimal(hundredths(trade.Side, trade.Price, benchmark), 2)
}

// hundredths is the same as a number.
func hundredths(side matcher.Side, px int64, benchmark *big.Rat) *big.Int {
	x := new(big.Rat).SetInt64(px)
	x.Sub(x, benchmark)
	x.Quo(x, benchmark)
	x.Mul(x, big.NewRat(10_000*100, 1))
	if side == matcher.Sell {
		x.Neg(x)
	}
	return halfUp(x)
}

// halfUp is the whole number nearest to x, a tie towards plus infinity.
func halfUp(x *big.Rat) *big.Int {
	y := new(big.Rat).Add(x, big.NewRat(1, 2))
	floor, rest := new(big.Int).QuoRem(y.Num(), y.Denom(), new(big.Int))
	if rest.Sign() < 0 {
		floor.Sub(floor, big.NewInt(1))
	}
	return floor
}

// decimal writes n / 10^places without trailing zeros.
func decimal(n *big.Int, places int) string {
	s := fmt.Sprintf("%0*s", places+1, new(big.Int).Abs(n).String())
	s = s[:len(s)-places] + "." + s[len(s)-places:]
	s = strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
	if n.Sign() < 0 {
		s = "-" + s
	}
	return s
}

func stamp(millis int64) string {
	return time.UnixMilli(millis).UTC().Format(`"2006-01-02T15:04:05.000Z"`)
}
