//perf:hot

package gate

import (
	"math/bits"
	"sync/atomic"

	"posttrade/matcher"
)

// cacheLine separates words with different writers: two lines, as in package ring.
const cacheLine = 128

// Gate is the screening image. writers.mu serialises its writers, and writers.prices those of
// prices; all readers may run at any time, on any goroutine.
type Gate struct {
	_      [cacheLine]byte
	policy policy
	_      [cacheLine]byte

	// The tables move to larger ones when the engine's capacities rise. A reader uses one of them from
	// beginning to end, and sees the state from when it began.
	tables atomic.Pointer[tables]

	revoked atomic.Pointer[subjects] // whose tokens are refused; never changed, only replaced

	writers *writers
}

// tables are the accounts and securities, and the room for more. The slices never change; their
// rows do, by atomic stores, and names before the entry that leads there.
//
// Both look-ups are open addressing: at most half the slots are ever taken, so a probe always meets
// an empty one.
type tables struct {
	accounts []accountRow // open addressing, at most half full
	// Of accounts with accountBounded, in the same places as accounts; of others it means nothing.
	own        []ownLimits
	shift      uint       // 32 - log2(len(accounts))
	securities []security // by id; 0 is never one
	names      []string   // by id; written before the entry of tickers that leads there
	// The look-up of tickers: hash of the ticker in the upper half, id in the lower; 0 is empty.
	tickers []atomic.Uint64
}

// policy is what every order is judged by. Writers: SetRiskLimits, SetTick, SetPolicy, Observe.
type policy struct {
	// 1 when every source is ready. Writers: SetSource, SetReady.
	ready   atomic.Uint32
	kill    atomic.Uint32
	tickPx  atomic.Int64
	version atomic.Int64
	limits  atomic.Pointer[matcher.RiskLimits] // of all accounts; never changed, only replaced
}

// accountRow is one account. A row is taken once and never released. One load of word tells a
// reader all that it needs; version is for the Snapshot.
type accountRow struct {
	word    atomic.Uint64 // id, accountTaken, accountEnabled
	version atomic.Int64
}

// ownLimits are the limits that hold for an account with some of its own: never changed, only
// replaced.
type ownLimits = atomic.Pointer[matcher.RiskLimits]

// The upper half of accountRow.word. accountTaken distinguishes account 0 from an empty row.
const (
	accountTaken   = 1 << 32
	accountEnabled = 1 << 33
	accountByHand  = 1 << 34 // an operator has set accountEnabled
	accountBounded = 1 << 35 // it has limits of its own
)

// security is one security, on its own line.
//
// The price lies in one of two cells, which the lowest bit of stamp selects. The writer fills the
// other cell and then advances stamp. A reader that finds stamp unchanged has read a whole cell.
type security struct {
	flags   atomic.Uint32
	byHand  atomic.Uint32 // securityEnabled, securityHalted: an operator has set it
	version atomic.Int64
	stamp   atomic.Uint64 // number of prices so far; 0 = none yet
	cells   [2]priceCell
	_       [8]byte
}

// The bits of security.flags.
const (
	securityRegistered uint32 = 1 << 0 // the ticker is published
	securityKnown      uint32 = 1 << 1 // a control has made it known to trading
	securityEnabled    uint32 = 1 << 2
	securityHalted     uint32 = 1 << 3
	securityRestricted uint32 = 1 << 4

	securityTradable = securityRegistered | securityKnown | securityEnabled
)

// Ready reports that every source is ready: orders may be admitted. It costs one load. Cancels do
// not need it (package admission).
func (g *Gate) Ready() bool { return g.policy.ready.Load() == 1 }

// Screen judges an ORDER_NEW, TRADE_NEW, ORDER_REPLACE or an OTC booking in the engine's order of
// checks. It returns the first reason against the command, or Accepted. Any other command passes.
// The caller checks Ready before.
//
// The command's event time is the clock for the age of prices. No allocation, no lock; under 50 ns.
// Any goroutine.
//
// An accepted command can still be refused by the engine, which knows more; a refused one could
// have been accepted only if the state has changed meanwhile.
func (g *Gate) Screen(c *matcher.Command) matcher.RiskReason {
	if c.TemplateID != matcher.TemplateCommand {
		return matcher.Accepted
	}
	booking := c.Type == matcher.SwapBook || c.Type == matcher.SwaptionBook
	switch {
	case c.Type != matcher.OrderNew && c.Type != matcher.TradeNew && c.Type != matcher.OrderReplace &&
		!booking:
		return matcher.Accepted
	case g.policy.kill.Load() != 0:
		return matcher.KillSwitch
	}
	t := g.tables.Load()
	account, at := t.account(c.AccountID)
	if account == 0 {
		return matcher.UnknownAccount
	}
	if account&accountEnabled == 0 {
		return matcher.AccountDisabled
	}
	limits := g.policy.limits.Load()
	if account&accountBounded != 0 {
		limits = t.own[at].Load()
	}
	if booking {
		return screenBooking(c, limits)
	}
	if c.SecurityID == 0 || uint64(c.SecurityID) >= uint64(len(t.securities)) {
		return matcher.UnknownSecurity
	}
	s := &t.securities[c.SecurityID]
	if flags := s.flags.Load(); flags != securityTradable {
		switch {
		case flags&securityKnown == 0:
			return matcher.UnknownSecurity
		case flags == securityTradable|securityRestricted:
			return matcher.Restricted
		}
		return matcher.SecurityDisabled
	}
	market := c.Type == matcher.TradeNew || c.Type == matcher.OrderNew && c.LimitPx <= 0
	if !g.wellFormed(c, market) {
		return matcher.Invalid
	}
	if int64(c.Qty) > limits[matcher.LimitOrderQty] {
		return matcher.OrderSize
	}
	px := c.LimitPx
	if last, time, known := s.price(); market {
		switch {
		case !known && (c.Type == matcher.OrderNew || s.stamp.Load() != 0):
			return matcher.Accepted // the book may price it, and the engine will judge it
		case !known:
			return matcher.PriceMissing
		case limits.Stale(c.EventTimeMillis, time):
			return matcher.PriceStale
		}
		if px = last; c.Type == matcher.OrderNew && c.Side == matcher.Buy {
			px += limits.CollarOff(last) // the highest price that it executes at
		}
	} else if known && limits.BeyondCollar(px, last) {
		return matcher.PriceCollar
	}
	// A product that overflowed 64 bits is beyond any limit.
	hi, lo := bits.Mul64(uint64(px), uint64(c.Qty))
	if hi != 0 || lo > uint64(limits[matcher.LimitOrderNotional]) {
		return matcher.OrderNotional
	}
	return matcher.Accepted
}

