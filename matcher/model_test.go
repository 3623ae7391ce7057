package matcher_test

import (
	"slices"
	"testing"

	"posttrade/matcher"
	"posttrade/matcher/matchertest"
)

// compare runs a tape through the engine and the model and compares every event,
// every invariant and every position after each command.
func compare(t *testing.T, r matcher.Rig, m *matchertest.Model, tape []byte,
	seen func([]matcher.Event)) {
	t.Helper()
	step := 0
	r.Fly(tape, func(c matcher.Command, got []matcher.Event) {
		want := m.Apply(c)
		if !slices.Equal(got, want) {
			t.Fatalf("step %d %+v\n got %q\nwant %q\n got %+v\nwant %+v", step, c,
				matcher.Describe(got), matcher.Describe(want), got, want)
		}
		m.Compare(t, r.Engine())
		seen(got)
		step++
	})
}

// Without a collar the limits that apply bound a purchase at the market.
func TestEngineWithoutACollarMatchesTheModel(t *testing.T) {
	g := matcher.Crowded()
	g.Limits.PriceCollarBps = 0
	tape := matcher.RandomTape(matcher.Seeded(t), min(matcher.RunLength()/3, 20_000))
	cut := [matcher.ReasonCount]int{}
	compare(t, matcher.NewRig(t, g, false), matchertest.New(g), tape, func(events []matcher.Event) {
		for i := range events {
			if events[i].Kind == matcher.EventCanceled {
				cut[events[i].Reason]++
			}
		}
	})
	t.Logf("rests of orders cancelled: %v", cut)
}

// A purchase at the market whose limits reach less than a tick is admitted and meets no order.
func TestABoundBelowATickMeetsNoOrder(t *testing.T) {
	g := matcher.Crowded()
	g.Limits.PriceCollarBps = 0
	g.Accounts = []matcher.GenesisAccount{{ID: 1, Enabled: true}, {ID: 2, Enabled: true}}
	g.Securities = []matcher.GenesisSecurity{{Ticker: "AAA", Enabled: true}}
	r, m := matcher.NewRig(t, g, false), matchertest.New(g)
	command := func(kind matcher.CommandType, change func(*matcher.Command)) matcher.Command {
		c := matcher.NewCommand(kind)
		c.SecurityID, c.EventTimeMillis = 1, 1_700_000_000_000
		change(&c)
		return c
	}
	tape := []matcher.Command{
		command(matcher.PriceTick, func(c *matcher.Command) { c.PriceTicks = 84 }),
		command(matcher.OrderNew, func(c *matcher.Command) {
			c.AccountID, c.Side, c.Qty, c.LimitPx = 2, matcher.Sell, 5, 1000
		}),
	}
	little := matcher.LimitsChange{Version: 1, ForAccount: true, AccountID: 1,
		Set: 1 << matcher.LimitConcentration}
	little.Values[matcher.LimitConcentration] = 1100
	for _, c := range little.AppendTo(nil) {
		tape = append(tape, command(c.Type, func(to *matcher.Command) {
			c.EventTimeMillis = to.EventTimeMillis
			*to = c
		}))
	}
	tape = append(tape, command(matcher.OrderNew, func(c *matcher.Command) {
		c.AccountID, c.Qty = 1, 5 // at the market: 220 millionths are the most, a tick has 1000
	}))
	var last []matcher.Event
	for i, c := range tape {
		last = slices.Clone(r.Do(c))
		if want := m.Apply(c); !slices.Equal(last, want) {
			t.Fatalf("command %d: got %q, want %q", i, matcher.Describe(last), matcher.Describe(want))
		}
	}
	if end := last[len(last)-1]; len(last) != 2 || end.Kind != matcher.EventCanceled ||
		end.Reason != matcher.ConcentrationLimit {
		t.Errorf("the purchase: %q", matcher.Describe(last))
	}
}

