package whatif

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"posttrade/journal/asof"
	"posttrade/journal/asof/asoftest"
	"posttrade/matcher"
)

const unit = matcher.PriceScale

func testGenesis() *matcher.Genesis {
	g := &matcher.Genesis{
		Format: matcher.GenesisFormat, TickPx: 1000,
		Securities: []matcher.GenesisSecurity{{Ticker: "AAA", Enabled: true}, {Ticker: "BBB", Enabled: true}},
		Limits: matcher.Limits{
			MaxOrderQty: 60, MaxOrderNotional: 6_000 * unit, MaxPositionQty: 300,
			MaxConcentrationNotional: 25_000 * unit, CreditLimit: 30_000 * unit,
			PriceMaxAgeMillis: 300, PriceCollarBps: 1_000, IdempotencyCapacity: 64, MaxAccounts: 16,
			MaxSecurities: 16, MaxContracts: 4000, MaxOpenOrders: 4000, RetainedOrders: 500,
		},
	}
	for id := range uint32(5) {
		g.Accounts = append(g.Accounts, matcher.GenesisAccount{ID: id + 1, Enabled: true})
	}
	return g
}

// randomCommands writes a busy history, some of it refused by a gate that knew more or less than the
// engine.
func randomCommands(w *asoftest.Writer, rnd *rand.Rand, n int) (all []matcher.Command) {
	now, version := int64(1_772_445_600_000), int64(0)
	var live []matcher.Event
	for len(all) < n {
		c := matcher.NewCommand(matcher.OrderNew)
		c.AccountID, c.SecurityID = 1+rnd.Uint32N(5), 1+rnd.Uint32N(2)
		c.Side, c.Qty = matcher.Side(rnd.IntN(2)), 1+rnd.Int32N(40)
		c.LimitPx = (96 + rnd.Int64N(9)) * unit
		now += rnd.Int64N(8)
		var of matcher.Event
		if len(live) > 0 {
			of = live[rnd.IntN(len(live))]
		}
		switch k := rnd.IntN(100); {
		case k < 4:
			c.Qty = 50 + rnd.Int32N(20)
		case k < 8:
			c.LimitPx = 0
		case k < 12:
			c.Flags = []uint16{matcher.FlagIOC, matcher.FlagFOK, matcher.FlagPostOnly}[rnd.IntN(3)]
		case k < 15:
			c.PriceTicks = 1 + rnd.Int64N(40)
		case k < 18: // the gate refuses as the engine would, or knows something else
			c.OrderRef = uint32([]matcher.RiskReason{matcher.OrderSize, matcher.PriceStale,
				matcher.NotEntitled}[rnd.IntN(3)])
			c.Qty = 70
		case k < 22:
			c.Type, c.LimitPx = matcher.TradeNew, 0
		case k < 26:
			c = matcher.NewCommand(matcher.PriceTick)
			c.SecurityID, c.PriceTicks = 1+rnd.Uint32N(2), (97+rnd.Int64N(7))*unit
		case k < 45 && len(live) > 0:
			c = matcher.NewCommand(matcher.OrderCancel)
			c.OrderRef, c.AccountID = of.OrderRef, of.AccountID
		case k < 53 && len(live) > 0:
			c.Type, c.OrderRef = matcher.OrderReplace, of.OrderRef
			c.AccountID, c.SecurityID, c.Side = of.AccountID, of.SecurityID, of.Side
		case k < 54 && len(live) > 0:
			c.Type, c.OrderRef, c.AccountID, c.Qty = matcher.ForceFill, of.OrderRef, of.AccountID, 1
		case k < 57:
			c = (&matcher.ContractTerms{AccountID: 1 + rnd.Uint32N(5), Notional: 100 + rnd.Int32N(7000),
				FixedRate: 40_000, Effective: 20_000, Maturity: 21_000}).Command()
		case k < 58:
			version++
			c = matcher.NewCommand(matcher.PolicyControl)
			c.PriceTicks, c.Qty, c.LimitPx = version, 250+rnd.Int32N(100), (20_000+rnd.Int64N(9_000))*unit
		case k < 59:
			c = matcher.NewCommand(matcher.SecurityControl)
			c.SecurityID, c.Side = 1+rnd.Uint32N(2), 1|matcher.Side(rnd.IntN(3)/2)<<1
		case k < 60:
			c = matcher.NewCommand(matcher.RestrictionControl)
			c.SecurityID, c.Side = 1+rnd.Uint32N(2), matcher.Side(rnd.IntN(9)/8)
		case k < 61:
			now += 250
		case k < 62: // all accounts, or one of them
			version++
			change := matcher.LimitsChange{Version: version, Set: 1<<matcher.LimitOrderQty |
				1<<matcher.LimitCollar, ForAccount: rnd.IntN(2) == 0}
			change.Values[matcher.LimitOrderQty] = 40 + rnd.Int64N(40)
			change.Values[matcher.LimitCollar] = 200 + rnd.Int64N(900)
			if change.ForAccount {
				change.AccountID = 5
			}
			parts := change.AppendTo(nil)
			for _, part := range parts[:len(parts)-1] {
				part.EventTimeMillis = now
				w.Do(part)
				all = append(all, *w.Firsts[len(w.Firsts)-1].Cmd())
			}
			c = parts[len(parts)-1]
		}
		c.EventTimeMillis = now
		if ev := w.Do(c); ev.Kind == matcher.EventAccepted {
			live = append(live, ev)
			live = live[max(0, len(live)-30):]
		}
		all = append(all, *w.Firsts[len(w.Firsts)-1].Cmd())
	}
	w.Settle()
	return all[:n]
}

