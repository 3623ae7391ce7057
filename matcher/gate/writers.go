package gate

import (
	"errors"
	"fmt"
	"math/bits"
	"sync"
	"sync/atomic"

	"posttrade/matcher"
)

// Errors of the writers; test them by errors.Is.
var (
	ErrCapacity = errors.New("table is full")
	ErrSecurity = errors.New("not a security of this gate")
	ErrTicker   = errors.New("ticker and id belong to others")
	ErrAccount  = errors.New("not an account of this gate")
	ErrSource   = errors.New("unknown source")
	ErrLimit    = errors.New("limit is out of range")
)

// writers is the state that only writers touch.
type writers struct {
	mu       sync.Mutex // held by every writer but those of prices, and by Snapshot
	accounts int
	limit    int // of accounts
	tickers  int // registered
	sources  [sourceCount]Source
	own      map[uint32]ownRow
	missed   atomic.Uint64
	late     atomic.Uint64

	// A price comes with most trades, and its writer must not wait for a Snapshot.
	prices   sync.Mutex // every writer of prices holds it, for an instant; taken after mu
	observed uint64     // the last command that changed anything
	priced   []bool     // by security: an event has brought its price
}

// advance records that a command has changed something. It returns false for a command before the
// last one that did. The caller holds prices.
func (w *writers) advance(inputSeq uint64) bool {
	if inputSeq < w.observed {
		return false
	}
	w.observed = inputSeq
	return true
}

// New returns an empty gate that is not ready and has limits of 0: it admits nothing. The
// capacities are those of the engine behind it, at least 1 each.
func New(maxAccounts, maxSecurities int) *Gate {
	maxAccounts, maxSecurities = max(maxAccounts, 1), max(maxSecurities, 1)
	g := &Gate{writers: &writers{
		limit: maxAccounts, own: map[uint32]ownRow{}, priced: make([]bool, maxSecurities+1),
	}}
	g.policy.limits.Store(&matcher.RiskLimits{})
	g.tables.Store(newTables(maxAccounts, maxSecurities))
	g.policy.tickPx.Store(defaultTickPx)
	for i := range g.writers.sources {
		g.writers.sources[i].Name = sourceNames[i]
	}
	return g
}

func newTables(maxAccounts, maxSecurities int) *tables {
	slots := 1 << bits.Len(uint(2*maxAccounts-1))
	return &tables{
		accounts:   make([]accountRow, slots),
		own:        make([]ownLimits, slots),
		shift:      uint(33 - bits.Len(uint(slots))),
		securities: make([]security, maxSecurities+1),
		names:      make([]string, maxSecurities+1),
		tickers:    make([]atomic.Uint64, 1<<bits.Len(uint(2*maxSecurities-1))),
	}
}

// defaultTickPx is the price grid unless SetTick says otherwise: 0.001.
const defaultTickPx = 1000

// Load fills the gate with the engine's initial state: the limits, the grid and the initial
// universe, all at version 0.
func (g *Gate) Load(genesis *matcher.Genesis) error {
	if err := g.SetLimits(genesis.Limits); err != nil {
		return err
	}
	if genesis.TickPx != 0 {
		if err := g.SetTick(genesis.TickPx); err != nil {
			return err
		}
	}
	for _, a := range genesis.Accounts {
		if err := g.SetAccount(a.ID, a.Enabled, 0); err != nil {
			return err
		}
	}
	for i, s := range genesis.Securities {
		if err := g.SetSecurity(uint32(i+1), s.Ticker, s.Enabled, s.Halted, 0); err != nil {
			return err
		}
	}
	return nil
}

// SetLimits sets the limits that orders are judged by. New fixes the capacities.
func (g *Gate) SetLimits(l matcher.Limits) error {
	if min(l.MaxOrderQty, l.MaxOrderNotional, l.PriceMaxAgeMillis, l.PriceCollarBps,
		l.MaxPositionQty, l.MaxConcentrationNotional) < 0 {
		return fmt.Errorf("gate: set limits %+v: %w", l, ErrLimit)
	}
	g.SetRiskLimits(l.RiskLimits())
	return nil
}

// SetTick sets the grid of limit prices, x 1e6.
func (g *Gate) SetTick(px int64) error {
	if px <= 0 {
		return fmt.Errorf("gate: set tick px=%d: %w", px, ErrLimit)
	}
	g.writers.mu.Lock()
	defer g.writers.mu.Unlock()
	g.policy.tickPx.Store(px)
	return nil
}