func TestEngineMatchesTheModel(t *testing.T) {
	r := matcher.NewRig(t, matcher.Crowded(), false)
	kinds, reasons, flagged := [16]int{}, [matcher.ReasonCount]int{}, [16]int{}
	tape := matcher.RandomTape(matcher.Seeded(t), matcher.RunLength())
	model := matchertest.New(matcher.Crowded())
	compare(t, r, model, tape, func(events []matcher.Event) {
		for i := range events {
			kinds[events[i].Kind]++
			reasons[events[i].Reason]++
			for bit := range flagged {
				flagged[bit] += int(events[i].Flags >> bit & 1)
			}
		}
	})
	t.Logf("kinds %v\nreasons %v\nflags %v\n%+v", kinds[1:11], reasons, flagged[:8],
		r.Engine().Counts())
	if matcher.RunLength() < 50_000 {
		return
	}
	// The run must reach every kind and every reason.
	for kind, n := range kinds[1:11] {
		if n == 0 {
			t.Errorf("no event of kind %d", kind+1)
		}
	}
	for reason, n := range reasons {
		if n == 0 {
			t.Errorf("no event with reason %v", matcher.RiskReason(reason))
		}
	}
	for bit, n := range flagged[:8] {
		if n == 0 {
			t.Errorf("no event with flag bit %d", bit)
		}
	}
}

// A restore between any two commands changes no event.
func TestEngineRestoredBeforeEveryCommandMatchesTheModel(t *testing.T) {
	tape := matcher.RandomTape(matcher.Seeded(t), min(matcher.RunLength()/10, 3000))
	compare(t, matcher.NewRig(t, matcher.Crowded(), true), matchertest.New(matcher.Crowded()), tape,
		func([]matcher.Event) {})
}

// TestSupposedLimitsAreThoseOfAnotherGenesis compares an engine that supposes a limit with the
// model of a journal that was created with it.
func TestSupposedLimitsAreThoseOfAnotherGenesis(t *testing.T) {
	const unit = matcher.PriceScale
	for limit, value := range map[matcher.LimitID]int64{
		matcher.LimitOrderQty: 25, matcher.LimitOrderNotional: 2_500 * unit,
		matcher.LimitPosition: 90, matcher.LimitConcentration: 7_000 * unit,
		matcher.LimitCredit: 9_000 * unit, matcher.LimitPriceAge: 20, matcher.LimitCollar: 200,
	} {
		t.Run(matcher.LimitSettings[limit], func(t *testing.T) {
			g := matcher.Crowded()
			r := matcher.NewRig(t, matcher.Crowded(), false)
			l := &g.Limits
			*map[matcher.LimitID]*int64{
				matcher.LimitOrderQty: &l.MaxOrderQty, matcher.LimitOrderNotional: &l.MaxOrderNotional,
				matcher.LimitPosition:      &l.MaxPositionQty,
				matcher.LimitConcentration: &l.MaxConcentrationNotional,
				matcher.LimitCredit:        &l.CreditLimit, matcher.LimitPriceAge: &l.PriceMaxAgeMillis,
				matcher.LimitCollar: &l.PriceCollarBps,
			}[limit] = value
			r.Engine().Suppose(limit, value)
			tape := matcher.RandomTape(matcher.Seeded(t), matcher.RunLength()/5)
			compare(t, r, matchertest.New(g), tape, func([]matcher.Event) {})
		})
	}
}

func FuzzEngineInvariants(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x01\x00\x00\x00\x00\x00"))
	for seed := range byte(4) {
		tape := make([]byte, 64*8)
		for i := range tape {
			tape[i] = byte(i)*31*(seed*2+1) + byte(i>>3)*seed
		}
		f.Add(tape)
	}
	f.Fuzz(func(t *testing.T, tape []byte) {
		r := matcher.NewRig(t, matcher.Crowded(), false)
		compare(t, r, matchertest.New(matcher.Crowded()), tape, func([]matcher.Event) {})
		before := r.Engine().StateHash()
		r.Reread()
		if r.Engine().StateHash() != before {
			t.Error("restored is not what was written")
		}
	})
}
