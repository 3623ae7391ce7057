package why

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"posttrade/journal/asof"
	"posttrade/journal/asof/asoftest"
	"posttrade/journal/audit"
	"posttrade/matcher"
	"posttrade/ring/must"
)

const unit = matcher.PriceScale

func testGenesis() *matcher.Genesis {
	return &matcher.Genesis{
		Format: matcher.GenesisFormat, TickPx: 1000,
		Accounts: []matcher.GenesisAccount{
			{ID: 1, Enabled: true}, {ID: 2, Enabled: true}, {ID: 3, Enabled: true}, {ID: 4},
		},
		Securities: []matcher.GenesisSecurity{
			{Ticker: "AAA", Enabled: true}, {Ticker: "BBB", Enabled: true}, {Ticker: "OFF"},
			{Ticker: "HLT", Enabled: true, Halted: true}, {Ticker: "NEW", Enabled: true},
		},
		Limits: matcher.Limits{
			MaxOrderQty: 60, MaxOrderNotional: 6_000 * unit, MaxPositionQty: 150,
			MaxConcentrationNotional: 12_000 * unit, CreditLimit: 14_000 * unit,
			PriceMaxAgeMillis: 300, PriceCollarBps: 1_000, IdempotencyCapacity: 256, MaxAccounts: 16,
			MaxSecurities: 16, MaxContracts: 20, MaxOpenOrders: 30, RetainedOrders: 4096,
		},
	}
}

// book is a history that a test writes.
type book struct {
	*asoftest.Writer
	t   *testing.T
	now int64
}

func newBook(t *testing.T) *book {
	return &book{asoftest.New(t, t.TempDir(), testGenesis()), t, 1_772_445_600_000}
}

// do decides a command and returns its first event.
func (b *book) do(c matcher.Command) matcher.Event {
	b.now += 10
	if c.TemplateID == matcher.TemplateCommand {
		c.EventTimeMillis = b.now
	}
	return b.Do(c)
}

// explainer closes the history and explains it.
func (b *book) explainer() *Explainer {
	b.t.Helper()
	b.Settle()
	h := must.Get(asof.New(b.Journal, asof.Options{}))(b.t)
	b.t.Cleanup(func() { h.Close() })
	return New(h)
}

func order(account, security uint32, side matcher.Side, qty int32, px int64) matcher.Command {
	c := matcher.NewCommand(matcher.OrderNew)
	c.AccountID, c.SecurityID, c.Side, c.Qty, c.LimitPx = account, security, side, qty, px*unit
	return c
}

func control(kind matcher.CommandType, account, security uint32, side matcher.Side,
	version int64) matcher.Command {
	c := matcher.NewCommand(kind)
	c.AccountID, c.SecurityID, c.Side, c.PriceTicks = account, security, side, version
	return c
}

