package tca

import (
	"math/rand/v2"

	"posttrade/matcher"
)

func limit(account uint32, security uint32, side matcher.Side, qty int32,
	px int64) matcher.Command {
	c := matcher.NewCommand(matcher.OrderNew)
	c.AccountID, c.SecurityID, c.Side, c.Qty, c.LimitPx = account, security, side, qty, px
	return c
}

func tick(security uint32, px int64) matcher.Command {
	c := matcher.NewCommand(matcher.PriceTick)
	c.SecurityID, c.PriceTicks = security, px
	return c
}

func trade(account, security uint32, side matcher.Side, qty int32) matcher.Command {
	c := limit(account, security, side, qty, 0)
	c.Type = matcher.TradeNew
	return c
}

func cancel(account, ref uint32) matcher.Command {
	c := matcher.NewCommand(matcher.OrderCancel)
	c.AccountID, c.OrderRef = account, ref
	return c
}

func replace(account, security uint32, side matcher.Side, ref uint32, qty int32,
	px int64) matcher.Command {
	c := limit(account, security, side, qty, px)
	c.Type, c.OrderRef = matcher.OrderReplace, ref
	return c
}

func force(account, ref uint32, qty int32, px int64) matcher.Command {
	c := matcher.NewCommand(matcher.ForceFill)
	c.AccountID, c.OrderRef, c.Qty, c.LimitPx = account, ref, qty, px
	return c
}

func restrict(security uint32, on bool) matcher.Command {
	c := matcher.NewCommand(matcher.RestrictionControl)
	c.SecurityID, c.PriceTicks = security, 1
	if on {
		c.Side = 1
	}
	return c
}

// flow is a random market: every kind of command, several at a millisecond, long
// silences, and a clock that sometimes runs backwards.
type flow struct {
	v   *venue
	rnd *rand.Rand
	mid int64
}

// steps makes that many commands happen, with a snapshot now and then.
func (f *flow) steps(n int) {
	for range n {
		f.pass()
		f.v.do(f.command())
		if f.rnd.IntN(5000) == 0 {
			f.v.snapshot()
		}
	}
}

// pass moves the clock.
func (f *flow) pass() {
	switch r := f.rnd.IntN(100); {
	case r < 45:
	case r < 88:
		f.v.now += f.rnd.Int64N(1500)
	case r < 92:
		f.v.now += f.rnd.Int64N(600_000)
	default:
		f.v.now -= f.rnd.Int64N(4_000)
	}
}

// command returns the next command. DDD never has a tick, so its first orders find no price.
func (f *flow) command() matcher.Command {
	rnd := f.rnd
	if f.mid == 0 {
		f.mid = 100 * unit
	}
	f.mid += (rnd.Int64N(2001) - 1000) * 50
	f.mid = max(f.mid, 20*unit)
	security := 1 + rnd.Uint32N(uint32(len(tickers)))
	account, side := 1+rnd.Uint32N(6), matcher.Side(rnd.IntN(2))
	px := (f.mid/1000 + rnd.Int64N(61) - 30) * 1000
	switch r := rnd.IntN(100); {
	case r < 22:
		return tick(1+security%3, f.mid+rnd.Int64N(999))
	case r < 62:
		c := limit(account, security, side, 1+rnd.Int32N(40), px)
		switch rnd.IntN(12) {
		case 0:
			c.LimitPx = 0
		case 1:
			c.Flags = matcher.FlagIOC
		case 2:
			c.Flags = matcher.FlagFOK
		case 3:
			c.Flags = matcher.FlagPostOnly
		}
		return c
	case r < 72:
		return trade(account, security, side, 1+rnd.Int32N(20))
	case r < 98:
		if o, ok := f.open(); ok {
			switch rnd.IntN(4) {
			case 0:
				return cancel(o.AccountID, o.Ref)
			case 1:
				return force(o.AccountID, o.Ref, 1+rnd.Int32N(o.Leaves), px)
			default:
				return replace(o.AccountID, o.SecurityID, o.Side, o.Ref, o.Qty-o.Leaves+1+rnd.Int32N(40), px)
			}
		}
		return limit(account, security, side, 7, px)
	case r < 99:
		return restrict(security, rnd.IntN(4) == 0)
	}
	return matcher.NewCommand(matcher.SnapshotMark)
}

// open returns one of the orders on the book.
func (f *flow) open() (found matcher.OrderInfo, ok bool) {
	skip := f.rnd.IntN(40)
	f.v.engine.EachOrder(func(o matcher.OrderInfo) bool {
		if !o.Open() {
			return false
		}
		found, ok = o, true
		skip--
		return skip >= 0
	})
	return found, ok
}
