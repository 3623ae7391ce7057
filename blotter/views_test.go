package blotter

import (
	"bytes"
	"slices"
	"testing"

	"posttrade/matcher"
	"posttrade/ring/must"
)

// model holds in maps the data of the views that the engine does not have.
type model struct {
	orders     map[uint32]*OrderRow // every order there ever was
	ids        map[uint32][]byte
	keys       []KeyRow
	contracts  []ContractRow
	accounts   map[uint32]int64 // versions
	securities map[uint32]int64
	sources    [controlSources]SourceMark
}

// control notes a control that came from a source.
func (m *model) control(s ControlSource, c *matcher.Command) {
	now := SourceMark{Mark: c.OrderRef, Watermark: c.PriceTicks}
	if now.Mark != 0 && (now.Mark != m.sources[s].Mark || now.Watermark > m.sources[s].Watermark) {
		m.sources[s] = now
	}
}

func newModel(g *matcher.Genesis) *model {
	m := &model{
		orders: map[uint32]*OrderRow{}, ids: map[uint32][]byte{},
		accounts: map[uint32]int64{}, securities: map[uint32]int64{},
	}
	for _, a := range g.Accounts {
		m.accounts[a.ID] = 0
	}
	return m
}

// first applies the first event of a command.
func (m *model) first(ev *matcher.Event, capacity int) {
	c := ev.Cmd()
	if c.TemplateID != matcher.TemplateCommand || ev.Reason == matcher.Duplicate {
		return
	}
	key := KeyRow{Key: uint64(c.PriceTicks), InputSeq: ev.InputSeq,
		TermsHash: TermsHash(c, clientID(ev.InputSeq)), Ref: uint64(ev.OrderRef),
		Reason: ev.Reason, ByAccount: true, AccountID: c.AccountID}
	switch c.Type {
	case matcher.OrderNew:
		row := &OrderRow{Ref: ev.OrderRef, InputSeq: ev.InputSeq}
		if c.LimitPx <= 0 {
			row.Type = Market
		}
		row.TimeInForce = map[uint16]TimeInForce{
			matcher.FlagIOC: IOC, matcher.FlagFOK: FOK, matcher.FlagPostOnly: PostOnly,
		}[c.Flags]
		m.orders[ev.OrderRef], m.ids[ev.OrderRef] = row, clientID(ev.InputSeq)
	case matcher.OrderReplace:
		if m.orders[c.OrderRef] == nil {
			return
		}
	case matcher.TradeNew:
		key.Kind, key.Ref = matcher.KeyTrade, ev.InputSeq
	case matcher.SwapBook, matcher.SwaptionBook:
		key.Kind, key.Ref = matcher.KeyContract, ev.InputSeq
		m.contract(ev)
	case matcher.AccountControl:
		if ev.Kind == matcher.EventApplied {
			m.accounts[c.AccountID] = c.PriceTicks
			m.control(AccountSource, c)
		}
		return
	case matcher.SecurityControl, matcher.RestrictionControl:
		if ev.Kind == matcher.EventApplied {
			m.securities[c.SecurityID] = c.PriceTicks
			if c.Type == matcher.SecurityControl {
				m.control(SecuritySource, c)
			}
		}
		return
	default:
		return
	}
	if key.Key != 0 {
		m.keys = append(m.keys, key)
		m.keys = m.keys[max(0, len(m.keys)-capacity):]
	}
}

// compare asserts that the views show what the model holds, through their read side.
func (m *model) compare(t *testing.T, v *Views) {
	t.Helper()
	for s, want := range m.sources {
		if got := v.SourceMark(ControlSource(s)); got != want {
			t.Fatalf("source %d is at %+v, want %+v", s, got, want)
		}
	}
	var held []uint32
	for ref, want := range m.orders {
		row, ok := v.Order(ref)
		if !ok {
			continue // Check has verified that the right orders are there
		}
		held = append(held, ref)
		if row.InputSeq != want.InputSeq || row.Type != want.Type ||
			row.TimeInForce != want.TimeInForce ||
			!bytes.Equal(row.ClientID(), m.ids[ref]) {
			t.Fatalf("order %d: %d %v %v %x, want %d %v %v %x", ref, row.InputSeq, row.Type, row.TimeInForce,
				row.ClientID(), want.InputSeq, want.Type, want.TimeInForce, m.ids[ref])
		}
	}
	slices.Sort(held)
	rows, next := v.Orders(OrderFilter{}, 0, 1<<20, nil)
	listed := make([]uint32, len(rows))
	for i := range rows {
		listed[i] = rows[i].Ref
	}
	if !slices.Equal(listed, held) || next != 0 {
		t.Fatalf("listed %v and then %d, want %v", listed, next, held)
	}
	for n := range uint64(82 * 4) {
		key, account := n/4, []uint32{7, 3, 900_001, 12}[n%4]
		row, ok := v.Key(matcher.KeyOrder, account, key)
		trade, tradeOK := v.Key(matcher.KeyTrade, account, key)
		of := func(contract bool) int {
			return slices.IndexFunc(m.keys, func(k KeyRow) bool {
				return k.Key == key && k.AccountID == account && (k.Kind == matcher.KeyContract) == contract
			})
		}
		at := of(false)
		if ok != (at >= 0) || tradeOK != ok || trade != row {
			t.Fatalf("key %d: %v %+v and as a trade %v %+v, want %d", key, ok, row, tradeOK, trade, at)
		}
		row.next = 0
		if ok && row != m.keys[at] {
			t.Fatalf("key %d is %+v, want %+v", key, row, m.keys[at])
		}
		row, ok = v.Key(matcher.KeyContract, account, key)
		row.next = 0
		if at = of(true); ok != (at >= 0) || ok && row != m.keys[at] {
			t.Fatalf("key %d of a contract is %v %+v, want number %d of %+v", key, ok, row, at, m.keys)
		}
	}
	m.compareContracts(t, v)
	for _, a := range v.Accounts() {
		if version, ok := m.accounts[a.ID]; !ok || a.Version != version {
			t.Fatalf("account %+v, want version %d (%v)", a, version, ok)
		}
	}
	for _, s := range v.Securities() {
		if s.Version != m.securities[s.ID] {
			t.Fatalf("security %+v, want version %d", s, m.securities[s.ID])
		}
	}
}

