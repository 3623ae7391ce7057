package gate

import (
	"fmt"

	"posttrade/matcher"
)

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

// HoldSecurity records which flags of a registered security an operator has set; ErrSecurity for an
// unregistered one. It is for a start: later the control itself says so.
func (g *Gate) HoldSecurity(id uint32, enabled, halted bool) error {
	g.writers.mu.Lock()
	defer g.writers.mu.Unlock()
	s, err := g.registered(id)
	if err == nil {
		s.byHand.Store(securityFlags(enabled, halted))
	}
	return err
}

// securityFlags are the bits that a control can set, or keep.
func securityFlags(enabled, halted bool) (flags uint32) {
	if enabled {
		flags |= securityEnabled
	}
	if halted {
		flags |= securityHalted
	}
	return flags
}

// control sets the flags of a security, except for those that a known security keeps. flags, byHand
// and keep are bits of securityEnabled and securityHalted. Registration and restriction stay. The
// caller holds writers.mu.
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

// Register publishes a ticker under its id without making it tradable. The same pair again changes
// nothing. Errors: ErrSecurity for an id without a place, ErrTicker when ticker or id belongs to
// another pair.
func (g *Gate) Register(id uint32, ticker string) error {
	g.writers.mu.Lock()
	defer g.writers.mu.Unlock()
	return g.register(id, ticker)
}

// register is Register for a caller that holds writers.mu. The name is written before anything that
// leads to it, so a reader that finds the id finds the name.
func (g *Gate) register(id uint32, ticker string) error {
	fail := func(err error) error {
		return fmt.Errorf("gate: register id=%d ticker=%q: %w", id, ticker, err)
	}
	t := g.tables.Load()
	if id == 0 || uint64(id) >= uint64(len(t.securities)) {
		return fail(ErrSecurity)
	}
	if len(ticker) == 0 || len(ticker) > matcher.TickerBytes {
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

// enter adds the entry that leads from a ticker to its id. The name of the id is already there.
// There is room: the table has twice as many slots as securities.
func (t *tables) enter(id uint32, ticker string) {
	hash := hashTicker(ticker)
	mask := uint32(len(t.tickers) - 1)
	at := hash
	for t.tickers[at&mask].Load() != 0 {
		at++
	}
	t.tickers[at&mask].Store(uint64(hash)<<32 | uint64(id))
}

// registered returns the row of a registered id, else ErrSecurity.
func (g *Gate) registered(id uint32) (*security, error) {
	if g.Ticker(id) == "" {
		return nil, fmt.Errorf("gate: id=%d: %w", id, ErrSecurity)
	}
	return &g.tables.Load().securities[id], nil
}

// SetRestricted restricts a registered security, or lifts the restriction. ErrSecurity for an
// unregistered one. A restriction is always an operator's.
func (g *Gate) SetRestricted(id uint32, restricted bool, version int64) error {
	g.writers.mu.Lock()
	defer g.writers.mu.Unlock()
	return g.restrict(id, restricted, version)
}

// restrict is SetRestricted for a caller that holds writers.mu.
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
