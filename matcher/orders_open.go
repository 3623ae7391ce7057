package matcher

import (
	"errors"
	"fmt"
	"math/bits"
	"unsafe"

	"posttrade/ring"
)

// MaxOrders is the largest capacity of an order pool: a level is named by 26 bits of leaf and 6 of
// slot, and there is a leaf for every order. Leaf 0 is no leaf.
const MaxOrders = 1<<26 - 2

// ErrCapacity reports a capacity for orders that is less than 1 or more than MaxOrders.
var ErrCapacity = errors.New("capacity out of range")

// Compile-time checks: two orders, two pages and four levels are a cache line.
var (
	_ = [1]struct{}{}[unsafe.Sizeof(order{})-32]
	_ = [1]struct{}{}[unsafe.Sizeof(orderCold{})-64]
	_ = [1]struct{}{}[unsafe.Sizeof(page{})-32]
	_ = [1]struct{}{}[unsafe.Sizeof(level{})-16]
)

// validCapacity wraps ErrCapacity and names the table that was asked for.
func validCapacity(what string, capacity int) error {
	if capacity < 1 || capacity > MaxOrders {
		return fmt.Errorf("matcher: %s for %d orders, allowed are 1 to %d: %w",
			what, capacity, MaxOrders, ErrCapacity)
	}
	return nil
}

// newOrderPool returns an empty pool for capacity orders (1 to MaxOrders). Its errors are
// ErrCapacity and that of mapping memory.
//
// The homes are the largest power of two up to the capacity. Beside them there is a guest room for
// every order, because all orders may be guests: addresses are reserved, and memory becomes
// resident with use.
func newOrderPool(capacity int) (*orderPool, error) {
	if err := validCapacity("pool", capacity); err != nil {
		return nil, err
	}
	lap := bits.Len(uint(capacity)) // homes are a power of two
	p := &orderPool{homes: 1 << (lap - 1), room: capacity, steady: steadyFrom}
	p.high = ix(p.homes)
	p.orders = ring.Carve[order](&p.arena, 1+int(p.homes)+capacity)
	p.colds = ring.Carve[orderCold](&p.arena, 1+int(p.homes)+capacity)
	p.guests = ring.Carve[ix](&p.arena, capacity)
	if p.arena.Err() != nil {
		return nil, errors.Join(p.arena.Err(), p.arena.Close())
	}
	p.hots, p.chills = tableOf[ix](p.orders), tableOf[ix](p.colds)
	return p, nil
}

// MakeResident does this for the pool as Engine.MakeResident does for the engine, whose arena holds
// the pool.
func (p *orderPool) MakeResident() error { return p.arena.MakeResident() }

// Resident is for the engine's arena.
func (p *orderPool) Resident() int64 { return p.arena.Resident() }

// roomMaker returns a function that makes the homes of the references from first up to end
// resident. Any goroutine may call that function. After a growth it still means the old tables; the
// homes of the new ones are resident by then.
func (p *orderPool) roomMaker() func(first, end uint64) error {
	homes := 1 + int(p.homes)
	orders, colds := p.orders[1:homes], p.colds[1:homes]
	return func(first, end uint64) error {
		return errors.Join(ring.MakeLapResident(orders, first, end),
			ring.MakeLapResident(colds, first, end))
	}
}

// Close gives the memory back; the pool must not be used afterwards. The tables without bounds
// checks (hots, chills) still point to that memory.
func (p *orderPool) Close() error {
	p.orders, p.colds, p.guests = nil, nil, nil
	return p.arena.Close()
}

// newPages returns the pages for ladders that together hold at most capacity
// resting orders (1 to MaxOrders).
func newPages(capacity int) (*pages, error) {
	if err := validCapacity("pages", capacity); err != nil {
		return nil, err
	}
	g := &pages{}
	g.levels = ring.Carve[level](&g.arena, (capacity+1)*fanout)
	g.leaves = ring.Carve[page](&g.arena, capacity+1)
	g.inners = ring.Carve[page](&g.arena, capacity+1)
	g.kids = ring.Carve[node](&g.arena, (capacity+1)*fanout)
	if g.arena.Err() != nil {
		return nil, errors.Join(g.arena.Err(), g.arena.Close())
	}
	// A descent that ends at leaf 0 must not find its key there.
	g.leaves[0].base = nowhere
	return g, nil
}

// MakeResident does this for the pages as Engine.MakeResident does for the engine.
func (g *pages) MakeResident() error { return g.arena.MakeResident() }

// Resident is for the engine's arena.
func (g *pages) Resident() int64 { return g.arena.Resident() }

// Close gives the memory back; the ladders must not be used afterwards.
func (g *pages) Close() error {
	g.levels, g.leaves, g.inners, g.kids = nil, nil, nil, nil
	return g.arena.Close()
}