// Tick returns the grid of limit prices, x 1e6.
func (g *Gate) Tick() int64 { return g.policy.tickPx.Load() }

// SetAccount opens an account, or enables or disables a known one. ErrCapacity when a new account
// finds no room.
func (g *Gate) SetAccount(id uint32, enabled bool, version int64) error {
	g.writers.mu.Lock()
	defer g.writers.mu.Unlock()
	return g.setAccount(id, accountFlags(enabled, false), false, version)
}

// HoldAccount records that an operator has set the flag of a known account.
func (g *Gate) HoldAccount(id uint32) error {
	g.writers.mu.Lock()
	defer g.writers.mu.Unlock()
	row := g.accountRow(id)
	if row == nil {
		return fmt.Errorf("gate: hold account id=%d: %w", id, ErrAccount)
	}
	row.word.Store(row.word.Load() | accountByHand)
	return nil
}

// accountRow returns the row of an account, nil for none.
func (g *Gate) accountRow(id uint32) *accountRow {
	t := g.tables.Load()
	mask := uint32(len(t.accounts) - 1)
	for at := id * 2654435769 >> t.shift; ; at++ {
		row := &t.accounts[at&mask]
		switch word := row.word.Load(); {
		case word == 0:
			return nil
		case uint32(word) == id:
			return row
		}
	}
}

func accountFlags(enabled, byHand bool) (flags uint64) {
	if enabled {
		flags |= accountEnabled
	}
	if byHand {
		flags |= accountByHand
	}
	return flags
}

// setAccount opens an account. It sets the flags of a known account unless keep is set.
func (g *Gate) setAccount(id uint32, flags uint64, keep bool, version int64) error {
	word := uint64(id) | accountTaken | flags
	t := g.tables.Load()
	mask := uint32(len(t.accounts) - 1)
	for at := id * 2654435769 >> t.shift; ; at++ {
		row := &t.accounts[at&mask]
		old := row.word.Load()
		if old == 0 {
			if g.writers.accounts == g.writers.limit {
				return fmt.Errorf("gate: set account id=%d: %d accounts: %w", id, g.writers.limit, ErrCapacity)
			}
			g.writers.accounts++
		} else if uint32(old) != id {
			continue
		} else if keep {
			word = old
		} else {
			word |= old & accountBounded
		}
		row.version.Store(version)
		row.word.Store(word)
		return nil
	}
}

// SetSecurity sets whether a security is tradable, under the id that the engine assigned to its
// ticker. With ticker "" the id must be registered already.
//
// Errors: ErrSecurity for an id out of range or unregistered, ErrTicker when the ticker or the id
// already belongs to another pair.
func (g *Gate) SetSecurity(id uint32, ticker string, enabled, halted bool, version int64) error {
	g.writers.mu.Lock()
	defer g.writers.mu.Unlock()
	if ticker != "" {
		if err := g.register(id, ticker); err != nil {
			return err
		}
	}
	return g.control(id, securityFlags(enabled, halted), 0, 0, version)
}

// HoldSecurity records which flags of a registered security an operator has set.
func (g *Gate) HoldSecurity(id uint32, enabled, halted bool) error {
	g.writers.mu.Lock()
	defer g.writers.mu.Unlock()
	s, err := g.registered(id)
	if err == nil {
		s.byHand.Store(securityFlags(enabled, halted))
	}
	return err
}

func securityFlags(enabled, halted bool) (flags uint32) {
	if enabled {
		flags |= securityEnabled
	}
	if halted {
		flags |= securityHalted
	}
	return flags
}

// control sets the flags of a security, except for those that a known security keeps.
func (g *Gate) control(id uint32, flags, byHand, keep uint32, version int64) error {
	s, err := g.registered(id)
	if err != nil {
		return err
	}
	old := s.flags.Load()
	if old&securityKnown == 0 {
		keep = 0
	}
	s.byHand.Store(s.byHand.Load()&keep | byHand&^keep)
	s.version.Store(version)
	s.flags.Store(old&(securityRegistered|securityRestricted|keep) | flags&^keep | securityKnown)
	return nil
}

