package audit

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"testing"

	"posttrade/matcher"
	"posttrade/ring/must"
)

var update = flag.Bool("update", false, "write testdata anew")

// scenario builds a history step by step, each with a sentence about it.
type scenario struct {
	v     *venue
	said  []string // about the command of sequence index + 1
	clock int64
}

// do sequences a command and returns the order reference of its first event.
func (s *scenario) do(sentence string, c matcher.Command) uint32 {
	if c.TemplateID == matcher.TemplateCommand {
		s.clock += 1000
		c.EventTimeMillis = s.clock
	}
	s.said = append(s.said, sentence)
	return s.v.decide(c)[0].OrderRef
}

const unit = matcher.PriceScale

func order(account uint32, side matcher.Side, qty int32, px int64) matcher.Command {
	c := matcher.NewCommand(matcher.OrderNew)
	c.AccountID, c.SecurityID, c.Side, c.Qty, c.LimitPx = account, 1, side, qty, px
	return c
}

func with(c matcher.Command, change func(c *matcher.Command)) matcher.Command {
	change(&c)
	return c
}

func typed(t matcher.CommandType, change func(c *matcher.Command)) matcher.Command {
	return with(matcher.NewCommand(t), change)
}

// lifecycle gives every kind of record and every kind of command, each at least once.
func (s *scenario) lifecycle() {
	const buy, sell = matcher.Buy, matcher.Sell
	mine := func(ref uint32) func(*matcher.Command) {
		return func(c *matcher.Command) { c.AccountID, c.SecurityID, c.OrderRef = 7, 1, ref }
	}
	s.do("7 sells 10 AAA at 101.25, which rests", order(7, sell, 10, 101*unit+unit/4))
	s.do("3 buys 4 of it: the aggressor is done, the resting order is not", order(3, buy, 4, 102*unit))
	s.do("3 buys 8: takes the last 6, and rests with 2", order(3, buy, 8, 101*unit+unit/4))
	rest := s.do("7 sells 5 more at 103", order(7, sell, 5, 103*unit))
	replaced := func(qty int32, px int64) matcher.Command {
		return with(typed(matcher.OrderReplace, mine(rest)), func(c *matcher.Command) {
			c.Side, c.Qty, c.LimitPx = sell, qty, px
		})
	}
	s.do("7 makes that 9 at 102.5", replaced(9, 102*unit+unit/2))
	s.do("7 moves it across the book: accepted anew, and it trades with what 3 left",
		replaced(9, 101*unit))
	s.do("7 asks for fewer than are filled: refused, the order stays", replaced(2, 101*unit))
	s.do("7 takes back what is left", typed(matcher.OrderCancel, mine(rest)))
	s.do("7 takes it back again: there is nothing", typed(matcher.OrderCancel, mine(rest)))
	s.do("3 sells 6 AAA at 100.001", order(3, sell, 6, 100*unit+1000))
	s.do("7 buys 10 at market: 6 trade, the rest is cancelled", order(7, buy, 10, 0))
	s.do("7 buys 3 fill-or-kill with nobody there: cancelled whole", with(order(7, buy, 3, 100*unit),
		func(c *matcher.Command) { c.Flags = matcher.FlagFOK }))
	s.do("7 sells 2 at 101", order(7, sell, 2, 101*unit))
	s.do("7 meets itself: its resting order goes, its new one rests", order(7, buy, 5, 101*unit))
	keyed := with(order(3, buy, 1, 99*unit), func(c *matcher.Command) { c.PriceTicks = 4711 })
	s.do("a client order id for the first time", keyed)
	s.do("the same again: a duplicate, which names the first", keyed)
	s.do("3 buys more than an order may be", order(3, buy, 1001, 99*unit))
	unknown := with(order(3, sell, 1, 0), func(c *matcher.Command) { c.SecurityID = 4 })
	s.do("3 sells at market with an unknown security", unknown)
	s.do("a stranger buys", order(55, buy, 1, 99*unit))
	s.do("the gate has refused this one for its price", with(order(3, buy, 1, 99*unit),
		func(c *matcher.Command) { c.OrderRef = uint32(matcher.PriceCollar) }))
	s.do("a price for AAA: no record", typed(matcher.PriceTick,
		func(c *matcher.Command) { c.SecurityID, c.PriceTicks = 1, 100_123_456 }))
	s.do("3 books a market trade at it", typed(matcher.TradeNew, func(c *matcher.Command) {
		c.AccountID, c.SecurityID, c.Side, c.Qty = 3, 1, sell, 20
	}))
	s.do("a market trade of a halted security", typed(matcher.TradeNew, func(c *matcher.Command) {
		c.AccountID, c.SecurityID, c.Side, c.Qty = 3, 3, sell, 20
	}))
	forced := s.do("7 sells 10 at 110", order(7, sell, 10, 110*unit))
	filled := func(qty int32, px int64) matcher.Command {
		return with(typed(matcher.ForceFill, mine(forced)),
			func(c *matcher.Command) { c.Qty, c.LimitPx = qty, px })
	}
	s.do("the operator fills 4 of them at 109.5", filled(4, 109*unit+unit/2))
	s.do("and the other 6", filled(6, 109*unit))
	s.do("and one too many", filled(1, 109*unit))
	s.do("a new symbol: no record", matcher.NewSymbolRegister("NEW"))
	s.do("the unknown security again: it has a name now, and still may not be traded", unknown)
	s.do("AAA is restricted: its resting orders go, under the control's own sequence",
		typed(matcher.RestrictionControl,
			func(c *matcher.Command) { c.SecurityID, c.Side, c.PriceTicks = 1, 1, 1 }))
	s.do("an order for it", order(3, buy, 1, 99*unit))
	s.do("account 3 is disabled: no record", typed(matcher.AccountControl,
		func(c *matcher.Command) { c.AccountID, c.PriceTicks = 3, 2 }))
	s.do("an order of that account", with(order(3, buy, 1, 99*unit),
		func(c *matcher.Command) { c.SecurityID = 2 }))
	s.do("a control of a security that is not there: refused, no record",
		typed(matcher.SecurityControl, func(c *matcher.Command) { c.SecurityID = 99 }))
	s.do("a marker: no record", matcher.NewRiskExtract(19_000, 1))
	s.bookings()
}

