package matcher

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"posttrade/ring"
)

// defaultTickPx is the usual tick of a genesis record, 0.001: toTicks divides by it as a constant.
const defaultTickPx = 1000

// ErrGenesis reports a genesis record that New cannot build an engine from.
var ErrGenesis = errors.New("unusable genesis record")

// New returns an engine in the state that the genesis record describes, with no command applied. It
// keeps a copy of g. Close gives its memory back.
//
//   - Errors: ErrGenesis, which names the field, or the error of mapping memory. After an error
//     nothing is left mapped.
//   - Cost: it reserves addresses for all capacities; memory becomes resident as it is used, or by
//     MakeResident.
func New(g *Genesis) (*Engine, error) {
	e, err := newEngine(g)
	if err != nil {
		return nil, err
	}
	for _, a := range g.Accounts {
		e.accounts.add(a.ID, a.Enabled)
	}
	for _, s := range g.Securities {
		e.securities.rows[e.registerTicker(s.Ticker)-1].control(s.Enabled, s.Halted)
	}
	return e, nil
}

// newEngine returns an engine with the limits of a genesis record and without its universe: New
// adds the accounts and securities, ReadSnapshot takes them from the snapshot.
func newEngine(g *Genesis) (*Engine, error) {
	if err := g.verify(); err != nil {
		return nil, err
	}
	l := &g.Limits
	e := &Engine{
		nextRef: 1,
		maxOpen: l.MaxOpenOrders,
		policy:  policy{tickPx: g.TickPx},
		genesis: *g,
	}
	e.genesis.Accounts = slices.Clone(g.Accounts)
	e.genesis.Securities = slices.Clone(g.Securities)

	a := &e.arena
	e.accounts = newAccounts(a, l.MaxAccounts)
	e.bounds = newBoundRows(a, l.MaxAccounts)
	e.securities = newSecurities(a, l.MaxSecurities)
	e.positions = newPositions(a, l.MaxAccounts, l.MaxSecurities)
	// The salt spreads the table's slots; no decision depends on it.
	e.keys = newKeys(a, l.IdempotencyCapacity, rand.Uint64())
	e.contracts = newContracts(a, l.MaxContracts)
	e.revoked = carveRevocations(a)
	e.scratch = ring.Carve[uint32](a, l.MaxOpenOrders)
	e.retired.ring = ring.Carve[uint32](a, l.RetainedOrders)
	pool, err := newOrderPool(l.MaxOpenOrders + l.RetainedOrders + 1) // +1: the one being decided
	if err != nil {
		return nil, errors.Join(err, a.Close())
	}
	pool.keeps = uint32(l.RetainedOrders)
	a.Hold(pool)
	pages, err := newPages(l.MaxOpenOrders)
	if err != nil {
		return nil, errors.Join(err, a.Close())
	}
	a.Hold(pages)
	if a.Err() != nil {
		return nil, errors.Join(a.Err(), a.Close())
	}
	e.all.RiskLimits = l.RiskLimits()
	e.orders = pool
	e.ladders = make([]ladder, l.MaxSecurities)
	for i := range e.ladders {
		e.ladders[i] = newLadder(pool, pages)
	}
	e.books = tableOf[uint32](e.ladders)
	e.openTables()
	return e, nil
}

// MakeResident makes the beginning of every table resident, so that page faults do not delay the
// first commands. Any goroutine may call it.
func (e *Engine) MakeResident() error { return e.arena.MakeResident() }

// Resident is how many bytes of the engine's tables are resident. Only the owner may call it,
// because a CAPACITY_CONTROL adds tables.
func (e *Engine) Resident() int64 { return e.arena.Resident() }

// Frontier is where the next orders will lie. The engine's owner does not publish how far it has
// come, so the caller does: nextRef is at most the reference of the next order.
func (e *Engine) Frontier(nextRef func() uint64) ring.Frontier {
	return ring.Frontier{Reached: nextRef, Lap: uint64(e.orders.homes), MakeRoom: e.orders.roomMaker()}
}

// Close gives the engine's memory back. The engine must not be used afterwards: its tables are then
// unmapped, and an access is a fault of the process.
func (e *Engine) Close() error { return e.arena.Close() }

// Genesis is the record that the engine was built from; it must not be changed.
func (e *Engine) Genesis() *Genesis { return &e.genesis }

// registerTicker is securities.register for a string that is a valid ticker. It returns 0 when the
// table is full.
func (e *Engine) registerTicker(ticker string) uint32 {
	var b [TickerBytes]byte
	copy(b[:], ticker)
	return e.securities.register(&b)
}

