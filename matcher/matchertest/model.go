package matchertest

import (
	"math/big"
	"slices"

	"posttrade/matcher"
)

// Model is a second engine in an obviously correct form: slices that are scanned whole, sums that
// are computed again for every question, big integers. It shares the types of the records with the
// engine and nothing else.
//
// It knows no eras, no batches and no snapshots, and raises only the room for orders. One goroutine
// at a time may use it, as an engine.
type Model struct {
	limits matcher.Limits
	// The grid of prices x 1e6.
	tick int64
	// The last InputSeq and TradeSeq, and the next order's number.
	seq        uint64
	tradeSeq   uint64
	nextRef    uint32
	policy     int64 // its version
	kill       bool
	all        matcher.RiskLimits
	own        map[uint32]map[matcher.LimitID]int64
	parts      []matcher.Command // of a change of limits that is not whole yet
	accounts   map[uint32]*account
	securities []*security
	positions  map[[2]uint32]*position
	// The order of these lists is a part of what is compared: it decides matches and what is
	// forgotten.
	open      []*order // by priority
	retained  []*order // oldest first
	keys      []key    // oldest first
	contracts []matcher.ContractInfo

	// Of the command being decided.
	cmd    matcher.Command
	newest bool // only a rule of version 3 decides it so
	said   []matcher.Event
}

// account has no reservation: the sums over its open orders are made for every question.
type account struct {
	enabled  bool
	executed *big.Int
}

// security has no book: its orders are those of Model.open.
type security struct {
	ticker                             string
	known, enabled, halted, restricted bool
	lastPx, lastTime, lastTrade        int64
	// the quantity that market trades and force fills put into positions
	oneSided int64
}

// position is a holding: negative = short, and the average cost x 1e6.
type position struct{ qty, avg int64 }

// order has no status: it follows from the rest.
type order struct {
	ref, account, security uint32
	side                   matcher.Side
	qty, leaves            int32
	limit                  int64
	lastPx                 int64
	lastQty                int32
	created, updated       int64
	reason                 matcher.RiskReason
	canceled, refused      bool
}

// info is the order as the engine answers questions about it.
func (o *order) info() matcher.OrderInfo {
	return matcher.OrderInfo{
		Ref: o.ref, AccountID: o.account, SecurityID: o.security, Side: o.side, Status: o.status(),
		Reason: o.reason,
		Qty:    o.qty, Leaves: o.leaves, LimitPx: o.limit, LastPx: o.lastPx, LastQty: o.lastQty,
		CreatedMillis: o.created, UpdatedMillis: o.updated,
	}
}

// status follows from what is left. A refusal and a cancel are final whatever was executed.
func (o *order) status() matcher.OrderStatus {
	switch {
	case o.refused:
		return matcher.StatusRejected
	case o.canceled:
		return matcher.StatusCanceled
	}
	switch o.leaves {
	case o.qty:
		return matcher.StatusNew
	case 0:
		return matcher.StatusFilled
	}
	return matcher.StatusPartiallyFilled
}

// key is a remembered key and the first decision on it.
type key struct {
	key, ref uint64
	kind     matcher.IdempotencyKind
	reason   matcher.RiskReason
	account  uint32
	named    bool // by a record that names the account of the key
}

// New returns the model of a journal with a genesis record, in the state before the first command.
// The record is not checked: the engine's New has taken it.
func New(g *matcher.Genesis) *Model {
	m := &Model{
		limits: g.Limits, tick: g.TickPx, nextRef: 1,
		all: g.Limits.RiskLimits(), own: map[uint32]map[matcher.LimitID]int64{},
		accounts:  map[uint32]*account{},
		positions: map[[2]uint32]*position{},
	}
	for _, a := range g.Accounts {
		m.accounts[a.ID] = &account{enabled: a.Enabled, executed: new(big.Int)}
	}
	for _, s := range g.Securities {
		m.securities = append(m.securities, &security{
			ticker: s.Ticker, known: true, enabled: s.Enabled, halted: s.Halted,
		})
	}
	return m
}

// Apply returns the events of one command, which it decides under the next sequence. The events are
// the caller's. A SNAPSHOT is decided, notes and revocations are not: they fall into the default of
// command, the bookings.
func (m *Model) Apply(c matcher.Command) []matcher.Event {
	m.seq++
	m.said, m.newest = nil, false
	m.cmd = c
	switch {
	case c.TemplateID == matcher.TemplateSymbolRegister:
		m.symbol()
	case c.TemplateID == matcher.TemplateRiskExtract:
		m.say(matcher.Event{Kind: matcher.EventApplied})
	default:
		m.command()
	}
	m.said[len(m.said)-1].Flags |= matcher.EventLast
	return m.said
}

