package blotter

import (
	"fmt"

	"posttrade/matcher"
	"posttrade/ring"
)

// tables are the tables with a size set by capacities, as readers find them. The observer replaces
// all of them by larger ones in one step. A reader uses one set from beginning to end, so it sees a
// state that was valid when it began. The old tables do not change any more and stay until the
// views are closed.
type tables struct {
	accounts         []accountSlot
	index            []uint64
	shift            uint
	securities       []securitySlot
	positions        positions
	contracts        []ContractRow
	contractAccounts []uint32
	trees            []tree
	branches         []branch
	levels           []level
	orders           orderTable
	retained         int // orders that are kept
	keys             keyTable
}

// publish makes the current tables visible to readers, with one store of a pointer. It allocates,
// so it is for the beginning and for growth. Observer only.
func (v *Views) publish() {
	v.tables.Store(&tables{
		accounts: v.accounts.slots, index: v.accounts.index, shift: v.accounts.shift,
		securities: v.securities.slots, positions: v.positions,
		contracts: v.contracts.rows, contractAccounts: v.contracts.accounts,
		trees: v.levels.trees, branches: v.levels.branches.all, levels: v.levels.all,
		orders: v.orders.orderTable, retained: len(v.orders.retained), keys: v.keys.keyTable,
	})
}

// Capacities are the capacities in force after the observed events. Any goroutine.
func (v *Views) Capacities() matcher.Capacities {
	t := v.tables.Load()
	return matcher.Capacities{
		Accounts: len(t.accounts), Securities: len(t.securities), Contracts: len(t.contracts),
		OrderRoom: matcher.OrderRoom{Open: len(t.levels) - spareLevels, Retained: t.retained,
			Keys: len(t.keys.slots) - 1},
	}
}

// raise applies a CAPACITY_CONTROL. Views that went on with less room than the engine could not
// follow it, so a lack of memory is a panic.
func (v *Views) raise(cmd *matcher.Command) {
	to := v.Capacities().Raised(cmd)
	if err := v.grow(to); err != nil {
		noRoomFor(to, err)
	}
}

// grow moves the tables to larger ones, and publishes them in one step. The cost grows with their
// content. The old tables stay mapped for the readers that use them. An error comes before anything
// has moved. Observer only.
func (v *Views) grow(to matcher.Capacities) error {
	was, a := v.Capacities(), &v.arena
	if to == was {
		return nil
	}
	accounts, securities := newAccounts(a, to.Accounts), v.securities.slots
	positions := newPositions(a, to.Accounts, to.Securities)
	trees, branches := v.levels.trees, v.levels.branches.all
	rows, of := v.contracts.rows, v.contracts.accounts
	if to.Securities > was.Securities {
		securities = ring.Carve[securitySlot](a, to.Securities)
	}
	if to.Securities > was.Securities || to.Open > was.Open {
		trees, branches = newTrees(a, to.Open, to.Securities)
	}
	if to.Contracts > was.Contracts {
		rows, of = newContractRows(a, to.Contracts)
	}
	larger := v.orderRoom(was.OrderRoom, to.OrderRoom)
	if err := a.Err(); err != nil {
		return fmt.Errorf("blotter: raise capacities: %w", err)
	}
	v.moveOrders(&larger)
	v.movePositions(&positions)
	count := int(v.accounts.count.Load())
	for i := range count {
		accounts.slots[i].set(&v.accounts.slots[i].row)
		accounts.enter(v.accounts.slots[i].row.id, i)
	}
	if to.Securities > was.Securities {
		for i := range v.securities.count.Load() {
			securities[i].set(&v.securities.slots[i].row)
		}
	}
	if to.Securities > was.Securities || to.Open > was.Open {
		copy(trees, v.levels.trees)
		copy(branches, v.levels.branches.all[:v.levels.branches.top+1])
	}
	if to.Contracts > was.Contracts {
		booked := v.contracts.count.Load()
		copy(rows, v.contracts.rows[:booked])
		copy(of, v.contracts.accounts[:booked])
	}
	v.accounts.slots, v.accounts.index = accounts.slots, accounts.index
	v.accounts.shift = accounts.shift
	v.securities.slots, v.positions = securities, positions
	v.levels.trees, v.levels.branches.all = trees, branches
	v.contracts.rows, v.contracts.accounts = rows, of
	v.publish()
	return nil
}

// movePositions copies the positions of all accounts.
func (v *Views) movePositions(to *positions) {
	for i := range int(v.accounts.count.Load()) {
		left := v.accounts.slots[i].row.held
		for security := uint32(1); left > 0; security++ {
			if row := &v.positions.at(i, security).row; row.used != 0 {
				to.at(i, security).set(row.qty, row.cost)
				left--
			}
		}
	}
}