func TestViewsMatchEngineAndModel(t *testing.T) {
	for _, spread := range []int64{12, 4000} {
		g := smallGenesis()
		s, v, m := newSource(t, g, 20_260_101), newTestViews(t, g), newModel(g)
		s.spread = spread
		seen := map[matcher.EventKind]int{}
		reasons := map[matcher.RiskReason]int{}
		steps := 20_000
		if testing.Short() {
			steps = 3000
		}
		for step := range steps {
			events := s.step()
			for i := range events {
				seen[events[i].Kind]++
				reasons[events[i].Reason]++
			}
			m.first(&events[0], g.Limits.IdempotencyCapacity)
			observe(v, events)
			if step%16 != 0 && step > 1000 {
				continue
			}
			if err := v.check(); err != nil {
				t.Fatalf("spread %d, step %d: %v", spread, step, err)
			}
			if err := v.Check(s.engine); err != nil {
				t.Fatalf("spread %d, step %d: %v", spread, step, err)
			}
			if step%64 == 0 {
				m.compare(t, v)
			}
		}
		for kind := matcher.EventAccepted; kind <= matcher.EventContract; kind++ {
			if seen[kind] == 0 {
				t.Errorf("no event of kind %d in %v: the stream is too tame", kind, seen)
			}
		}
		for _, reason := range []matcher.RiskReason{matcher.Duplicate, matcher.Capacity,
			matcher.SelfTradePrevented, matcher.Restricted} {
			if reasons[reason] == 0 {
				t.Errorf("reason %v never met: %v", reason, reasons)
			}
		}
	}
}

func TestViewsWithoutRetainedOrdersKeepOpenOnesOnly(t *testing.T) {
	g := smallGenesis()
	g.Limits.RetainedOrders = 0
	s, v := newSource(t, g, 4), newTestViews(t, g)
	for range 4000 {
		observe(v, s.step())
	}
	must.OK(t, v.check())
	must.OK(t, v.Check(s.engine))
	rows, _ := v.Orders(OrderFilter{}, 0, 1000, nil)
	for i := range rows {
		if !rows[i].Open() {
			t.Errorf("order %d is %v and still there", rows[i].Ref, rows[i].Status)
		}
	}
}

func TestFilledTakerIsRetainedAfterItsMakers(t *testing.T) {
	g := smallGenesis()
	s, v := newSource(t, g, 1), newTestViews(t, g)
	order := func(account uint32, side matcher.Side, qty int32) {
		c := matcher.NewCommand(matcher.OrderNew)
		c.AccountID, c.SecurityID, c.Side, c.Qty, c.LimitPx = account, 1, side, qty, 10_000_000
		observe(v, s.apply(c))
	}
	order(7, matcher.Sell, 5)
	order(7, matcher.Sell, 5)
	order(3, matcher.Buy, 10)
	var refs []uint32
	for i := range v.orders.kept {
		refs = append(refs, v.orders.slots[v.orders.retainedAt(i)].row.Ref)
	}
	if !slices.Equal(refs, []uint32{1, 2, 3}) {
		t.Errorf("retained %v, want makers 1 and 2 before taker 3", refs)
	}
	if err := v.Check(s.engine); err != nil {
		t.Error(err)
	}
}