// randomHistory keeps a small exchange busy, without ticks: the audit shows every price.
func randomHistory(b *book, rnd *rand.Rand, n int) {
	var live []uint32
	version := int64(0)
	for range n {
		account, security := 1+rnd.Uint32N(3), 1+rnd.Uint32N(2)
		side := matcher.Side(rnd.IntN(2))
		c := order(account, security, side, 1+rnd.Int32N(30), 96+rnd.Int64N(9))
		switch k := rnd.IntN(100); {
		case k < 4:
			c.Qty = 55 + rnd.Int32N(10)
		case k < 7:
			c.LimitPx = (80 + rnd.Int64N(45)) * unit
		case k < 10:
			c.LimitPx = 0
		case k < 13:
			c.Flags = matcher.FlagPostOnly
		case k < 15:
			c.LimitPx++
		case k < 18:
			c.PriceTicks = 1 + rnd.Int64N(20)
		case k < 20:
			c.AccountID = 3 + rnd.Uint32N(4)
		case k < 23:
			c.SecurityID = 3 + rnd.Uint32N(5)
			c.LimitPx *= rnd.Int64N(2)
		case k < 27:
			c.Type = matcher.TradeNew
			c.LimitPx = 0
		case k < 47 && len(live) > 0:
			c = matcher.NewCommand(matcher.OrderCancel)
			c.AccountID, c.OrderRef = account, live[rnd.IntN(len(live))]
		case k < 57 && len(live) > 0:
			ref := live[rnd.IntN(len(live))]
			if o, ok := b.Engine.Order(ref); ok {
				c.Type, c.OrderRef, c.AccountID, c.SecurityID, c.Side = matcher.OrderReplace, ref, o.AccountID,
					o.SecurityID, o.Side
			}
		case k < 60:
			c = (&matcher.ContractTerms{AccountID: account, Notional: 100 + rnd.Int32N(7000),
				FixedRate: 40_000, Effective: 20_000, Maturity: 21_000}).Command()
		case k < 62:
			c = control(matcher.AccountControl, account, 0, matcher.Side(rnd.IntN(4)/1&1), 0)
		case k < 64:
			c = control(matcher.SecurityControl, 0, security, 1|matcher.Side(rnd.IntN(3)&2), 0)
		case k < 65:
			c = control(matcher.RestrictionControl, 0, security, matcher.Side(rnd.IntN(2)), 0)
		case k < 66:
			version++
			c = control(matcher.PolicyControl, 0, 0, matcher.Side(rnd.IntN(4)/3), version)
			c.Qty = 100 + rnd.Int32N(100)
		case k < 68: // nothing happens for a while: prices grow old
			b.now += 250
		case k < 70: // controls are lifted again
			for _, open := range []matcher.Command{control(matcher.AccountControl, account, 0, 1, 0),
				control(matcher.SecurityControl, 0, security, 1, 0),
				control(matcher.RestrictionControl, 0, security, 0, 0)} {
				b.do(open)
			}
			version++
			b.do(control(matcher.PolicyControl, 0, 0, 0, version))
		}
		if ev := b.do(c); ev.Kind == matcher.EventAccepted {
			live = append(live, ev.OrderRef)
			live = live[max(0, len(live)-20):]
		}
	}
}

// TestObservedIsWhatTheAuditSays explains the refusals of a random history, and recomputes every
// observed value from the regulatory report and nothing else.
func TestObservedIsWhatTheAuditSays(t *testing.T) {
	b := newBook(t)
	const n = 6000
	randomHistory(b, rand.New(rand.NewPCG(11, 7)), n)
	x := b.explainer()
	state := &audited{orders: map[string]*auditedOrder{}, cash: map[uint32]int64{},
		held: map[string]int64{}, last: map[string]int64{}, at: map[string]int64{}}
	var lines []line
	must.Get(audit.New(b.Journal, asof.Rebuild(testGenesis()).Engine,
		audit.Options{}).Write(t.Context(),
		1, b.Engine.AppliedSeq(), func(records []byte, _ int) error {
			for text := range bytes.Lines(records) {
				var l line
				if err := json.Unmarshal(text, &l); err != nil {
					return err
				}
				lines = append(lines, l)
			}
			return nil
		}))(t)
	met := map[string]int{}
	for i := range lines {
		l := &lines[i]
		state.add(l)
		if l.Kind != "reject" || met[*l.RiskReason] > 25 {
			continue
		}
		why := must.Get(x.Command(t.Context(), l.Sequence))(t)
		met[*l.RiskReason]++
		if why.Decision != "REJECTED" || *why.Reason != *l.RiskReason || why.Rule == nil ||
			why.Account != l.AccountID || !strings.HasSuffix(why.Text, ".") {
			t.Fatalf("%+v: %+v %s", l, why, why.Text)
		}
		contract := b.Firsts[l.Sequence-1].Cmd().Type == matcher.SwapBook
		want := state.observed(l, contract)
		if want == nil {
			continue
		}
		got, ok := new(big.Rat).SetString(string(why.Observed.Value))
		if !ok || got.Cmp(want) != 0 {
			t.Fatalf("sequence %d %s: observed %s %s, the audit says %s\n%s", l.Sequence, *l.RiskReason,
				why.Observed.Value, why.Observed.Unit, want.FloatString(6), why.Text)
		}
		limit, ok := new(big.Rat).SetString(string(why.Limit.Value))
		if !ok || got.Cmp(limit) <= 0 {
			t.Fatalf("sequence %d: %s is within %s", l.Sequence, why.Observed.Value, why.Limit.Value)
		}
		for _, c := range why.Because {
			if c.InputSeq != nil && *c.InputSeq >= l.Sequence {
				t.Fatalf("sequence %d is explained by a later one: %+v", l.Sequence, c)
			}
		}
	}
	t.Log(met)
	for reason := matcher.Invalid; reason < matcher.ReasonCount; reason++ {
		switch reason {
		case matcher.NotEntitled, matcher.ControlStateStale, matcher.InternalPolicyError,
			matcher.SelfTradePrevented: // TestVerdictsOfTheGate, TestWhatEndedAnOrder
		default:
			if met[reason.String()] == 0 {
				t.Errorf("no command was refused with %s", reason)
			}
		}
	}
}