// Places returns how many accounts, or securities, the engine behind this image has taken in, and
// how many it has room for. ErrSource for an unknown name.
func (g *Gate) Places(source string) (held, capacity int, err error) {
	g.writers.mu.Lock()
	defer g.writers.mu.Unlock()
	switch source {
	case AccountSource:
		return g.writers.accounts, g.writers.limit, nil
	case SecuritySource:
		return g.writers.tickers, len(g.tables.Load().securities) - 1, nil
	}
	return 0, 0, fmt.Errorf("gate: places of source name=%q: %w", source, ErrSource)
}

// Register publishes a ticker under its id without making it tradable.
func (g *Gate) Register(id uint32, ticker string) error {
	g.writers.mu.Lock()
	defer g.writers.mu.Unlock()
	return g.register(id, ticker)
}

func (g *Gate) register(id uint32, ticker string) error {
	fail := func(err error) error {
		return fmt.Errorf("gate: register id=%d ticker=%q: %w", id, ticker, err)
	}
	t := g.tables.Load()
	if id == 0 || uint64(id) >= uint64(len(t.securities)) {
		return fail(ErrSecurity)
	}
	if len(ticker) == 0 || len(ticker) > matcher.MaxTicker {
		return fail(ErrTicker)
	}
	known, found := t.find([]byte(ticker))
	if found || t.names[id] != "" {
		if known != id {
			return fail(ErrTicker)
		}
		return nil
	}
	t.names[id] = ticker
	g.writers.tickers++
	s := &t.securities[id]
	s.flags.Store(s.flags.Load() | securityRegistered) // publishes the name to Ticker
	t.enter(id, ticker)
	return nil
}

// enter adds the entry that leads from a ticker to its id.
func (t *tables) enter(id uint32, ticker string) {
	hash := hashTicker(ticker)
	mask := uint32(len(t.tickers) - 1)
	at := hash
	for t.tickers[at&mask].Load() != 0 {
		at++
	}
	t.tickers[at&mask].Store(uint64(hash)<<32 | uint64(id))
}

// registered returns the row of a registered id.
func (g *Gate) registered(id uint32) (*security, error) {
	if g.Ticker(id) == "" {
		return nil, fmt.Errorf("gate: id=%d: %w", id, ErrSecurity)
	}
	return &g.tables.Load().securities[id], nil
}

// SetRestricted restricts a registered security, or lifts the restriction.
func (g *Gate) SetRestricted(id uint32, restricted bool, version int64) error {
	g.writers.mu.Lock()
	defer g.writers.mu.Unlock()
	return g.restrict(id, restricted, version)
}

func (g *Gate) restrict(id uint32, restricted bool, version int64) error {
	s, err := g.registered(id)
	if err != nil {
		return err
	}
	flags := s.flags.Load() &^ securityRestricted
	if restricted {
		flags |= securityRestricted
	}
	s.version.Store(version)
	s.flags.Store(flags)
	return nil
}

// SetPolicy sets the kill switch and the policy limits; a limit of 0 does not change the present
// one.
func (g *Gate) SetPolicy(version int64, kill bool, maxPosition, maxConcentration int64) {
	g.writers.mu.Lock()
	defer g.writers.mu.Unlock()
	g.setPolicy(version, kill, maxPosition, maxConcentration)
}

func (g *Gate) setPolicy(version int64, kill bool, maxPosition, maxConcentration int64) {
	var on uint32
	if kill {
		on = 1
	}
	g.policy.kill.Store(on)
	g.policy.version.Store(version)
	if all := g.RiskLimits(); maxPosition > 0 || maxConcentration > 0 {
		if maxPosition > 0 {
			all[matcher.LimitPosition] = maxPosition
		}
		if maxConcentration > 0 {
			all[matcher.LimitConcentration] = maxConcentration
		}
		g.setRiskLimits(all)
	}
}

// SetPrice gives a registered security the price from when the engine's state was restored. It
// changes nothing once an event has brought a price. A price of 0 or less is none.
func (g *Gate) SetPrice(id uint32, px, timeMillis int64) error {
	g.writers.prices.Lock()
	defer g.writers.prices.Unlock()
	s, err := g.registered(id)
	if err != nil {
		return err
	}
	if px > 0 && !g.writers.priced[id] {
		s.setPrice(px, timeMillis)
	}
	return nil
}