// command decides a command of template 1. applied is what most controls say when nothing is wrong.
func (m *Model) command() {
	c := &m.cmd
	applied := matcher.Event{
		Kind: matcher.EventApplied, Side: c.Side, OrderRef: c.OrderRef,
		AccountID: c.AccountID, SecurityID: c.SecurityID, Qty: c.Qty,
	}
	switch c.Type {
	case matcher.OrderNew:
		m.orderNew()
	case matcher.OrderCancel:
		m.orderCancel()
	case matcher.OrderReplace:
		m.replace()
	case matcher.ForceFill:
		m.forceFill(applied)
	case matcher.PriceTick:
		m.priceTick(applied)
	case matcher.TradeNew:
		m.trade()
	case matcher.AccountControl:
		m.accountControl(applied)
	case matcher.SecurityControl:
		m.securityControl(applied)
	case matcher.PolicyControl:
		m.policyControl(applied)
	case matcher.LimitsControl:
		m.limitsPart()
	case matcher.CapacityControl:
		m.capacityControl()
	case matcher.RestrictionControl:
		m.restrictionControl(applied)
	case matcher.SnapshotMark:
		m.say(matcher.Event{Kind: matcher.EventApplied})
	default:
		m.book()
	}
}

// symbol registers a ticker. One that is registered already is accepted again with its number.
func (m *Model) symbol() {
	ticker, err := m.cmd.Symbol()
	if err != nil {
		m.say(matcher.Event{Kind: matcher.EventRejected, Reason: matcher.Invalid})
		return
	}
	i := slices.IndexFunc(m.securities, func(s *security) bool { return s.ticker == ticker })
	if i < 0 && len(m.securities) == m.limits.MaxSecurities {
		m.say(matcher.Event{Kind: matcher.EventRejected, Reason: matcher.Capacity})
		return
	}
	if i < 0 {
		i = len(m.securities)
		m.securities = append(m.securities, &security{ticker: ticker})
	}
	m.say(matcher.Event{Kind: matcher.EventApplied, SecurityID: uint32(i + 1)})
}

// say adds an event; the first event carries the command, with the version whose rules have decided
// it. The result points into the list and is valid until the next say.
func (m *Model) say(ev matcher.Event) *matcher.Event {
	ev.InputSeq = m.seq
	if m.cmd.TemplateID == matcher.TemplateCommand {
		ev.TimeMillis = m.cmd.EventTimeMillis
	}
	if len(m.said) == 0 {
		ev.Flags |= matcher.EventFirst
		ev.Ref = m.cmd.InputSeq
		*ev.Cmd() = m.cmd
		ev.Cmd().InputSeq = m.seq
		if m.rules() == 3 && !m.newest {
			ev.Cmd().Version = 2
		}
	}
	m.said = append(m.said, ev)
	return &m.said[len(m.said)-1]
}

// reject says that the command changed nothing, with its own terms as they came.
func (m *Model) reject(reason matcher.RiskReason) {
	c := &m.cmd
	m.say(matcher.Event{
		Kind: matcher.EventRejected, Side: c.Side, Reason: reason, Px: c.LimitPx, OrderRef: c.OrderRef,
		AccountID: c.AccountID, SecurityID: c.SecurityID, Qty: c.Qty,
	})
}

// orderNew decides an ORDER_NEW. An order that is refused has a number too, and is retained. An
// order that must fill whole at once is cancelled before it trades when others do not offer enough.
func (m *Model) orderNew() {
	if m.known() {
		return
	}
	c := &m.cmd
	o := &order{
		ref: m.nextRef, account: c.AccountID, security: c.SecurityID, side: c.Side,
		qty: c.Qty, leaves: c.Qty, limit: max(c.LimitPx, 0),
		created: c.EventTimeMillis, updated: c.EventTimeMillis,
	}
	m.nextRef++
	reason := m.judge()
	m.remember(matcher.KeyOrder, uint64(o.ref), reason)
	ev := matcher.Event{
		Kind: matcher.EventAccepted, Side: o.side, Px: o.limit, OrderRef: o.ref,
		AccountID: o.account, SecurityID: o.security, Qty: o.qty,
	}
	if reason != matcher.Accepted {
		ev.Kind, ev.Reason, ev.Status = matcher.EventRejected, reason, matcher.StatusRejected
		m.say(ev)
		o.refused, o.reason = true, reason
		m.retain(o)
		return
	}
	rests := o.limit != 0 && c.Flags&(matcher.FlagIOC|matcher.FlagFOK) == 0
	if rests && !crosses(o.side, o.limit, m.best(o.security, o.side)) {
		ev.Flags = matcher.EventRests
		m.say(ev)
		m.open = append(m.open, o)
		return
	}
	m.say(ev)
	bound, cut := m.bound()
	if c.Flags&matcher.FlagFOK != 0 && m.available(o, bound) < int64(o.qty) {
		if m.available(o, 0) < int64(o.qty) {
			cut = matcher.Accepted
		}
		m.canceled(o, cut)
		return
	}
	m.match(o, bound, cut, rests)
}