// TestLimitsThatChanged: a limit is explained by the command that set it, for all accounts or for
// one.
func TestLimitsThatChanged(t *testing.T) {
	b := newBook(t)
	set := func(account uint32, version, qty int64) uint64 {
		change := matcher.LimitsChange{Version: version, ForAccount: account != 0, AccountID: account,
			Set: 1<<matcher.LimitOrderQty | 1<<matcher.LimitCollar}
		change.Values[matcher.LimitOrderQty], change.Values[matcher.LimitCollar] = qty, 500
		parts := change.AppendTo(nil)
		first := b.do(parts[0])
		b.do(parts[1])
		return first.InputSeq
	}
	all, own := set(0, 1, 40), set(1, 2, 20)
	set(0, 1, 10) // late: refused
	of1 := b.do(order(1, 1, matcher.Buy, 30, 100)).InputSeq
	of2 := b.do(order(2, 1, matcher.Buy, 50, 100)).InputSeq
	x := b.explainer()
	for at, want := range map[uint64]struct {
		limit string
		by    uint64
	}{of1: {"20", own}, of2: {"40", all}} {
		why := must.Get(x.Command(t.Context(), at))(t)
		if string(why.Limit.Value) != want.limit || *why.Because[0].InputSeq != want.by {
			t.Errorf("%+v %+v: %s", why.Limit, why.Because, why.Text)
		}
	}
}