// naive is the oracle: one command at a time, maps for everything, and a list that is sorted whole.
type naive struct {
	t    *testing.T
	e    *matcher.Engine
	said []matcher.Event
	out  *matcher.Outlet
}

func newNaive(t *testing.T, g *matcher.Genesis) *naive {
	e, err := matcher.New(g)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	n := &naive{t: t, e: e}
	n.out = matcher.NewOutlet(16, func(events []matcher.Event) { n.said = append(n.said, events...) })
	return n
}

func (n *naive) do(c matcher.Command) []matcher.Event {
	n.said = nil
	n.e.Apply(&c, n.out)
	n.out.Flush()
	return n.said
}

// facts are what a history has decided, as text by what it is about.
type facts map[string]string

// add notes what events say; name gives the number that an order has in the history.
func (f facts) add(at uint64, events []matcher.Event, name func(uint64) uint64, removed bool) {
	own := name(events[0].Order())
	if !removed {
		f[fmt.Sprintf("order %d", at)] = "ACCEPTED"
		if events[0].Kind == matcher.EventRejected {
			f[fmt.Sprintf("order %d", at)] = "REJECTED " + events[0].Reason.String()
		}
	}
	for i := range events {
		ev := &events[i]
		if ev.Kind == matcher.EventCanceled && ev.Flags&matcher.EventFirst == 0 {
			text := "CANCELED"
			if ev.Reason != matcher.Accepted {
				text += " " + ev.Reason.String()
			}
			if number := name(ev.Order()); removed {
				continue
			} else if number == own {
				f[fmt.Sprintf("order %d", at)] = text
			} else {
				f[fmt.Sprintf("order %d ended %d", at, number)] = text
			}
		}
		if ev.Kind == matcher.EventFilled && ev.Flags&(matcher.EventAggressor|matcher.EventMarket|
			matcher.EventForced) != 0 {
			f[fmt.Sprintf("trade %d %d %d", at, name(ev.Order()), name(ev.Detail().Counter()))] =
				fmt.Sprintf("%d at %d", ev.Qty, ev.Px)
		}
	}
}

