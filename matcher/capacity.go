package matcher

import "fmt"

// Capacities are how much an engine has room for. They begin as the genesis record says. Only a
// CAPACITY_CONTROL changes them, and it can only raise them, so every replay has the same room at
// the same sequence. Where there is no room the engine refuses with CAPACITY; of retained orders
// and keys it forgets the oldest instead.
type Capacities struct {
	Accounts, Securities, Contracts int
	OrderRoom
}

// OrderRoom are the capacities for what orders leave behind. Retained may be 0: a terminal order is
// then forgotten at once.
type OrderRoom struct {
	Open     int // orders that may rest at once
	Retained int // terminal orders that are kept
	Keys     int // idempotency keys that are remembered
}

// Capacities returns the capacities that an engine begins with, before any CAPACITY_CONTROL.
func (l *Limits) Capacities() Capacities {
	return Capacities{l.MaxAccounts, l.MaxSecurities, l.MaxContracts,
		OrderRoom{l.MaxOpenOrders, l.RetainedOrders, l.IdempotencyCapacity}}
}

// Possible reports whether an engine with these capacities can be built: the ranges of
// Genesis.verify. The engine refuses a CAPACITY_CONTROL that is not possible with INVALID.
func (c Capacities) Possible() bool {
	return c.Accounts >= 1 && c.Accounts <= maxPositions && c.Securities >= 1 &&
		c.Securities <= MaxSecurities &&
		c.Accounts*c.Securities <= maxPositions && c.Contracts >= 1 && c.Contracts <= maxContracts &&
		c.OrderRoom.Possible()
}

// Possible reports whether an engine with this room for orders can be built.
func (r OrderRoom) Possible() bool {
	return r.Open >= 1 && r.Retained >= 0 && r.Open+r.Retained <= MaxOrders-1 &&
		r.Open <= MaxOrders && r.Keys >= 1 && r.Keys <= maxKeys
}

// MaxSecurities is the most securities that an engine can have room for, also one of a stranger's
// records: each costs the memory of its empty book at once, other tables cost what is used of them.
const MaxSecurities = 1 << 20

// Bounds of the store of contracts and of the idempotency keys. The number of keys stays below
// 2^32, so that the number of an entry in the ring is never used twice at one time.
const (
	maxContracts = 1 << 28
	maxKeys      = 1 << 28
)

// Raised returns the capacities after a CAPACITY_CONTROL. A smaller value than before changes
// nothing. Records before version 3 say nothing about orders.
func (c Capacities) Raised(cmd *Command) Capacities {
	to := Capacities{
		max(c.Accounts, int(cmd.AccountID)), max(c.Securities, int(cmd.SecurityID)),
		max(c.Contracts, int(cmd.Qty)), c.OrderRoom,
	}
	if cmd.Version >= version3 {
		to.Open = max(c.Open, int(cmd.OrderRef))
		to.Retained, to.Keys = max(c.Retained, clip(cmd.PriceTicks)), max(c.Keys, clip(cmd.LimitPx))
	}
	return to
}

// clip is a value of a record as a capacity: one that none can have stays so, and is then not
// possible. It keeps sums of two capacities from overflowing.
func clip(n int64) int { return int(max(0, min(n, 1<<32))) }

// NewCapacityControl returns the command that raises an engine's capacities to these. A 0 leaves a
// capacity as it is. The caller sets the event time.
func NewCapacityControl(c Capacities) Command {
	cmd := NewCommand(CapacityControl)
	cmd.AccountID, cmd.SecurityID, cmd.Qty = uint32(c.Accounts), uint32(c.Securities),
		int32(c.Contracts)
	cmd.OrderRef, cmd.PriceTicks, cmd.LimitPx = uint32(c.Open), int64(c.Retained), int64(c.Keys)
	return cmd
}

// Capacities returns the capacities in force. Only the owner may call it.
func (e *Engine) Capacities() Capacities {
	return Capacities{len(e.accounts.rows), len(e.securities.rows), len(e.contracts.rows),
		OrderRoom{e.maxOpen, len(e.retired.ring), len(e.keys.ring)}}
}