// TestWhatEndedAnOrder follows orders to their end, and looks at queues and fills.
func TestWhatEndedAnOrder(t *testing.T) {
	b := newBook(t)
	b.do(order(1, 1, matcher.Sell, 10, 101)) // 1: ord-1, first in the queue
	b.do(order(2, 1, matcher.Sell, 20, 101)) // 2: ord-2, behind it
	b.do(order(1, 1, matcher.Sell, 5, 101))  // 3: ord-3, behind both
	b.do(order(3, 1, matcher.Buy, 15, 101))  // 4: ord-4 takes ord-1 and a part of ord-2
	b.do(order(2, 1, matcher.Buy, 30, 101))  // 5: ord-5 cancels ord-2, takes ord-3, rests
	cancel := matcher.NewCommand(matcher.OrderCancel)
	cancel.AccountID, cancel.OrderRef = 2, 5
	b.do(cancel) // 6
	ioc := order(3, 1, matcher.Buy, 4, 92)
	ioc.Flags = matcher.FlagIOC
	b.do(ioc)                             // 7: ord-6 finds nothing
	b.do(order(3, 1, matcher.Buy, 4, 95)) // 8: ord-7 rests
	restrict := control(matcher.RestrictionControl, 0, 1, 1, 0)
	restrict.OrderRef = 3838606423
	b.do(restrict)                        // 9 cancels it
	b.do(order(1, 2, matcher.Buy, 4, 95)) // 10: ord-8 rests in another security
	b.do(order(1, 2, matcher.Buy, 6, 95)) // 11: ord-9 behind it
	swap := b.do((&matcher.ContractTerms{AccountID: 1, Notional: 100, FixedRate: 40_000,
		Effective: 20_000, Maturity: 21_000}).Command()) // 12
	x := b.explainer()
	for number, want := range map[uint64]string{
		1: `ord-1 (Sell 10 AAA at 101 for account 1) was accepted and rested at the front of its queue;` +
			` 10 of it executed in 1 fill.`,
		2: `ord-2 (Sell 20 AAA at 101 for account 2) was accepted and rested behind 1 order for 10;` +
			` 5 of it executed in 1 fill; it was cancelled: it would have traded with ord-5 of the same` +
			` account.`,
		3: `ord-3 (Sell 5 AAA at 101 for account 1) was accepted and rested behind 2 orders for 30;` +
			` 5 of it executed in 1 fill.`,
		4: `ord-4 (Buy 15 AAA at 101 for account 3) was accepted; 15 of it executed in 2 fills.`,
		5: `ord-5 (Buy 30 AAA at 101 for account 2) was accepted and rested at the front of its queue;` +
			` 5 of it executed in 1 fill; it was cancelled: its owner cancelled it.`,
		6: `ord-6 (Buy 4 AAA at 92 for account 3) was accepted; it was cancelled: what could ` +
			`not execute` +
			` at once does not rest.`,
		7: `ord-7 (Buy 4 AAA at 95 for account 3) was accepted and rested at the front of its queue;` +
			` it was cancelled: AAA was restricted.`,
		9: `ord-9 (Buy 6 BBB at 95 for account 1) was accepted and rested behind 1 order for 4,` +
			` where it still is; nothing of it has executed.`,
	} {
		why := must.Get(x.Order(t.Context(), number))(t)
		if why.Text != want {
			t.Errorf("ord-%d:\n%s\nwant\n%s", number, why.Text, want)
		}
	}
	why, err := x.Order(t.Context(), 2)
	if err != nil || why.Decision != "CANCELED" || *why.Reason != "SELF_TRADE_PREVENTED" ||
		*why.Rule != "self-trade-prevention" || *why.Because[0].InputSeq != 5 {
		t.Errorf("%+v %v", why, err)
	}
	why, err = x.Order(t.Context(), 4)
	if err != nil || len(why.Against) != 2 || *why.Against[0].OrderID != "ord-1" ||
		why.Against[0].TradeID != "trd-1" || *why.Against[1].OrderID != "ord-2" ||
		why.Against[1].Quantity != 5 {
		t.Fatalf("%+v %v", why, err)
	}
	why.Hide(func(account uint32) bool { return account == 2 })
	if why.Against[0].OrderID != nil || why.Against[1].OrderID == nil {
		t.Errorf("hidden: %+v", why.Against)
	}
	why, err = x.Contract(t.Context(), false, swap.InputSeq)
	if err != nil || *why.ContractID != "SW-12" || !strings.Contains(why.Text, "booked as SW-12") {
		t.Errorf("%+v %v", why, err)
	}
	if _, err = x.Contract(t.Context(), true, 12); !errors.Is(err, ErrNoContract) {
		t.Error(err)
	}
	if _, err = x.Order(t.Context(), 99); !errors.Is(err, asof.ErrNoOrder) {
		t.Error(err)
	}
	fed := b.Firsts[8] // the restriction; a control of a source has a mark where orders have a number
	if fed.Cmd().Type != matcher.RestrictionControl {
		t.Fatal(fed.Cmd())
	}
	if why, err = x.Command(t.Context(), 9); err != nil || why.OrderID != nil || !why.ForAdmin ||
		why.Text != "The control at sequence 9 (AAA restricted) was carried out: every check passed." {
		t.Errorf("%+v %v", why, err)
	}
	var beyond *asof.BeyondError
	if _, err = x.Command(t.Context(), 13); !errors.As(err, &beyond) {
		t.Error(err)
	}
}

// TestAllFillsCount: an order with more fills than an explanation lists. Quantity and number, in
// the members and in the text, are those of all.
func TestAllFillsCount(t *testing.T) {
	g := testGenesis()
	g.Limits.MaxOrderQty, g.Limits.MaxPositionQty = 3*MaxAgainst, 3*MaxAgainst
	g.Limits.MaxOrderNotional, g.Limits.CreditLimit = 1_000_000*unit, 1_000_000*unit
	g.Limits.MaxConcentrationNotional = 1_000_000 * unit
	b := &book{asoftest.New(t, t.TempDir(), g), t, 1_772_445_600_000}
	const fills = MaxAgainst + 2
	b.do(order(1, 1, matcher.Sell, 2*fills, 101))
	for range fills {
		b.do(order(2, 1, matcher.Buy, 2, 101))
	}
	x := must.Get(b.explainer().Order(t.Context(), 1))(t)
	if x.Executed != 2*fills || x.Fills != fills || len(x.Against) != MaxAgainst {
		t.Errorf("executed %d in %d fills, %d listed", x.Executed, x.Fills, len(x.Against))
	}
	if want := fmt.Sprintf("; %d of it executed in %d fills.", 2*fills, fills); !strings.HasSuffix(
		x.Text, want) {
		t.Errorf("%q, want %q", x.Text, want)
	}
}

