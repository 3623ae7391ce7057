package blotter

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"math/bits"

	"posttrade/matcher"
	"posttrade/ring"
)

// ErrGenesis reports a genesis record with limits for which no views can be built.
var ErrGenesis = errors.New("unusable genesis record")

// NewViews returns the views of the state that a genesis record describes: no event observed yet,
// every control at version 0. Close unmaps the memory. Errors: ErrGenesis, which names the field,
// or that of mapping memory.
func NewViews(g *matcher.Genesis) (*Views, error) {
	v, err := emptyViews(g)
	if err != nil {
		return nil, err
	}
	for _, a := range g.Accounts {
		flags := uint32(0)
		if a.Enabled {
			flags = accountEnabled
		}
		v.accounts.control(a.ID, flags, false, 0)
	}
	for i, s := range g.Securities {
		var ticker [matcher.TickerBytes]byte
		copy(ticker[:], s.Ticker)
		id := uint32(i + 1)
		v.securities.register(id, &ticker)
		v.securities.at(id).flag(0, flagsOf(true, s.Enabled, s.Halted, false), 0)
	}
	v.policy.control(0, false, g.Limits.MaxPositionQty, g.Limits.MaxConcentrationNotional)
	return v, nil
}

// flagsOf are the first four bits of securityRow.flags, in their order.
func flagsOf(known, enabled, halted, restricted bool) (flags uint64) {
	for i, set := range []bool{known, enabled, halted, restricted} {
		if set {
			flags |= 1 << i
		}
	}
	return flags
}

// emptyViews returns views with the limits of a genesis record and without its universe: NewViews
// and ReadImage add it. After an error nothing is left mapped.
func emptyViews(g *matcher.Genesis) (*Views, error) {
	l := &g.Limits
	for _, b := range []struct {
		name            string
		value, min, max int
	}{
		{"limits.maxAccounts", l.MaxAccounts, max(1, len(g.Accounts)), 1 << 28},
		{"limits.maxSecurities", l.MaxSecurities, max(1, len(g.Securities)), 1<<24 - 1},
		{"limits.maxOpenOrders", l.MaxOpenOrders, 1, matcher.MaxOrders},
		{"limits.retainedOrders", l.RetainedOrders, 0, matcher.MaxOrders},
		{"limits.idempotencyCapacity", l.IdempotencyCapacity, 1, 1 << 28},
		{"limits.maxContracts", l.MaxContracts, 0, 1 << 28},
	} {
		if b.value < b.min || b.value > b.max {
			return nil, fmt.Errorf("blotter: genesis %s=%d, allowed are %d to %d: %w",
				b.name, b.value, b.min, b.max, ErrGenesis)
		}
	}
	sum, err := genesisSum(g)
	if err != nil {
		return nil, err
	}
	secret, err := matcher.ParseClientKey(g.ClientKey)
	if err != nil {
		return nil, fmt.Errorf("blotter: %w: %w", err, ErrGenesis)
	}
	v := &Views{wake: func() {}, genesis: sum, created: l.Capacities().OrderRoom, clientKey: secret}
	a := &v.arena
	v.orders = newOrders(a, l.MaxOpenOrders, l.RetainedOrders)
	v.keys = newKeys(a, l.IdempotencyCapacity)
	v.levels = newLevels(a, l.MaxOpenOrders, l.MaxSecurities)
	v.levels.now = &v.current
	v.accounts = newAccounts(a, l.MaxAccounts)
	v.securities.slots = ring.Carve[securitySlot](a, l.MaxSecurities)
	v.positions = newPositions(a, l.MaxAccounts, l.MaxSecurities)
	v.contracts.rows, v.contracts.accounts = newContractRows(a, l.MaxContracts)
	if a.Err() != nil {
		return nil, errors.Join(fmt.Errorf("blotter: new views: %w", a.Err()), a.Close())
	}
	v.publish()
	return v, nil
}

// newAccounts carves the slots and an index at most half full.
func newAccounts(a *ring.Arena, capacity int) accounts {
	log := bits.Len(uint(2*capacity - 1))
	return accounts{
		slots: ring.Carve[accountSlot](a, capacity),
		index: ring.Carve[uint64](a, 1<<log),
		shift: uint(32 - log),
	}
}

// newPositions carves a slot for every pair. The table is sparse: most pairs are never used.
func newPositions(a *ring.Arena, accounts, securities int) positions {
	stride := strideOf(securities)
	return positions{
		slots: ring.CarveSparse[positionSlot](a, accounts*stride), securities: securities, stride: stride,
	}
}

// newContractRows carves the rows and the column of accounts beside them.
func newContractRows(a *ring.Arena, capacity int) (rows []ContractRow, accounts []uint32) {
	return ring.Carve[ContractRow](a, capacity), ring.Carve[uint32](a, capacity)
}

// genesisSum identifies a genesis record: an image is valid for one genesis record only.
func genesisSum(g *matcher.Genesis) ([32]byte, error) {
	text, err := json.Marshal(g)
	if err != nil {
		return [32]byte{}, fmt.Errorf("blotter: genesis: %w", err)
	}
	return sha256.Sum256(text), nil
}

// newLevels carves the books of all securities. There can be as many levels as resting orders. Of
// two neighbours below one branch at least one has fewest entries or more; otherwise they would
// have merged. So the number of branches is below half the number of levels, plus one for each
// tree.
func newLevels(a *ring.Arena, maxOpen, securities int) levels {
	l := levels{
		all:     ring.Carve[level](a, maxOpen+spareLevels),
		now:     new(uint64),
		changes: &changes{slots: ring.Carve[change](a, changesKept)},
	}
	l.trees, l.branches.all = newTrees(a, maxOpen, securities)
	return l
}

// spareLevels are the levels beside one for each open order: the first, which is never used, and
// that of a command that is being observed.
const spareLevels = 2

// newTrees carves a tree for each side of ids 0 to securities, and the branches; see newLevels.
func newTrees(a *ring.Arena, maxOpen, securities int) ([]tree, []branch) {
	trees := 2 * (securities + 1)
	return ring.Carve[tree](a, trees), ring.Carve[branch](a, maxOpen/2+trees+maxHeight)
}

// Close unmaps the memory. No call may be running or follow.
func (v *Views) Close() error { return v.arena.Close() }
