package installation

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"

	"posttrade/app/engine"
	"posttrade/matcher"
	"posttrade/matcher/desk"
)

// tradingDay is a day at the exchange: a seeded flow of orders of every kind, cancels, replaces,
// market trades, prices and controls, some of them refused. It submits them in batches to an
// engine's desk. Its clock is that of the commands.
type tradingDay struct {
	t      *testing.T
	core   *engine.Engine
	random *rand.Rand
	now    int64 // epoch milliseconds
	mids   map[uint32]int64
	open   []restingOrder // that a cancel or replace may name
	names  int            // number of client order ids so far
	toggle []matcher.Command

	sent, refused int
}

// restingOrder is an order as its submitter knows it.
type restingOrder struct {
	ref, account, security uint32
	side                   matcher.Side
	qty                    int32
	px                     int64
}

// dayBegins is Monday 2 March 2026, 10:00 in New York; dayName and nextDay are
// its date and that of its trades' settlement at T+1.
const (
	dayBegins = 1_772_463_600_000
	nextDay   = "2026-03-03"
)

// dayAccounts trade the securities 1 to 6 around dayPrices. A tick from one of the first four
// prices is a cost that ends in half a hundredth of a basis point, so that the test covers
// rounding.
var (
	dayAccounts = []uint32{1, 2, 3, 4, 5, 6, 7, 8}
	dayPrices   = [...]int64{640_000, 3_200_000, 16_000_000, 80_000_000, 20_500_000, 187_250_000}
)

func newTradingDay(t *testing.T, k *engine.Engine, seed uint64) *tradingDay {
	t.Logf("trading day with seed %d", seed)
	d := &tradingDay{t: t, core: k, random: rand.New(rand.NewPCG(seed, 1)), now: dayBegins,
		mids: map[uint32]int64{}}
	for i, px := range dayPrices {
		d.mids[uint32(i+1)] = px
	}
	return d
}

// trade goes on until the journal has that many fills, or ctx ends.
func (d *tradingDay) trade(ctx context.Context, fills uint64) {
	d.t.Helper()
	for ctx.Err() == nil {
		if _, n := d.core.Journal.Head(); n >= fills {
			return
		}
		d.batch(1 + d.random.IntN(400))
	}
}

// batch sends n commands as one and waits for their answers.
func (d *tradingDay) batch(n int) {
	t, err := d.core.Desk.Acquire(n)
	if err != nil {
		d.t.Errorf("the desk refuses %d commands: %v", n, err)
		return
	}
	defer t.Release()
	for i := range n {
		d.tick()
		c, name := d.command(i == n-1)
		c.EventTimeMillis = d.now
		if c.Type == matcher.OrderNew || c.Type == matcher.TradeNew {
			if name != "" {
				c.PriceTicks = int64(d.core.Views.ClientKey().Of(c.AccountID, []byte(name)))
				t.SetClientID(i, []byte(name))
			}
			c.OrderRef = uint32(d.core.Gate.Screen(&c))
		}
		*t.Command(i) = c
	}
	if err := t.Submit(); err != nil {
		d.t.Errorf("the desk refuses %d commands: %v", n, err)
		return
	}
	if err := t.Wait(0); err != nil {
		d.t.Errorf("no answer to %d commands: %v", n, err)
		return
	}
	for i := range n {
		d.answered(t.Answer(i))
	}
}

// tick moves the clock: mostly a little, sometimes not at all, rarely back.
func (d *tradingDay) tick() {
	switch n := d.random.IntN(100); {
	case n < 20:
	case n < 21:
		d.now -= int64(d.random.IntN(40))
	case n == 99:
		d.now += int64(d.random.IntN(4000))
	default:
		d.now += int64(d.random.IntN(60))
	}
}

func (d *tradingDay) answered(a *desk.Answer) {
	d.sent++
	if a.Refused() {
		d.refused++
	}
	if a.Kind == matcher.EventAccepted && a.Rests {
		o := restingOrder{a.OrderRef, a.AccountID, a.SecurityID, a.Side, a.Qty, a.Px}
		if len(d.open) < 2000 {
			d.open = append(d.open, o)
		} else {
			d.open[d.random.IntN(len(d.open))] = o
		}
	}
}