// expected compares a history with the same one, changed, in the plainest way.
func expected(t *testing.T, all []matcher.Command, from, to uint64, c *Changes) []string {
	t.Helper()
	g := testGenesis()
	base, other := newNaive(t, g), newNaive(t, g)
	if from == 1 { // the limits of the genesis record are those that are supposed
		changed := *g
		l := &changed.Limits
		for name, to := range map[matcher.LimitID]*int64{
			matcher.LimitOrderQty: &l.MaxOrderQty, matcher.LimitOrderNotional: &l.MaxOrderNotional,
			matcher.LimitPosition: &l.MaxPositionQty, matcher.LimitCredit: &l.CreditLimit,
			matcher.LimitConcentration: &l.MaxConcentrationNotional,
			matcher.LimitPriceAge:      &l.PriceMaxAgeMillis, matcher.LimitCollar: &l.PriceCollarBps,
		} {
			if v, ok := c.Limits[name]; ok {
				*to = v
			}
		}
		other = newNaive(t, &changed)
	}
	for _, cmd := range all[:from-1] {
		base.do(cmd)
		other.do(cmd)
	}
	if from > 1 {
		for limit, v := range c.Limits {
			other.e.Suppose(limit, v)
		}
	}
	was, is := facts{}, facts{}
	type late struct {
		item
		at int64
	}
	var list []late
	numbers := map[uint64]uint64{} // of the history, by sequence
	clock := int64(0)
	for _, cmd := range all[from-1 : to] {
		next := cmd
		if (cmd.Type == matcher.OrderNew || cmd.Type == matcher.TradeNew) && cmd.OrderRef != 0 &&
			base.e.Judge(&cmd).Reason == matcher.RiskReason(cmd.OrderRef) {
			next.OrderRef = 0
		}
		events := base.do(cmd)
		removed := slices.Contains(c.Without, cmd.AccountID) && (acts(&cmd) || cmd.Type == matcher.ForceFill)
		was.add(cmd.InputSeq, events, func(n uint64) uint64 { return n }, removed)
		numbers[cmd.InputSeq] = events[0].Order()
		for _, act := range c.Acts {
			if act.Before == cmd.InputSeq {
				act.Command.EventTimeMillis = cmd.EventTimeMillis
				list = append(list, late{item{cmd: act.Command}, cmd.EventTimeMillis})
			}
		}
		if _, ok := c.Limits[matcher.LimitPosition]; ok && cmd.Type == matcher.PolicyControl {
			next.Qty = 0
		}
		if _, ok := c.Limits[matcher.LimitConcentration]; ok && cmd.Type == matcher.PolicyControl {
			next.LimitPx = 0
		}
		if v, ok := c.Limits[matcher.LimitID(cmd.SecurityID)]; ok && cmd.Type == matcher.LimitsControl &&
			cmd.AccountID == 0 {
			next.LimitPx = v
		}
		if removed {
			next.OrderRef = uint32(matcher.NotEntitled) // of a new order; other commands find no order
			if cmd.Type == matcher.SwapBook {
				next = matcher.NewCommand(matcher.SnapshotMark)
			}
		}
		clock = max(clock, cmd.EventTimeMillis)
		one := late{item{cmd: next, was: cmd.InputSeq, removed: removed}, clock}
		for _, l := range c.Latency {
			if l.AccountID == cmd.AccountID && acts(&cmd) {
				one.cmd.EventTimeMillis = cmd.EventTimeMillis + l.Millis
				// behind everything of the same time that was not delayed
				one.at, one.delayed = one.cmd.EventTimeMillis, true
			}
		}
		list = append(list, one)
	}
	slices.SortStableFunc(list, func(a, b late) int {
		switch {
		case a.at != b.at:
			return int(a.at - b.at)
		case a.delayed != b.delayed && b.delayed:
			return -1
		case a.delayed != b.delayed:
			return 1
		}
		return 0
	})
	if len(c.Without) > 0 {
		other.e.EachOrder(func(o matcher.OrderInfo) bool {
			if o.Open() && slices.Contains(c.Without, o.AccountID) {
				cancel := matcher.NewCommand(matcher.OrderCancel)
				cancel.OrderRef, cancel.AccountID = o.Ref, o.AccountID
				defer other.do(cancel)
			}
			return true
		})
	}
	there, here := map[uint32]uint32{}, map[uint64]uint64{}
	for _, one := range list {
		cmd := one.cmd
		named := cmd.Type == matcher.OrderCancel || cmd.Type == matcher.OrderReplace ||
			cmd.Type == matcher.ForceFill
		if len(c.Latency) > 0 && named && cmd.OrderRef >= firstRef(all, from, t) {
			cmd.OrderRef = there[cmd.OrderRef]
		}
		events := other.do(cmd)
		if one.was == 0 {
			continue
		}
		if n, ok := made(&events[0]); ok {
			there[uint32(numbers[one.was])] = uint32(n)
			here[n] = numbers[one.was]
		}
		is.add(one.was, events, func(n uint64) uint64 {
			if number, ok := here[n]; ok {
				return number
			}
			return n
		}, one.removed)
	}
	var diff []string
	for what := range maps.Keys(was) {
		if was[what] != is[what] {
			diff = append(diff, what+": "+was[what]+" -> "+is[what])
		}
	}
	for what := range maps.Keys(is) {
		if _, ok := was[what]; !ok {
			diff = append(diff, what+":  -> "+is[what])
		}
	}
	slices.Sort(diff)
	return diff
}