// screenBooking judges the terms and the notional of an OTC booking, which has no security and no
// price. Credit and the number of contracts are the engine's to judge.
func screenBooking(c *matcher.Command, limits *matcher.RiskLimits) matcher.RiskReason {
	terms, _ := c.ContractTerms()
	if !terms.Representable() || c.Flags&^matcher.FlagShadow != 0 {
		return matcher.Invalid
	}
	if int64(terms.Notional)*matcher.PriceScale > limits[matcher.LimitOrderNotional] {
		return matcher.OrderNotional
	}
	return matcher.Accepted
}

// wellFormed reports whether quantity, side, flags and limit can belong together: the rules of the
// engine for what it answers with INVALID, but for the book and the order that a replace names.
func (g *Gate) wellFormed(c *matcher.Command, market bool) bool {
	if c.Qty <= 0 || c.Side > matcher.Sell {
		return false
	}
	force := c.Flags & (matcher.FlagIOC | matcher.FlagFOK | matcher.FlagPostOnly)
	switch c.Type {
	case matcher.TradeNew:
		return true
	case matcher.OrderReplace:
		if c.LimitPx <= 0 || force&^matcher.FlagPostOnly != 0 {
			return false
		}
	default:
		if !matcher.Coherent(c.Flags, market) {
			return false
		}
	}
	if market {
		return true
	}
	const usual = 1000 // a constant divisor is a multiplication
	tick := g.policy.tickPx.Load()
	if tick == usual {
		return c.LimitPx%usual == 0
	}
	return c.LimitPx%tick == 0
}

// home is the place at which the search for an account begins.
func (t *tables) home(id uint32) uint32 { return id * 2654435769 >> t.shift }

// account returns the word of an account and its place, 0 if the account is unknown. The place is
// also that of its own limits.
func (t *tables) account(id uint32) (word uint64, place uint32) {
	mask := uint32(len(t.accounts) - 1)
	for at := t.home(id); ; at++ {
		word := t.accounts[at&mask].word.Load()
		if word == 0 || uint32(word) == id {
			return word, at & mask
		}
	}
}

// AccountKnown reports whether an account is known, enabled or not.
func (g *Gate) AccountKnown(id uint32) bool {
	word, _ := g.tables.Load().account(id)
	return word != 0
}

// Security returns the id of a ticker, which must match exactly. The security may be unknown to
// trading. Any goroutine; no allocation.
func (g *Gate) Security(ticker []byte) (id uint32, ok bool) { return g.tables.Load().find(ticker) }

// find is Security.
func (t *tables) find(ticker []byte) (id uint32, ok bool) {
	hash := hashTicker(ticker)
	mask := uint32(len(t.tickers) - 1)
	for at := hash; ; at++ {
		entry := t.tickers[at&mask].Load()
		if entry == 0 {
			return 0, false
		}
		if id = uint32(entry); uint32(entry>>32) == hash && t.names[id] == string(ticker) {
			return id, true
		}
	}
}

// Ticker returns the name of a security, "" if no security has that id. The name is read only after
// the flag that publishes it. Any goroutine; no allocation.
func (g *Gate) Ticker(id uint32) string {
	t := g.tables.Load()
	if uint64(id) >= uint64(len(t.securities)) ||
		t.securities[id].flags.Load()&securityRegistered == 0 {
		return ""
	}
	return t.names[id]
}

// hashTicker is 32-bit FNV-1a. The tables are the gate's own, so the hash need not be that of the
// engine.
func hashTicker[T string | []byte](ticker T) uint32 {
	h := uint32(2166136261)
	for i := range len(ticker) {
		h = (h ^ uint32(ticker[i])) * 16777619
	}
	return h
}
