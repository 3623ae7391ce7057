package blotter

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"syscall"
	"unsafe"

	"posttrade/matcher"
	"posttrade/ring"
)

// ErrGenesis reports a genesis record whose limits no views can be built for.
var ErrGenesis = errors.New("unusable genesis record")

// NewViews returns the views of the state that a genesis record describes:
// nothing observed yet, every control at version 0. Close gives the memory back.
func NewViews(g *matcher.Genesis) (*Views, error) {
	v, err := emptyViews(g)
	if err != nil {
		return nil, err
	}
	for _, a := range g.Accounts {
		enabled := uint32(0)
		if a.Enabled {
			enabled = 1
		}
		v.accounts.control(a.ID, enabled, 0)
	}
	for i, s := range g.Securities {
		var ticker [matcher.MaxTicker]byte
		copy(ticker[:], s.Ticker)
		id := uint32(i + 1)
		v.securities.register(id, &ticker)
		v.securities.at(id).flag(0, flagsOf(true, s.Enabled, s.Halted, false), 0)
	}
	v.policy.control(0, false, g.Limits.MaxPositionQty, g.Limits.MaxConcentrationNotional)
	return v, nil
}

func flagsOf(known, enabled, halted, restricted bool) (flags uint64) {
	for i, set := range []bool{known, enabled, halted, restricted} {
		if set {
			flags |= 1 << i
		}
	}
	return flags
}

// emptyViews returns views with the limits of a genesis record and without its universe.
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
	v := &Views{wake: func() {}, genesis: sum}
	a := &v.arena
	v.orders = newOrders(a, l.MaxOpenOrders, l.RetainedOrders)
	v.levels = newLevels(a, l.MaxOpenOrders, l.MaxSecurities)
	v.positions = positions{
		slots:      carveSparse[positionSlot](a, l.MaxAccounts*strideOf(l.MaxSecurities)),
		securities: l.MaxSecurities,
		stride:     strideOf(l.MaxSecurities),
	}
	v.keys = newKeys(a, l.IdempotencyCapacity)
	log := bits.Len(uint(2*l.MaxAccounts - 1))
	v.accounts = accounts{
		slots: carve[accountSlot](a, l.MaxAccounts),
		index: carve[uint64](a, 1<<log),
		shift: uint(32 - log),
	}
	v.securities.slots = carve[securitySlot](a, l.MaxSecurities)
	v.contracts = contracts{rows: carve[ContractRow](a, l.MaxContracts), accounts: carve[uint32](a, l.MaxContracts)}
	if a.err != nil {
		return nil, errors.Join(fmt.Errorf("blotter: new views: %w", a.err), a.close())
	}
	return v, nil
}

// genesisSum identifies a genesis record: an image is of one and no other.
func genesisSum(g *matcher.Genesis) ([32]byte, error) {
	text, err := json.Marshal(g)
	if err != nil {
		return [32]byte{}, fmt.Errorf("blotter: genesis: %w", err)
	}
	return sha256.Sum256(text), nil
}

// newLevels carves the books of all securities. There can be as many levels as
// resting orders. Of two neighbours below one branch at least one has fewest
// entries or more, else they would have merged: so there are fewer than half as
// many branches as levels, and one for each tree.
func newLevels(a *arena, maxOpen, securities int) levels {
	trees := 2 * (securities + 1)
	return levels{
		all:      carve[level](a, maxOpen+2),
		trees:    carve[tree](a, trees),
		branches: branches{all: carve[branch](a, maxOpen/2+trees+maxHeight)},
	}
}

// Close gives the memory back. No call may be under way or follow.
func (v *Views) Close() error { return v.arena.close() }

// arena owns the slabs of one Views. The first failure sticks, so a constructor
// carves all its tables and asks once.
type arena struct {
	held []io.Closer
	err  error
}

// carve returns a zeroed table of n elements, nil after a failure or for none. The table
// is used from its beginning on, or all over, so it asks for large pages where there are some.
func carve[T any](a *arena, n int) []T {
	table := carveSparse[T](a, n)
	preferLargePages(table)
	return table
}

// largePage is the size of a large page where there are some.
const largePage = 2 << 20

// preferLargePages advises the kernel to back a table with large pages: one of many
// megabytes that is walked at random spends more time on address translation than on
// data. Advice that is not taken changes nothing but the speed.
func preferLargePages[T any](table []T) {
	if bytes := uintptr(len(table)) * unsafe.Sizeof(*new(T)); bytes >= largePage {
		_ = syscall.Madvise(unsafe.Slice((*byte)(unsafe.Pointer(&table[0])), bytes), syscall.MADV_HUGEPAGE)
	}
}

// carveSparse is carve for a table that is touched here and there.
func carveSparse[T any](a *arena, n int) []T {
	if a.err != nil || n == 0 {
		return nil
	}
	slab, err := ring.NewSlab[T](n)
	if err != nil {
		a.err = err
		return nil
	}
	a.held = append(a.held, slab)
	return slab.Slice()
}

func (a *arena) close() error {
	var all []error
	for _, c := range a.held {
		all = append(all, c.Close())
	}
	a.held = nil
	return errors.Join(all...)
}
