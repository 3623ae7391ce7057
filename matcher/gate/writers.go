package gate

import (
	"errors"
	"fmt"
	"math/bits"
	"sync"
	"sync/atomic"

	"posttrade/matcher"
)

// Errors of the writers; test them by errors.Is. After any of them the image is as before.
var (
	ErrCapacity = errors.New("table is full")
	ErrSecurity = errors.New("not a security of this gate")
	// A ticker that has another id, an id that has another ticker, or a text of the wrong length.
	ErrTicker  = errors.New("ticker and id belong to others")
	ErrAccount = errors.New("not an account of this gate")
	ErrSource  = errors.New("unknown source")
	ErrLimit   = errors.New("limit is out of range")
)

// writers is the state that only writers touch. mu guards all fields but those for which another
// guard is named.
type writers struct {
	mu       sync.Mutex // held by every writer but those of prices, and by Snapshot
	accounts int
	limit    int // of accounts
	tickers  int // registered
	sources  [sourceCount]Source
	own      map[uint32]ownRow
	// Counts for Missed and Late. Any goroutine reads them.
	missed atomic.Uint64
	late   atomic.Uint64

	// A price comes with most trades, and its writer must not wait for a Snapshot.
	prices sync.Mutex // every writer of prices holds it, for an instant; taken after mu
	// The last command that changed anything; guarded by prices.
	observed uint64
	// By security: an event has brought its price. Guarded by prices.
	priced []bool
}

// New returns an empty gate that is not ready and has limits of 0: it admits nothing. The
// capacities are those of the engine behind it, at least 1 each; an observed CAPACITY_CONTROL
// raises them. Load or the Set functions fill it.
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

// newTables makes empty tables with at least twice as many slots as entries. The tables of
// securities are addressed by id, so they have a place 0 that no security has.
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
// universe, all at version 0. It is for a new gate. After an error, the first that a writer has
// returned, the gate is incomplete.
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

// SetLimits sets the limits that orders are judged by. New fixes the capacities, which l also has.
// ErrLimit for a negative limit.
func (g *Gate) SetLimits(l matcher.Limits) error {
	if min(l.MaxOrderQty, l.MaxOrderNotional, l.PriceMaxAgeMillis, l.PriceCollarBps,
		l.MaxPositionQty, l.MaxConcentrationNotional) < 0 {
		return fmt.Errorf("gate: set limits %+v: %w", l, ErrLimit)
	}
	g.SetRiskLimits(l.RiskLimits())
	return nil
}

// SetTick sets the grid of limit prices, x 1e6. ErrLimit unless it is above 0.
func (g *Gate) SetTick(px int64) error {
	if px <= 0 {
		return fmt.Errorf("gate: set tick px=%d: %w", px, ErrLimit)
	}
	g.writers.mu.Lock()
	defer g.writers.mu.Unlock()
	g.policy.tickPx.Store(px)
	return nil
}

// Tick returns the grid of limit prices, x 1e6. Any goroutine.
func (g *Gate) Tick() int64 { return g.policy.tickPx.Load() }

// Places returns how many accounts, or securities, the engine behind this image has taken in, and
// how many it has room for. ErrSource for an unknown name. Any goroutine.
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

// SetPolicy sets the kill switch and the policy limits (whole units, and money x 1e6); a limit of 0
// does not change the present one. It does not compare the version: the engine does.
func (g *Gate) SetPolicy(version int64, kill bool, maxPosition, maxConcentration int64) {
	g.writers.mu.Lock()
	defer g.writers.mu.Unlock()
	g.setPolicy(version, kill, maxPosition, maxConcentration)
}

// setPolicy is SetPolicy for a caller that holds writers.mu. The switch comes first, so no order
// passes by new limits that the switch would stop.
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
// changes nothing once an event has brought a price, so it may run beside Observe. A price of 0 or
// less is none. ErrSecurity for an id that is not registered.
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