// Observe applies what an event of the engine changes: the price of a fill or a tick, a control, a
// new ticker. Events come in sequence. Observe ignores an event of a command before the last one
// that changed anything, so no price and no flag ever goes back. The holder of the recorder's lease
// calls it; it takes a few ns for most events.
func (g *Gate) Observe(ev *matcher.Event) {
	switch ev.Kind {
	case matcher.EventFilled:
		// The resting side's fill repeats the price of the aggressor's fill before it.
		if ev.Flags&(matcher.EventAggressor|matcher.EventMarket|matcher.EventForced) != 0 {
			g.observePrice(ev, ev.Px)
		}
	case matcher.EventApplied:
		if ev.Flags&matcher.EventFirst != 0 {
			g.observeApplied(ev, ev.Cmd())
		}
	case matcher.EventLimits:
		g.observeLimits(ev)
	}
}

func (g *Gate) observePrice(ev *matcher.Event, px int64) {
	if ev.Flags&matcher.EventLate != 0 {
		return // the market price does not change
	}
	w := g.writers
	w.prices.Lock()
	defer w.prices.Unlock()
	t := g.tables.Load() // under the lock, so no goroutine moves the prices meanwhile
	if ev.SecurityID == 0 || uint64(ev.SecurityID) >= uint64(len(t.securities)) {
		w.missed.Add(1)
		return
	}
	if w.advance(ev.InputSeq) {
		w.priced[ev.SecurityID] = true
		t.securities[ev.SecurityID].setPrice(px, ev.TimeMillis)
	}
}

func (g *Gate) observeApplied(ev *matcher.Event, c *matcher.Command) {
	if c.TemplateID == matcher.TemplateCommand {
		switch c.Type {
		case matcher.PriceTick:
			if ev.Flags&matcher.EventLate != 0 {
				g.writers.late.Add(1)
			}
			g.observePrice(ev, c.PriceTicks)
			return
		case matcher.AccountControl, matcher.SecurityControl, matcher.RestrictionControl,
			matcher.PolicyControl, matcher.CapacityControl, matcher.TokenRevoke:
		default:
			return
		}
	} else if c.TemplateID != matcher.TemplateSymbolRegister {
		return
	}
	w := g.writers
	w.mu.Lock()
	defer w.mu.Unlock()
	w.prices.Lock()
	fresh := w.advance(ev.InputSeq)
	w.prices.Unlock()
	if !fresh {
		return
	}
	if err := g.apply(ev, c); err != nil {
		w.missed.Add(1)
	}
}

// apply carries out a control that the engine has applied.
func (g *Gate) apply(ev *matcher.Event, c *matcher.Command) error {
	if c.TemplateID == matcher.TemplateSymbolRegister {
		ticker, err := c.Symbol()
		if err != nil {
			return err
		}
		return g.register(ev.SecurityID, ticker)
	}
	switch c.Type {
	case matcher.AccountControl:
		flags := accountFlags(c.Side&matcher.SecurityEnabled != 0, c.OrderRef == 0)
		return g.setAccount(c.AccountID, flags, c.Side&matcher.KeepEnabled != 0, c.PriceTicks)
	case matcher.SecurityControl:
		byHand := c.OrderRef == 0
		return g.control(c.SecurityID,
			securityFlags(c.Side&matcher.SecurityEnabled != 0, c.Side&matcher.SecurityHalted != 0),
			securityFlags(byHand, byHand),
			securityFlags(c.Side&matcher.KeepEnabled != 0, c.Side&matcher.KeepHalted != 0), c.PriceTicks)
	case matcher.RestrictionControl:
		return g.restrict(c.SecurityID, c.Side == 1, c.PriceTicks)
	case matcher.TokenRevoke:
		g.revoke(c.Revocation())
		return nil
	case matcher.CapacityControl:
		g.grow(int(c.AccountID), int(c.SecurityID))
		return nil
	}
	g.setPolicy(c.PriceTicks, c.Side == 1, int64(c.Qty), c.LimitPx)
	return nil
}

// Late returns how many prices were older than the market price and changed nothing.
func (g *Gate) Late() uint64 { return g.writers.late.Load() }

// Missed returns how many events of the engine did not fit this image: 0 unless the gate was filled
// with another universe than the engine.
func (g *Gate) Missed() uint64 { return g.writers.missed.Load() }