// TestARaisedCapacityIsExplained: a refusal for want of room names the raise that set the room, or
// the genesis record.
func TestARaisedCapacityIsExplained(t *testing.T) {
	b := newBook(t)
	for raise := range 2 {
		room := testGenesis().Limits.Capacities()
		cause := uint64(0)
		if raise == 1 {
			room.Open += 3
			cause = b.do(matcher.NewCapacityControl(room)).InputSeq
		}
		var last uint64
		for reason := matcher.Accepted; reason == matcher.Accepted; {
			ev := b.do(order(1, 1, matcher.Buy, 1, 100))
			last, reason = ev.InputSeq, ev.Reason
		}
		why, err := b.explainer().Command(t.Context(), last)
		if err != nil || *why.Reason != "CAPACITY" || *why.Because[0].InputSeq != cause ||
			string(why.Limit.Value) != fmt.Sprint(room.Open) {
			t.Errorf("raise %d: %+v %v", raise, why, err)
		}
	}
}

// TestControlsAreDescribed: a command that names no order says what it set.
func TestControlsAreDescribed(t *testing.T) {
	b := newBook(t)
	one := matcher.LimitsChange{Version: 2, Set: 1 << matcher.LimitOrderNotional}
	one.Values[matcher.LimitOrderNotional] = 5_500_000
	own := matcher.LimitsChange{Version: 3, ForAccount: true, AccountID: 2,
		Remove: 1 << matcher.LimitOrderQty}
	made := func(kind matcher.CommandType, fill func(c *matcher.Command)) matcher.Command {
		c := matcher.NewCommand(kind)
		fill(&c)
		return c
	}
	for _, of := range []struct {
		want string
		c    matcher.Command
	}{
		{"AAA at 100.5", made(matcher.PriceTick, func(c *matcher.Command) {
			c.SecurityID, c.PriceTicks = 1, 100_500_000
		})},
		{"policy 1, kill switch on, position 70", made(matcher.PolicyControl, func(c *matcher.Command) {
			c.PriceTicks, c.Side, c.Qty = 1, 1, 70
		})},
		{"limits 2, maxOrderNotional 5.5", one.AppendTo(nil)[0]},
		{"limits 3, maxOrderQuantity of account 2 as for all accounts", own.AppendTo(nil)[0]},
		{"account 2 disabled, by an operator", made(matcher.AccountControl, func(c *matcher.Command) {
			c.AccountID = 2
		})},
		{"room for 1 accounts, 2 securities, 3 contracts", made(matcher.CapacityControl,
			func(c *matcher.Command) { c.AccountID, c.SecurityID, c.Qty = 1, 2, 3 })},
		{"the tokens of a subject revoked", made(matcher.TokenRevoke, func(c *matcher.Command) {
			c.LimitPx = 1
		})},
		{"a snapshot", made(matcher.SnapshotMark, func(*matcher.Command) {})},
	} {
		at := b.do(of.c).InputSeq
		why, err := b.explainer().Command(t.Context(), at)
		if err != nil || !strings.Contains(why.Text, fmt.Sprintf("sequence %d (%s)", at, of.want)) {
			t.Errorf("%s: %+v %v", of.want, why, err)
		}
	}
}

// TestExplanationsAreFew holds every place: another explanation waits, until its caller gives up.
func TestExplanationsAreFew(t *testing.T) {
	b := newBook(t)
	b.do(order(1, 1, matcher.Sell, 10, 101))
	x := b.explainer()
	for range MaxConcurrent {
		x.places <- struct{}{}
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, err := x.Order(ctx, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("without a place: %v", err)
	}
	<-x.places
	if why, err := x.Order(t.Context(), 1); err != nil || why.Decision != "ACCEPTED" {
		t.Errorf("%+v %v", why, err)
	}
	if len(x.places) != MaxConcurrent-1 {
		t.Errorf("%d places are taken", len(x.places))
	}
}
