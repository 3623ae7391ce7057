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
	h, err := asof.New(b.Journal, asof.Options{})
	if err != nil {
		b.t.Fatal(err)
	}
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

// line is one record of the audit.
type line struct {
	Kind            string
	Sequence        uint64
	OrderID         *string
	TradeID         *string
	AccountID       uint32
	Security        *string
	Side            *string
	Quantity        *int64
	Price           *json.Number
	TimestampMillis int64
	RiskReason      *string
}

// px is a price in millionths.
func (l *line) px() int64 {
	r, ok := new(big.Rat).SetString(l.Price.String())
	if !ok {
		panic(*l.Price)
	}
	return new(big.Int).Div(r.Mul(r, big.NewRat(unit, 1)).Num(), r.Denom()).Int64()
}

// audited is what the audit's lines say about the state, folded in the plainest way.
type audited struct {
	orders map[string]*auditedOrder
	cash   map[uint32]int64
	held   map[string]int64 // by account and security
	last   map[string]int64 // price of a security
	at     map[string]int64 // its time
}

type auditedOrder struct {
	account  uint32
	security string
	side     string
	total    int64
	executed int64
	limit    int64
	open     bool
}

func (a *audited) add(l *line) {
	switch l.Kind {
	case "accept":
		o := a.orders[*l.OrderID]
		if o == nil {
			o = &auditedOrder{account: l.AccountID, security: *l.Security, side: *l.Side}
			a.orders[*l.OrderID] = o
		}
		o.total, o.open = *l.Quantity, true
		if l.Price != nil {
			o.limit = l.px()
		}
	case "partial-fill", "fill":
		o := a.orders[*l.OrderID]
		o.executed += *l.Quantity
		o.open = l.Kind == "partial-fill"
	case "cancel":
		a.orders[*l.OrderID].open = false
	case "trade-booked":
		if l.TradeID == nil {
			return
		}
		signed := *l.Quantity
		if *l.Side == "Sell" {
			signed = -signed
		}
		a.held[fmt.Sprint(l.AccountID, *l.Security)] += signed
		a.cash[l.AccountID] += signed * l.px()
		a.last[*l.Security], a.at[*l.Security] = l.px(), l.TimestampMillis
	}
}

// open sums the open orders of an account on a side: their value, and their quantity in a security.
func (a *audited) open(account uint32, side, security, but string) (value, qty int64) {
	for id, o := range a.orders {
		if o.open && o.account == account && o.side == side && id != but {
			left := o.total - o.executed
			value += left * o.limit
			if o.security == security {
				qty += left
			}
		}
	}
	return value, qty
}

// judgedAt is the price that an order is judged at.
func (a *audited) judgedAt(l *line, limits *matcher.Limits) int64 {
	if l.Price == nil {
		last := a.last[*l.Security]
		if l.OrderID == nil { // a market trade
			return last
		}
		if *l.Side == "Buy" {
			last += last * limits.PriceCollarBps / 10_000
		}
		return a.bid(l, last)
	}
	return a.bid(l, l.px())
}

// bid raises the price of a sale to the best bid that it meets.
func (a *audited) bid(l *line, px int64) int64 {
	if *l.Side == "Buy" {
		return px
	}
	best := int64(0)
	for _, o := range a.orders {
		if o.open && o.side == "Buy" && o.security == *l.Security {
			best = max(best, o.limit)
		}
	}
	limit := int64(0)
	if l.Price != nil {
		limit = l.px()
	} else {
		limit = px - px*testGenesis().Limits.PriceCollarBps/10_000
	}
	if best >= limit {
		return max(px, best)
	}
	return px
}

// dearest is the highest price of an account's other open orders on a side.
func (a *audited) dearest(account uint32, side, security, but string) (px int64) {
	for id, o := range a.orders {
		if id != but && o.open && o.account == account && o.side == side && o.security == security {
			px = max(px, o.limit)
		}
	}
	return px
}