func TestNewViewsRefusesUnusableLimits(t *testing.T) {
	for name, change := range map[string]func(l *matcher.Limits){
		"no accounts":             func(l *matcher.Limits) { l.MaxAccounts = 2 },
		"no securities":           func(l *matcher.Limits) { l.MaxSecurities = 0 },
		"no orders":               func(l *matcher.Limits) { l.MaxOpenOrders = 0 },
		"fewer than no retained":  func(l *matcher.Limits) { l.RetainedOrders = -1 },
		"no keys":                 func(l *matcher.Limits) { l.IdempotencyCapacity = 0 },
		"fewer than no contracts": func(l *matcher.Limits) { l.MaxContracts = -1 },
		"too many contracts":      func(l *matcher.Limits) { l.MaxContracts = 1<<28 + 1 },
		"too many orders":         func(l *matcher.Limits) { l.MaxOpenOrders = 1 << 40 },
	} {
		g := smallGenesis()
		change(&g.Limits)
		if v, err := NewViews(g); err == nil {
			v.Close()
			t.Errorf("%s: no error", name)
		}
	}
	g := smallGenesis()
	g.Limits.MaxAccounts, g.Limits.MaxSecurities = 1<<28, 1<<24-1
	if v, err := NewViews(g); err == nil {
		v.Close()
		t.Error("more positions than there is memory for: no error")
	}
}

func TestTermsHashTellsTermsApart(t *testing.T) {
	base := matcher.NewCommand(matcher.OrderNew)
	base.AccountID, base.SecurityID, base.Qty, base.LimitPx, base.PriceTicks = 7, 1, 10, 5_000_000, 42
	replace := base
	replace.Type, replace.OrderRef = matcher.OrderReplace, 3
	seen := map[uint64]string{TermsHash(&base, nil): "base", TermsHash(&replace, nil): "replace"}
	for name, change := range map[string]func(c *matcher.Command){
		"type":     func(c *matcher.Command) { c.Type = matcher.TradeNew },
		"account":  func(c *matcher.Command) { c.AccountID++ },
		"security": func(c *matcher.Command) { c.SecurityID++ },
		"side":     func(c *matcher.Command) { c.Side = matcher.Sell },
		"qty":      func(c *matcher.Command) { c.Qty++ },
		"limit":    func(c *matcher.Command) { c.LimitPx += 1000 },
		"flags":    func(c *matcher.Command) { c.Flags = matcher.FlagIOC },
	} {
		c := base
		change(&c)
		if other, ok := seen[TermsHash(&c, nil)]; ok {
			t.Errorf("%s does not tell terms apart from %s", name, other)
		}
		seen[TermsHash(&c, nil)] = name
	}
	again := base
	again.OrderRef, again.PriceTicks, again.EventTimeMillis, again.InputSeq = 8, 1, 99, 12
	if TermsHash(&again, nil) != TermsHash(&base, nil) {
		t.Error("the gate's verdict, the key, the time or the sequence is part of the terms")
	}
	terms := matcher.ContractTerms{
		AccountID: 7, Notional: 10, FixedRate: 5_000_000, Effective: 20_000, Maturity: 21_000,
		Convention: 1,
		Swaption:   true, Expiry: 19_000, Style: matcher.Bermudan,
	}
	booking := terms.Command()
	seen[TermsHash(&booking, nil)] = "a contract"
	for name, change := range map[string]func(t *matcher.ContractTerms){
		"a contract's account": func(t *matcher.ContractTerms) { t.AccountID++ },
		"direction":            func(t *matcher.ContractTerms) { t.Side++ },
		"notional":             func(t *matcher.ContractTerms) { t.Notional++ },
		"rate":                 func(t *matcher.ContractTerms) { t.FixedRate++ },
		"effective":            func(t *matcher.ContractTerms) { t.Effective++ },
		"maturity":             func(t *matcher.ContractTerms) { t.Maturity++ },
		"convention":           func(t *matcher.ContractTerms) { t.Convention++ },
		"product":              func(t *matcher.ContractTerms) { t.Swaption = false },
		"expiry":               func(t *matcher.ContractTerms) { t.Expiry++ },
		"style":                func(t *matcher.ContractTerms) { t.Style++ },
	} {
		changed := terms
		change(&changed)
		c := changed.Command()
		if other, ok := seen[TermsHash(&c, nil)]; ok {
			t.Errorf("%s does not tell terms apart from %s", name, other)
		}
		seen[TermsHash(&c, nil)] = name
	}
	later := booking
	later.PriceTicks, later.EventTimeMillis, later.InputSeq, later.LeaderEpoch = 1, 99, 12, 3
	if TermsHash(&later, nil) != TermsHash(&booking, nil) {
		t.Error("the key, the time, the sequence or the epoch is part of a contract's terms")
	}
	other := replace
	other.OrderRef++
	if TermsHash(&other, nil) == TermsHash(&replace, nil) {
		t.Error("replaces of two orders have the same terms")
	}
}

func TestNamesOfTypesAndTimesInForce(t *testing.T) {
	got := []string{Limit.String(), Market.String(), GTC.String(), IOC.String(), FOK.String(),
		PostOnly.String(), TimeInForce(9).String()}
	want := []string{"LIMIT", "MARKET", "GTC", "IOC", "FOK", "POST_ONLY", "UNKNOWN"}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