// match trades an order that is not on the book up to bound, and rests or cancels its leaves. The
// reason of a cancel is cut if a resting order still offers something. Open orders are by priority,
// so the first one at the best price is the oldest.
func (m *Model) match(o *order, bound int64, cut matcher.RiskReason, rests bool) {
	for o.leaves > 0 {
		best := m.best(o.security, o.side)
		if !crosses(o.side, bound, best) {
			break
		}
		i := slices.IndexFunc(m.open, func(x *order) bool {
			return x.security == o.security && x.side != o.side && x.limit == best
		})
		maker := m.open[i]
		if maker.account == o.account {
			m.canceled(maker, matcher.SelfTradePrevented)
			continue
		}
		qty := min(o.leaves, maker.leaves)
		o.leaves -= qty
		maker.leaves -= qty
		if maker.leaves == 0 {
			m.remove(maker)
		}
		m.fill(o, best, qty, maker.ref, matcher.EventAggressor)
		m.fill(maker, best, qty, o.ref, 0)
		if maker.leaves == 0 {
			m.retain(maker)
		}
	}
	switch {
	case o.leaves == 0:
		m.retain(o)
	case rests:
		ev := m.say(matcher.Event{
			Kind: matcher.EventRested, Side: o.side, Status: o.status(), Px: o.limit, OrderRef: o.ref,
			AccountID: o.account, SecurityID: o.security, Qty: o.leaves,
		})
		ev.Detail().Leaves, ev.Detail().LimitPx = o.leaves, o.limit
		m.open = append(m.open, o)
	case m.best(o.security, o.side) == 0:
		m.canceled(o, matcher.Accepted)
	default:
		m.canceled(o, cut)
	}
}

// fill books an execution and adds its event. The caller has reduced the order's leaves, so the
// status is that after the fill.
func (m *Model) fill(o *order, px int64, qty int32, counter uint32, flags uint16) {
	m.tradeSeq++
	p := m.position(o.account, o.security)
	p.trade(signed(o.side, qty), px)
	cash := big.NewInt(px)
	m.accounts[o.account].executed.Add(m.accounts[o.account].executed,
		cash.Mul(cash, big.NewInt(signed(o.side, qty))))
	s := m.securities[o.security-1]
	late := m.late(s)
	if s.lastTrade = px; late == 0 {
		s.lastPx, s.lastTime = px, m.cmd.EventTimeMillis
	}
	o.lastPx, o.lastQty, o.updated = px, qty, m.cmd.EventTimeMillis
	ev := m.say(matcher.Event{
		Kind: matcher.EventFilled, Side: o.side, Status: o.status(), Flags: flags | late, Px: px,
		TradeSeq: m.tradeSeq,
		OrderRef: o.ref, AccountID: o.account, SecurityID: o.security, Qty: qty,
	})
	*ev.Detail() = matcher.Detail{
		Leaves: o.leaves, CounterRef: counter, PositionQty: p.qty, AverageCost: p.avg, LimitPx: o.limit,
	}
}

// trade decides a TRADE_NEW: it executes whole at the last price, against no order, so it counts
// for the sum of the positions.
func (m *Model) trade() {
	if m.known() {
		return
	}
	c := &m.cmd
	reason := m.judgeTrade()
	m.remember(matcher.KeyTrade, m.seq, reason)
	ev := matcher.Event{
		Kind: matcher.EventBooked, Side: c.Side, AccountID: c.AccountID, SecurityID: c.SecurityID,
		Qty: c.Qty,
	}
	if reason != matcher.Accepted {
		ev.Kind, ev.Reason = matcher.EventRejected, reason
		m.say(ev)
		return
	}
	s := m.security(c.SecurityID)
	ev.Px = s.lastPx
	m.say(ev)
	s.oneSided += signed(c.Side, c.Qty)
	o := &order{account: c.AccountID, security: c.SecurityID, side: c.Side, qty: c.Qty}
	m.fill(o, s.lastPx, c.Qty, 0, matcher.EventMarket)
}

// replace decides an ORDER_REPLACE. An order keeps its place only when its price stays and its
// quantity falls; otherwise it leaves the book and comes as a new one, so it can execute.
func (m *Model) replace() {
	if m.known() {
		return
	}
	c := &m.cmd
	o := m.find(c)
	if o != nil && (o.security != c.SecurityID || o.side != c.Side) {
		o = nil
	}
	reason := matcher.Invalid
	if o != nil {
		reason = m.judgeReplace(o)
	}
	if c.OrderRef > 0 && c.OrderRef < m.nextRef {
		m.remember(matcher.KeyOrder, uint64(c.OrderRef), reason)
	}
	if reason != matcher.Accepted {
		m.reject(reason)
		return
	}
	filled := o.qty - o.leaves
	keeps := c.LimitPx == o.limit && c.Qty < o.qty
	o.qty, o.leaves, o.limit, o.updated = c.Qty, c.Qty-filled, c.LimitPx, c.EventTimeMillis
	ev := matcher.Event{
		Kind: matcher.EventReplaced, Side: o.side, Status: o.status(), Px: o.limit, OrderRef: o.ref,
		AccountID: o.account, SecurityID: o.security, Qty: o.qty,
	}
	if keeps {
		ev.Flags = matcher.EventKeptPlace | matcher.EventRests
		m.say(ev)
		return
	}
	m.remove(o)
	if crosses(o.side, o.limit, m.best(o.security, o.side)) {
		m.say(ev)
		m.match(o, o.limit, matcher.Accepted, true)
		return
	}
	ev.Flags = matcher.EventRests
	m.say(ev)
	m.open = append(m.open, o)
}