// observed is the observed value of a refusal, from the audit alone; nil when it is a word.
func (a *audited) observed(l *line, contract bool) *big.Rat {
	limits := &testGenesis().Limits
	sign := int64(1)
	if l.Side != nil && *l.Side == "Sell" {
		sign = -1
	}
	qty, but := int64(0), ""
	if l.Quantity != nil {
		qty = *l.Quantity
	}
	total := qty
	if l.OrderID != nil && a.orders[*l.OrderID] != nil { // a replace
		but = *l.OrderID
		qty -= a.orders[but].executed
	}
	security := ""
	if l.Security != nil {
		security = *l.Security
	}
	money := func(v *big.Int) *big.Rat { return new(big.Rat).SetFrac(v, big.NewInt(unit)) }
	switch *l.RiskReason {
	case "ORDER_SIZE":
		return big.NewRat(total, 1)
	case "ORDER_NOTIONAL":
		if contract {
			return big.NewRat(total, 1)
		}
		return money(big.NewInt(a.judgedAt(l, limits) * total))
	case "PRICE_STALE":
		return big.NewRat(l.TimestampMillis-a.at[security], 1)
	case "PRICE_COLLAR":
		off := l.px() - a.last[security]
		off = max(off, -off)
		up := new(big.Int).Mul(big.NewInt(off), big.NewInt(10_000*unit))
		up.Add(up, big.NewInt(a.last[security]-1))
		return money(up.Div(up, big.NewInt(a.last[security])))
	case "CREDIT_LIMIT":
		if contract {
			buys, _ := a.open(l.AccountID, "Buy", "", "")
			sells, _ := a.open(l.AccountID, "Sell", "", "")
			return money(big.NewInt(max(a.cash[l.AccountID]+buys, sells-a.cash[l.AccountID]) + total*unit))
		}
		open, _ := a.open(l.AccountID, *l.Side, security, but)
		return money(big.NewInt(sign*a.cash[l.AccountID] + open + a.judgedAt(l, limits)*qty))
	case "POSITION_LIMIT", "CONCENTRATION_LIMIT":
		_, open := a.open(l.AccountID, *l.Side, security, but)
		sum := sign*a.held[fmt.Sprint(l.AccountID, security)] + open + qty
		if *l.RiskReason == "POSITION_LIMIT" {
			return big.NewRat(sum, 1)
		}
		px := a.judgedAt(l, limits)
		if max(sum, -sum)*px <= limits.MaxConcentrationNotional && (*l.Side == "Sell" || l.Price == nil) {
			px = a.dearest(l.AccountID, *l.Side, security, but) // what executes behind it is too much
		}
		return money(big.NewInt(max(sum, -sum) * px))
	case "CAPACITY":
		if contract {
			return big.NewRat(int64(limits.MaxContracts)+1, 1)
		}
		n := int64(1)
		for _, o := range a.orders {
			if o.open {
				n++
			}
		}
		return big.NewRat(n, 1)
	}
	return nil
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
	if _, err := audit.New(b.Journal, asof.Rebuild(testGenesis()).Engine, audit.Options{}).Write(t.Context(),
		1, b.Engine.AppliedSeq(), func(records []byte, _ int) error {
			for text := range bytes.Lines(records) {
				var l line
				if err := json.Unmarshal(text, &l); err != nil {
					return err
				}
				lines = append(lines, l)
			}
			return nil
		}); err != nil {
		t.Fatal(err)
	}
	met := map[string]int{}
	for i := range lines {
		l := &lines[i]
		state.add(l)
		if l.Kind != "reject" || met[*l.RiskReason] > 25 {
			continue
		}
		why, err := x.Command(t.Context(), l.Sequence)
		if err != nil {
			t.Fatal(err)
		}
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

// TestVerdictsOfTheGate: a record that carries the gate's refusal is explained as the gate's, with
// the check when the engine's own checks agree.
func TestVerdictsOfTheGate(t *testing.T) {
	b := newBook(t)
	for _, reason := range []matcher.RiskReason{matcher.NotEntitled, matcher.ControlStateStale,
		matcher.InternalPolicyError, matcher.OrderSize} {
		c := order(1, 1, matcher.Buy, 100, 100)
		c.OrderRef = uint32(reason)
		b.do(c)
	}
	x := b.explainer()
	for at, want := range map[uint64]string{1: "NOT_ENTITLED", 2: "CONTROL_STATE_STALE",
		3: "INTERNAL_POLICY_ERROR", 4: "ORDER_SIZE"} {
		why, err := x.Command(t.Context(), at)
		if err != nil || why.DecidedBy != "gate" || *why.Reason != want ||
			(why.Rule != nil) != (at == 4) || !strings.Contains(why.Text, want) {
			t.Errorf("%d: %+v %v", at, why, err)
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
		why, err := x.Command(t.Context(), at)
		if err != nil {
			t.Fatal(err)
		}
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
		6: `ord-6 (Buy 4 AAA at 92 for account 3) was accepted; it was cancelled: what could not execute` +
			` at once does not rest.`,
		7: `ord-7 (Buy 4 AAA at 95 for account 3) was accepted and rested at the front of its queue;` +
			` it was cancelled: AAA was restricted.`,
		9: `ord-9 (Buy 6 BBB at 95 for account 1) was accepted and rested behind 1 order for 4,` +
			` where it now is behind 1 order for 4; nothing of it has executed.`,
	} {
		why, err := x.Order(t.Context(), number)
		if err != nil {
			t.Fatal(err)
		}
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
	if why, err = x.Command(t.Context(), 9); err != nil || why.OrderID != nil || !why.ForAdmin {
		t.Errorf("%+v %v", why, err)
	}
	var beyond *asof.BeyondError
	if _, err = x.Command(t.Context(), 13); !errors.As(err, &beyond) {
		t.Error(err)
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