// firstRef is the number of the first order of a range.
func firstRef(all []matcher.Command, from uint64, t *testing.T) uint32 {
	if known, ok := firstRefs[from]; ok {
		return known
	}
	n := newNaive(t, testGenesis())
	last := uint64(0)
	for _, c := range all[:from-1] {
		if number, ok := made(&n.do(c)[0]); ok {
			last = max(last, number)
		}
	}
	firstRefs[from] = uint32(last + 1)
	return firstRefs[from]
}

var firstRefs = map[uint64]uint32{}

// found is what Run reports, as the oracle writes it.
func found(t *testing.T, h *asof.History, from, to uint64, c Changes) (diff []string, r Result) {
	t.Helper()
	text := func(d *Decision) string {
		switch {
		case d.Decision == "OPEN":
			return ""
		case d.Reason != nil:
			return d.Decision + " " + *d.Reason
		}
		return d.Decision
	}
	number := func(id *string) string {
		if id == nil {
			return "0"
		}
		return (*id)[len("ord-"):]
	}
	how := func(x *Execution) string {
		if x == nil {
			return ""
		}
		px, ok := new(big.Rat).SetString(string(x.Price))
		if !ok {
			t.Fatal(x.Price)
		}
		return fmt.Sprintf("%d at %s", x.Quantity, px.Mul(px, big.NewRat(unit, 1)).Num())
	}
	own := map[uint64]string{}
	r, err := Run(t.Context(), h, Options{From: from, To: to, Changes: c, Report: func(d Difference) error {
		if d.Kind == "trade" {
			diff = append(diff, fmt.Sprintf("trade %d %s %s: %s -> %s", d.Sequence, number(d.OrderID),
				number(d.CounterOrderID), how(d.Was), how(d.Is)))
			return nil
		}
		what := fmt.Sprintf("order %d", d.Sequence)
		if d.Before.Decision == "OPEN" || d.After.Decision == "OPEN" || own[d.Sequence] != "" ||
			strings.HasPrefix(text(d.Before), "CANCELED") && text(d.Before) != "CANCELED" &&
				d.AccountID == 0 {
			what += " ended " + number(d.OrderID)
		} else {
			own[d.Sequence] = what
		}
		diff = append(diff, what+": "+text(d.Before)+" -> "+text(d.After))
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(diff)
	return diff, r
}

// TestChangesAgainstTheOracle changes a random history in every way that there is.
func TestChangesAgainstTheOracle(t *testing.T) {
	w := asoftest.New(t, t.TempDir(), testGenesis())
	const n = 6000
	all := randomCommands(w, rand.New(rand.NewPCG(5, 3)), n)
	h, err := asof.New(w.Journal, asof.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	set := func(l matcher.LimitID, v int64) Changes {
		return Changes{Limits: map[matcher.LimitID]int64{l: v}}
	}
	for name, c := range map[string]Changes{
		"no change":        {},
		"order quantity":   set(matcher.LimitOrderQty, 20),
		"wider quantity":   set(matcher.LimitOrderQty, 1000),
		"order notional":   set(matcher.LimitOrderNotional, 2_000*unit),
		"position":         set(matcher.LimitPosition, 60),
		"concentration":    set(matcher.LimitConcentration, 5_000*unit),
		"credit":           set(matcher.LimitCredit, 6_000*unit),
		"price age":        set(matcher.LimitPriceAge, 5),
		"collar":           set(matcher.LimitCollar, 150),
		"no collar":        set(matcher.LimitCollar, 0),
		"without accounts": {Without: []uint32{2, 4}},
		"halt":             {Acts: []Act{Halt(2500, 1), Halt(2600, 2), Halt(3300, 1), Halt(4100, 2)}},
		"price": {Acts: []Act{Price(3000, 2, 60*unit), Price(2100, 1, 130*unit),
			Price(2200, 1, 80*unit), Price(2300, 2, 112*unit), Price(4000, 1, 90*unit),
			Price(4000, 2, 110*unit), Price(4500, 1, 115*unit)}},
		"latency": {Latency: []Latency{{AccountID: 3, Millis: 5}, {AccountID: 5, Millis: 40}}},
		"together": {Limits: map[matcher.LimitID]int64{matcher.LimitOrderQty: 30}, Without: []uint32{1},
			Acts: []Act{Halt(2200, 2)}, Latency: []Latency{{AccountID: 2, Millis: 12}}},
	} {
		for _, r := range [][2]uint64{{1, n}, {2000, 5000}} {
			t.Run(fmt.Sprint(name, " from ", r[0]), func(t *testing.T) {
				want := expected(t, all, r[0], r[1], &c)
				got, result := found(t, h, r[0], r[1], c)
				if result.Commands != r[1]-r[0]+1 || result.To != r[1] {
					t.Errorf("%+v", result)
				}
				if (len(want) == 0) != (name == "no change") {
					t.Errorf("the oracle finds %d differences", len(want))
				}
				if !slices.Equal(got, want) {
					i := 0
					for i < len(got) && i < len(want) && got[i] == want[i] {
						i++
					}
					t.Fatalf("%d differences, want %d; the first that differ:\n%s\nwant\n%s", len(got),
						len(want), first(got[i:]), first(want[i:]))
				}
			})
		}
	}
}

func first(list []string) string { return strings.Join(list[:min(3, len(list))], "\n") }

// TestProfitIsCashAndPositions checks profit and loss on a small history.
func TestProfitIsCashAndPositions(t *testing.T) {
	w := asoftest.New(t, t.TempDir(), testGenesis())
	order := func(account uint32, side matcher.Side, qty int32, px int64) {
		c := matcher.NewCommand(matcher.OrderNew)
		c.AccountID, c.SecurityID, c.Side, c.Qty, c.LimitPx = account, 1, side, qty, px*unit
		w.Do(c)
	}
	order(1, matcher.Sell, 10, 100)
	order(2, matcher.Buy, 10, 100) // 2: trades at 100
	order(3, matcher.Sell, 5, 104)
	order(1, matcher.Buy, 5, 104) // 4: trades at 104
	w.Settle()
	h, err := asof.New(w.Journal, asof.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	_, r := found(t, h, 1, 4, Changes{Without: []uint32{3}})
	want := "1 -40 0; 2 40 0; "
	got := ""
	for _, p := range r.Accounts {
		got += fmt.Sprintf("%d %s %s; ", p.AccountID, p.Before.Div(p.Before, big.NewInt(unit)),
			p.After.Div(p.After, big.NewInt(unit)))
	}
	if got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestStoppedRunSaysHowFarItCame ends the context, and has the report fail.
func TestStoppedRunSaysHowFarItCame(t *testing.T) {
	w := asoftest.New(t, t.TempDir(), testGenesis())
	randomCommands(w, rand.New(rand.NewPCG(1, 1)), 9000)
	h, err := asof.New(w.Journal, asof.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	ctx, stop := context.WithCancel(t.Context())
	r, err := Run(ctx, h, Options{From: 1, To: 9000, Report: func(Difference) error { return nil },
		Progress: func(uint64) { stop() }})
	if !errors.Is(err, context.Canceled) || r.To == 0 || r.To == 9000 || r.Commands != r.To {
		t.Errorf("%+v %v", r, err)
	}
	full := errors.New("no space left")
	_, err = Run(t.Context(), h, Options{From: 1, To: 9000, Report: func(Difference) error { return full },
		Changes: Changes{Without: []uint32{1}}})
	if !errors.Is(err, full) {
		t.Error(err)
	}
	for _, bad := range [][2]uint64{{0, 5}, {5, 4}, {1, 9001}} {
		if _, err := Run(t.Context(), h, Options{From: bad[0], To: bad[1]}); err == nil {
			t.Errorf("the range %v was taken", bad)
		}
	}
}

// TestNoChangeNoDifference decides a million commands anew.
func TestNoChangeNoDifference(t *testing.T) {
	w := asoftest.New(t, t.TempDir(), testGenesis())
	w.PerBlock = 4096
	const n = 1_000_000
	randomCommands(w, rand.New(rand.NewPCG(8, 8)), n)
	h, err := asof.New(w.Journal, asof.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	diff, r := found(t, h, 1, n, Changes{})
	if len(diff) != 0 || r.Orders+r.Appeared+r.Vanished+r.Changed != 0 || r.Commands != n {
		t.Errorf("%+v: %s", r, first(diff))
	}
	for _, p := range r.Accounts {
		if p.Change().Sign() != 0 {
			t.Errorf("account %d differs by %s", p.AccountID, p.Change())
		}
	}
}