// command makes the next command, and its client order id if it has one. A later control reverses
// each control, at the latest in the last command of the batch.
func (d *tradingDay) command(last bool) (c matcher.Command, name string) {
	if n := len(d.toggle); n > 0 && (last || d.random.IntN(5) == 0) {
		c, d.toggle = d.toggle[n-1], d.toggle[:n-1]
		return c, ""
	}
	switch n := d.random.IntN(1000); {
	case n < 4 && !last && len(d.toggle) == 0:
		return d.control(), ""
	case n < 100 && len(d.open) > 0:
		at := d.random.IntN(len(d.open))
		o := d.open[at]
		d.open[at] = d.open[len(d.open)-1]
		d.open = d.open[:len(d.open)-1]
		return d.change(o, n < 60), ""
	case n < 150:
		c = matcher.NewCommand(matcher.PriceTick)
		c.SecurityID = d.security()
		c.PriceTicks = d.mids[c.SecurityID] + d.steps(3)
		return c, ""
	case n < 250:
		c = matcher.NewCommand(matcher.TradeNew)
		d.terms(&c)
		return c, d.name()
	}
	c = matcher.NewCommand(matcher.OrderNew)
	d.terms(&c)
	c.LimitPx = d.mids[c.SecurityID] + d.steps(12)
	switch n := d.random.IntN(100); {
	case n < 4:
		c.LimitPx = 0 // at the market
	case n < 8:
		c.Flags = matcher.FlagIOC
	case n < 11:
		c.Flags = matcher.FlagFOK
	case n < 14:
		c.Flags = matcher.FlagPostOnly
	case n < 15:
		c.Qty = 2_000_000 // above the limit of an order
	case n < 16:
		c.SecurityID = 0 // unknown
	case n < 17:
		c.AccountID = 999 // unknown
	}
	return c, d.name()
}

// terms sets the fields that orders and market trades share, and moves the security's price.
func (d *tradingDay) terms(c *matcher.Command) {
	c.AccountID, c.SecurityID = dayAccounts[d.random.IntN(len(dayAccounts))], d.security()
	c.Side, c.Qty = matcher.Side(d.random.IntN(2)), int32(1+d.random.IntN(120))
	if d.random.IntN(20) == 0 {
		d.mids[c.SecurityID] = dayPrices[c.SecurityID-1] + d.steps(8)
	}
}

// security picks a security; low numbers are more likely.
func (d *tradingDay) security() uint32 {
	return uint32(1 + min(d.random.IntN(len(dayPrices)), d.random.IntN(len(dayPrices))))
}

// steps is a distance of up to n ticks of 0.001 in either direction.
func (d *tradingDay) steps(n int) int64 { return int64(d.random.IntN(2*n+1)-n) * 1000 }

// name is a new client order id for most orders, a used one for a few.
func (d *tradingDay) name() string {
	switch n := d.random.IntN(50); {
	case n < 10:
		return ""
	case n == 10 && d.names > 0:
		return "day-" + strconv.Itoa(1+d.random.IntN(d.names))
	}
	d.names++
	return "day-" + strconv.Itoa(d.names)
}

// change cancels or replaces an order, which may already be gone.
func (d *tradingDay) change(o restingOrder, cancel bool) matcher.Command {
	c := matcher.NewCommand(matcher.OrderReplace)
	if cancel {
		c = matcher.NewCommand(matcher.OrderCancel)
	}
	c.OrderRef, c.AccountID, c.SecurityID, c.Side = o.ref, o.account, o.security, o.side
	if !cancel {
		c.Qty, c.LimitPx = max(1, o.qty+int32(d.random.IntN(41)-20)), o.px+d.steps(6)
	}
	return c
}

// control disables an account, halts a security or restricts one, and notes how to reverse that.
func (d *tradingDay) control() matcher.Command {
	var c matcher.Command
	var off, on matcher.Side
	switch d.random.IntN(3) {
	case 0:
		c = matcher.NewCommand(matcher.AccountControl)
		c.AccountID = dayAccounts[d.random.IntN(len(dayAccounts))]
		off, on = 0, 1
	case 1:
		c = matcher.NewCommand(matcher.SecurityControl)
		c.SecurityID = d.security()
		off, on = matcher.SecurityEnabled|matcher.SecurityHalted, matcher.SecurityEnabled
	default:
		c = matcher.NewCommand(matcher.RestrictionControl)
		c.SecurityID = uint32(len(dayPrices))
		off, on = 1, 0
	}
	back := c
	c.Side, back.Side = off, on
	d.toggle = append(d.toggle, back)
	return c
}

// String describes the day for the log.
func (d *tradingDay) String() string {
	_, fills := d.core.Journal.Head()
	return fmt.Sprintf("%d commands, %d refused, %d fills", d.sent, d.refused, fills)
}