// bookings gives every kind of record that an OTC booking can have.
func (s *scenario) bookings() {
	terms := matcher.ContractTerms{
		AccountID: 7, Side: matcher.Sell, Notional: 25_000_000, FixedRate: -12_500,
		Effective: 19_000, Maturity: 23_000, Convention: 3,
	}
	book := func(sentence string, key int64, change func(t *matcher.ContractTerms)) {
		t := terms
		change(&t)
		c := t.Command()
		c.PriceTicks = key
		s.do(sentence, c)
	}
	option := func(t *matcher.ContractTerms) {
		t.Swaption, t.Expiry, t.Style, t.Side, t.FixedRate = true, 18_900, matcher.Bermudan, matcher.Buy,
			41_250
	}
	book("a swap", 0, func(*matcher.ContractTerms) {})
	book("a swaption under a key", 77, option)
	book("the same again", 77, option)
	book("a swap that ends before it begins", 0, func(t *matcher.ContractTerms) { t.Maturity = 100 })
	book("a swaption in a style that this build does not know", 0,
		func(t *matcher.ContractTerms) { option(t); t.Style = 3 })
	book("a swap for more than an order may be worth", 0,
		func(t *matcher.ContractTerms) { t.Notional = 1_000_000_001 })
	book("a swap of an account that is disabled", 0,
		func(t *matcher.ContractTerms) { t.AccountID = 3 })
	book("a swap of nobody", 0, func(t *matcher.ContractTerms) { t.AccountID = 55 })
}

// TestLifecycleReadsAsItShould compares the report of the scenario with a file
// that a person can read from top to bottom.
func TestLifecycleReadsAsItShould(t *testing.T) {
	s := &scenario{v: newVenue(t, smallGenesis()), clock: noon}
	s.lifecycle()
	s.v.commit()
	var got bytes.Buffer
	for i, sentence := range s.said {
		if i > 0 {
			got.WriteString("\n")
		}
		fmt.Fprintf(&got, "# %d. %s\n", i+1, sentence)
		got.Write(s.v.report(uint64(i+1), uint64(i+1)))
	}
	const name = "testdata/lifecycle.txt"
	if *update {
		must.OK(t, os.WriteFile(name, got.Bytes(), 0o644))
	}
	want := must.Get(os.ReadFile(name))(t)
	diff(t, name, got.Bytes(), want)
}