// capacityControl decides a CAPACITY_CONTROL. It is the only command that allocates and the only
// one whose cost follows the size of the tables; it also takes memory from the system, and an
// engine that gets none panics.
//
// The event is an EventApplied also when nothing grows. Old tables stay mapped until the engine is
// closed: a function of roomMaker on another goroutine may still touch them.
func (e *Engine) capacityControl(c *Command) {
	was := e.Capacities()
	if want := was.Raised(c); !want.Possible() {
		e.reject(c, Invalid)
	} else {
		if want.OrderRoom != was.OrderRoom {
			e.version = version3
		}
		if err := e.grow(want); err != nil {
			// A member that went on with less room would decide differently from the others.
			panic(fmt.Sprintf("matcher: no memory for the capacities %+v: %v", want, err))
		}
		e.applyEvent(c, 0, EventLast)
	}
	ev := e.out.last()
	ev.AccountID, ev.SecurityID, ev.Qty, ev.OrderRef = 0, 0, 0, 0
}

// grow moves the tables to larger ones, row by row, so that every row keeps its index. The cost
// follows the rows in the tables, not the room that they have. The old tables are given back with
// the engine.
//
// All new tables are made before the first row moves: an error leaves the engine as it was, but for
// the memory.
func (e *Engine) grow(to Capacities) error {
	was, a := e.Capacities(), &e.arena
	positions, moves := e.positions, to.Accounts > was.Accounts || to.Securities > was.Securities
	if moves {
		positions = newPositions(a, to.Accounts, to.Securities)
	}
	accounts, securities, contracts := e.accounts, e.securities, e.contracts
	bounds := e.bounds
	if to.Accounts > was.Accounts {
		accounts, bounds = newAccounts(a, to.Accounts), newBoundRows(a, to.Accounts)
	}
	if to.Securities > was.Securities {
		securities = newSecurities(a, to.Securities)
	}
	if to.Contracts > was.Contracts {
		contracts = newContracts(a, to.Contracts)
	}
	if err := a.Err(); err != nil {
		return err
	}
	if err := e.growOrders(to.OrderRoom); err != nil {
		return err
	}
	if to.Accounts > was.Accounts {
		for _, old := range e.accounts.rows[:e.accounts.count] {
			accounts.add(old.id, false)
			accounts.rows[accounts.count-1] = old
		}
		bounds.count = copy(bounds.rows, e.bounds.rows[:e.bounds.count])
	}
	if to.Securities > was.Securities {
		for i := range e.securities.rows[:e.securities.count] {
			securities.register(&e.securities.tickers[i])
		}
		copy(securities.rows, e.securities.rows) // also of ids without a ticker yet
		e.growLadders(to.Securities)
	}
	copy(contracts.rows, e.contracts.rows[:e.contracts.count])
	contracts.count = e.contracts.count
	if moves {
		e.movePositions(&positions)
	}
	e.accounts, e.securities, e.contracts, e.positions = accounts, securities, contracts, positions
	e.bounds = bounds
	// What lookAhead has found out names rows of the old table.
	for i := range e.requests {
		e.requests[i].owner = 0
	}
	return nil
}

// growLadders makes room for the books of more securities. Every ladder is copied as it is, with
// its number among the trees, so the leaves still name it.
func (e *Engine) growLadders(securities int) {
	ladders := make([]ladder, securities)
	first := &e.ladders[0]
	for i := copy(ladders, e.ladders); i < securities; i++ {
		ladders[i] = newLadder(first.pool, first.pages)
	}
	e.ladders, e.books = ladders, tableOf[uint32](ladders)
}

// movePositions copies the positions of accounts, in the order of the first fills, and the open
// quantities of accounts that hold nothing. The stride may differ, so a row can get another number;
// held is built anew in the same order.
func (e *Engine) movePositions(to *positions) {
	from := &e.positions
	for _, row := range from.held[:from.count] {
		at := to.at(from.account(row), from.security(row))
		to.touch(at)
		to.rows[at] = from.rows[row]
	}
	e.orders.each(func(i ix) bool {
		if o := e.orders.hot(i); o.account != 0 && !o.status().Terminal() {
			account, security := int(o.account)-1, o.security()
			to.rows[to.at(account, security)] = from.rows[from.at(account, security)]
		}
		return true
	})
}