// Replay decides a command that has its sequence: it must be the next one.
//
// Errors name the sequence: a record of no known form (see Decode), or a gap. After an error
// nothing has changed. It does not allocate. Only the owner may call it.
func (e *Engine) Replay(c *Command, out *Outlet) error {
	if err := e.replayable(c); err != nil {
		return err
	}
	e.correlation = 0
	e.decideAlone(c, out)
	return nil
}

// replayable returns why a record cannot be the next command: its form, or a sequence that leaves a
// gap or repeats one (ErrSequence).
func (e *Engine) replayable(c *Command) error {
	if err := c.Verify(); err != nil {
		return fmt.Errorf("matcher: replay sequence=%d: %w", c.InputSeq, err)
	}
	if c.InputSeq != e.applied+1 {
		return fmt.Errorf("matcher: replay sequence=%d after %d: %w", c.InputSeq, e.applied, ErrSequence)
	}
	return nil
}

// ErrSequence reports a command that is not the next one. A reader of a journal has missed commands
// or reads them twice; the engine is unchanged.
var ErrSequence = errors.New("not the next sequence")

// verify reports the first field that makes a genesis record unusable. It wraps ErrGenesis and
// names the field and its range. Products of capacities come behind their factors in the list, so a
// product that overflowed is never what is reported.
func (g *Genesis) verify() error {
	l := &g.Limits
	bounds := []struct {
		name            string
		value, min, max int64
	}{
		{"format", int64(g.Format), GenesisFormat, GenesisFormat},
		{"tickPx", g.TickPx, 1, maxInt64},
		{"limits.maxOrderQty", l.MaxOrderQty, 1, 1<<31 - 1},
		{"limits.maxOrderNotional", l.MaxOrderNotional, 1, maxInt64},
		{"limits.maxPositionQty", l.MaxPositionQty, 1, maxInt64},
		{"limits.maxConcentrationNotional", l.MaxConcentrationNotional, 1, maxInt64},
		{"limits.creditLimit", l.CreditLimit, 1, maxInt64},
		{"limits.priceMaxAgeMillis", l.PriceMaxAgeMillis, 1, maxInt64},
		{"limits.priceCollarBps", l.PriceCollarBps, 0, maxInt64},
		{"limits.idempotencyCapacity", int64(l.IdempotencyCapacity), 1, maxKeys},
		{"limits.maxAccounts", int64(l.MaxAccounts), 1, maxPositions},
		{"limits.maxSecurities", int64(l.MaxSecurities), 1, MaxSecurities},
		{"limits.maxContracts", int64(l.MaxContracts), 1, maxContracts},
		{"limits.maxOpenOrders", int64(l.MaxOpenOrders), 1, MaxOrders},
		{"limits.retainedOrders", int64(l.RetainedOrders), 0, MaxOrders},
		{"limits.maxAccounts x maxSecurities",
			int64(l.MaxAccounts) * int64(l.MaxSecurities), 1, maxPositions},
		{"limits.maxOpenOrders + retainedOrders",
			int64(l.MaxOpenOrders) + int64(l.RetainedOrders), 1, MaxOrders - 1},
		{"accounts", int64(len(g.Accounts)), 0, int64(l.MaxAccounts)},
		{"securities", int64(len(g.Securities)), 0, int64(l.MaxSecurities)},
	}
	for _, b := range bounds {
		if b.value < b.min || b.value > b.max {
			return fmt.Errorf("matcher: genesis %s=%d, allowed are %d to %d: %w",
				b.name, b.value, b.min, b.max, ErrGenesis)
		}
	}
	ids := make(map[uint32]bool, len(g.Accounts))
	for _, a := range g.Accounts {
		if ids[a.ID] {
			return fmt.Errorf("matcher: genesis account %d is there twice: %w", a.ID, ErrGenesis)
		}
		ids[a.ID] = true
	}
	tickers := make(map[string]bool, len(g.Securities))
	for _, s := range g.Securities {
		if !fitsRecord(s.Ticker) {
			return fmt.Errorf("matcher: genesis security %q: %w: %w", s.Ticker, ErrTicker, ErrGenesis)
		}
		if tickers[s.Ticker] {
			return fmt.Errorf("matcher: genesis security %q is there twice: %w", s.Ticker, ErrGenesis)
		}
		tickers[s.Ticker] = true
	}
	return nil
}

// panicUnknown panics for a caller that hands in a record that it has not decoded. It is here and
// not at its calls, because fmt is not for a hot file.
func panicUnknown(c *Command) {
	panic(fmt.Sprintf("matcher: apply: %v; Decode refuses such a record", c.Verify()))
}

// panicPool panics because the pool's size and the limits disagree, which is a bug.
func panicPool(ref uint32) {
	panic(fmt.Sprintf(
		"matcher: no room in the pool for order %d, although open and retained orders are within "+
			"their limits", ref))
}
