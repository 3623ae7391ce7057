package blotter

import (
	"bytes"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"posttrade/matcher"
	"posttrade/ring"
)

// together runs a writer beside readers until the writer has finished and every reader has made
// enough rounds; a failed reader ends both.
func together(t *testing.T, readers int, write func(step int), read func(rng *rand.Rand) bool) {
	t.Helper()
	const enough = 1000
	var stop atomic.Bool
	var rounds [8]atomic.Int64
	var wg sync.WaitGroup
	for r := range readers {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(r), 4))
			for !stop.Load() {
				if !read(rng) {
					stop.Store(true)
				}
				rounds[r].Add(1)
			}
		})
	}
	least := func() int64 {
		n := rounds[0].Load()
		for r := range readers {
			n = min(n, rounds[r].Load())
		}
		return n
	}
	for step := 0; (step < 10_000 || least() < enough) && !stop.Load(); step++ {
		write(step)
		if step%256 == 0 {
			runtime.Gosched()
		}
	}
	stop.Store(true)
	wg.Wait()
}

// whole reports whether a row can be the state of an order after some event.
func whole(row *OrderRow) bool {
	filled := row.Qty - row.Leaves
	ok := bytes.Equal(row.ClientID(), clientID(row.InputSeq)) &&
		row.UpdatedMillis >= row.CreatedMillis &&
		(row.LastQty == 0) == (row.LastPx == 0) && (filled == 0) == (row.LastQty == 0) &&
		row.LastQty <= filled
	switch row.Status {
	case matcher.StatusNew:
		return ok && filled == 0
	case matcher.StatusPartiallyFilled:
		return ok && filled > 0 && row.Leaves > 0
	case matcher.StatusFilled:
		return ok && row.Leaves == 0
	case matcher.StatusCanceled:
		return ok && row.Leaves > 0
	}
	return ok && filled == 0 && row.Reason != matcher.Accepted
}

func TestReadersSeeWholeOrders(t *testing.T) {
	g := smallGenesis()
	s, v := newSource(t, g, 51), newTestViews(t, g)
	var issued atomic.Uint32
	var found, listed atomic.Int64
	together(t, 3, func(int) {
		observe(v, s.step())
		issued.Store(s.issued)
	}, func(rng *rand.Rand) bool {
		last := issued.Load()
		ref := last - min(last, uint32(rng.IntN(30)))
		if row, ok := v.Order(ref); ok {
			found.Add(1)
			if row.Ref != ref || !whole(&row) {
				t.Errorf("order %d: %+v, client id %x", ref, row, row.ClientID())
				return false
			}
		}
		f := OrderFilter{}
		switch rng.IntN(3) {
		case 0:
			f.Statuses = OpenOrders
		case 1:
			f.Accounts, f.SecurityID = []uint32{900_001, 7}, 1
		}
		after := uint64(ref) - min(uint64(ref), uint64(rng.IntN(60)))
		rows, next := v.Orders(f, after, 1+rng.IntN(10), nil)
		for i := range rows {
			row := &rows[i]
			listed.Add(1)
			if row.Number() <= after || !whole(row) || !f.Statuses.Has(row.Status) ||
				f.SecurityID != 0 && (row.SecurityID != 1 || row.AccountID == 3) {
				t.Errorf("list after %d by %+v has %+v", after, f, row)
				return false
			}
			after = row.Number()
		}
		if next != 0 && next < after {
			t.Errorf("page up to %d, next %d", after, next)
			return false
		}
		return true
	})
	if found.Load() == 0 || listed.Load() == 0 {
		t.Errorf("%d orders found, %d listed", found.Load(), listed.Load())
	}
	if err := v.Check(s.engine); err != nil {
		t.Error(err)
	}
}

// TestReadersAlwaysFindOrdersThatStay keeps some orders on chains on which other orders come and
// go, in slots that are used again at once.
func TestReadersAlwaysFindOrdersThatStay(t *testing.T) {
	var a ring.Arena
	defer func() { a.Close() }()
	v := &Views{orders: newOrders(&a, 40, 0)}
	o := &v.orders
	for len(o.heads) > 16 { // at least two orders per chain
		o.heads, o.lap = o.heads[:len(o.heads)/2], o.lap-1
	}
	v.publish()
	rng := rand.New(rand.NewPCG(52, 5))
	insert := func(ref uint32) uint32 {
		row := OrderRow{Ref: ref, InputSeq: uint64(ref), AccountID: 1}
		return o.insert(&row, clientID(uint64(ref)))
	}
	ref := uint32(0)
	var stay []uint32
	var come []uint32 // slots
	for range 40 {
		ref++
		if at := insert(ref); ref%3 == 0 {
			stay = append(stay, ref)
		} else {
			come = append(come, at)
		}
	}
	together(t, 3, func(int) {
		i := rng.IntN(len(come))
		o.drop(come[i])
		ref++
		come[i] = insert(ref)
	}, func(rng *rand.Rand) bool {
		want := stay[rng.IntN(len(stay))]
		row, ok := v.Order(want)
		if !ok || !bytes.Equal(row.ClientID(), clientID(uint64(want))) {
			t.Errorf("order %d: %v %+v", want, ok, row)
			return false
		}
		rows, _ := v.Orders(OrderFilter{}, 0, 1000, nil)
		seen := 0
		for i := range rows {
			if i > 0 && rows[i].Ref <= rows[i-1].Ref {
				t.Errorf("order %d listed after %d", rows[i].Ref, rows[i-1].Ref)
				return false
			}
			if slices.Contains(stay, rows[i].Ref) {
				seen++
			}
		}
		if seen != len(stay) {
			t.Errorf("%d orders listed, of those that stay %d of %d", len(rows), seen, len(stay))
			return false
		}
		return true
	})
	if _, err := o.check(); err != nil {
		t.Error(err)
	}
}

func TestReadersAlwaysFindKeysThatAreRemembered(t *testing.T) {
	const capacity = 32
	var a ring.Arena
	defer func() { a.Close() }()
	v := &Views{keys: newKeys(&a, capacity)}
	for len(v.keys.heads) > 8 {
		v.keys.heads, v.keys.shift = v.keys.heads[:len(v.keys.heads)/2], v.keys.shift+1
	}
	v.publish()
	var newest atomic.Uint64
	rowOf := func(n uint64) KeyRow {
		return KeyRow{Key: n, InputSeq: n * 3, TermsHash: n * 5, Ref: n * 7,
			Reason:    matcher.RiskReason(n % 20),
			ByAccount: true, AccountID: uint32(n)}
	}
	together(t, 3, func(step int) {
		row := rowOf(uint64(step + 1))
		v.keys.remember(&row)
		newest.Store(uint64(step + 1))
	}, func(rng *rand.Rand) bool {
		last := newest.Load()
		key := last - min(last, uint64(rng.IntN(capacity)))
		row, ok := v.Key(matcher.KeyOrder, uint32(key), key)
		row.next = 0
		if ok && row != rowOf(key) {
			t.Errorf("key %d: %+v", key, row)
			return false
		}
		// The views may already remember one key more than newest counts.
		if !ok && key != 0 && newest.Load()+1 < key+capacity {
			t.Errorf("key %d is not found at %d", key, newest.Load())
			return false
		}
		return true
	})
	if err := v.keys.check(); err != nil {
		t.Error(err)
	}
}

// A key is visible behind its order: a reader that knows the first decision sees what became of it.
func TestReadersSeeTheOrderOfAKey(t *testing.T) {
	g := smallGenesis()
	g.Limits.RetainedOrders, g.Limits.IdempotencyCapacity = 1<<12, 1<<12
	s, v := newSource(t, g, 52), newTestViews(t, g)
	var newest atomic.Uint64
	together(t, 3, func(step int) {
		c := matcher.NewCommand(matcher.OrderNew)
		c.EventTimeMillis, c.PriceTicks = s.time, int64(step+1)
		c.AccountID, c.SecurityID, c.Qty, c.Flags = 7, 1, 5, matcher.FlagIOC
		c.LimitPx = 10_000_000 + int64(step&1) // every other one is off the grid, and refused
		observe(v, s.apply(c))
		newest.Store(uint64(step + 1))
	}, func(*rand.Rand) bool {
		key := newest.Load() + 1
		row, ok := v.Key(matcher.KeyOrder, 7, key)
		if !ok {
			return true
		}
		if _, held := v.Numbered(row.Ref); !held && newest.Load() < key+1000 {
			t.Errorf("key %d is there, and its order %d is not", key, row.Ref)
			return false
		}
		return true
	})
	if err := v.Check(s.engine); err != nil {
		t.Error(err)
	}
}

func TestReadersSeeWholePositionsAndControls(t *testing.T) {
	g := smallGenesis()
	g.Limits.MaxAccounts = 300
	v := newTestViews(t, g)
	together(t, 3, func(step int) {
		n := int64(step + 1)
		v.positions.at(0, 2).set(n, n*3)
		v.accounts.control(7, uint32(n&1), false, n)
		if step < 250 {
			v.accounts.control(uint32(1000+step), 1, false, 5)
		}
		v.securities.at(1).price(n, n*3, n*5)
		v.securities.at(2).flag(flagHalted, uint64(n&1)*flagHalted, n)
		v.policy.control(n, n&1 == 1, n*3, n*5)
		if step == 100 {
			v.securities.register(4, &[matcher.TickerBytes]byte{'N', 'E', 'W'})
		}
	}, func(*rand.Rand) bool {
		p, ok := v.Position(7, 2)
		if ok && p.AverageCost != p.Qty*3 {
			t.Errorf("position %+v", p)
			return false
		}
		a, ok := v.Account(7)
		if !ok || a.Enabled != (a.Version&1 == 1 || a.Version == 0) {
			t.Errorf("account %+v", a)
			return false
		}
		for _, a := range v.Accounts() {
			if b, ok := v.Account(a.ID); !ok ||
				a.ID >= 1000 && a.ID < 2000 && b != (Account{ID: a.ID, Enabled: true, Version: 5}) {
				t.Errorf("account %d: %+v", a.ID, b)
				return false
			}
		}
		all := v.Securities()
		if s := all[0]; s.MarketMillis != s.MarketPx*3 || s.LastTradePx != s.MarketPx*5 ||
			s.Ticker != "AAA" {
			t.Errorf("security %+v", s)
			return false
		}
		if s := all[1]; s.Halted != (s.Version&1 == 1) {
			t.Errorf("security %+v", s)
			return false
		}
		if len(all) > 3 && all[3].Ticker != "NEW" {
			t.Errorf("security %+v", all[3])
			return false
		}
		if p := v.Policy(); p.Version > 0 &&
			(p.MaxPositionQty != p.Version*3 || p.KillSwitch != (p.Version&1 == 1)) {
			t.Errorf("policy %+v", p)
			return false
		}
		return true
	})
}

func TestOrdersPaging(t *testing.T) {
	g := smallGenesis()
	g.Limits.RetainedOrders = 40
	s, v := newSource(t, g, 53), newTestViews(t, g)
	for round := range 20 {
		for range 100 {
			observe(v, s.step())
		}
		all, next := v.Orders(OrderFilter{}, 0, 1<<20, nil)
		if next != 0 {
			t.Fatalf("next %d after all of %d orders", next, len(all))
		}
		filters := []OrderFilter{
			{}, {Statuses: OpenOrders}, {Statuses: StatusOf(matcher.StatusRejected)}, {SecurityID: 2},
			{Accounts: []uint32{7}}, {Accounts: []uint32{900_001, 3}, Statuses: OpenOrders},
			{Accounts: []uint32{}},
		}
		for _, f := range filters {
			var want []OrderRow
			for _, row := range all {
				if (f.SecurityID == 0 || row.SecurityID == f.SecurityID) && f.Statuses.Has(row.Status) &&
					(f.Accounts == nil || slices.Contains(f.Accounts, row.AccountID)) {
					want = append(want, row)
				}
			}
			for _, limit := range []int{1, 2, 7, 1000} {
				// By walking the references, by scanning the slots, and by the way that Orders chooses.
				last, slots := uint64(v.orders.lastRef.Load()), uint32(v.orders.high.Load())
				accounts := slices.Sorted(slices.Values(f.Accounts))
				for way, page := range map[string]func(after uint64) ([]OrderRow, uint64){
					"walk": func(after uint64) ([]OrderRow, uint64) {
						return v.orders.walk(&f, accounts, after, last, limit, nil)
					},
					"scan": func(after uint64) ([]OrderRow, uint64) {
						return v.orders.scan(&f, accounts, after, slots, limit, nil)
					},
					"orders": func(after uint64) ([]OrderRow, uint64) { return v.Orders(f, after, limit, nil) },
				} {
					var got []OrderRow
					after, pages := uint64(0), 0
					for {
						rows, next := page(after)
						got = append(got, rows...)
						pages++
						if next == 0 {
							break
						}
						if len(rows) != limit || next != rows[limit-1].Number() {
							t.Fatalf("round %d, %s, %+v, limit %d: page of %d, next %d", round, way, f, limit, len(rows),
								next)
						}
						after = next
					}
					if !slices.Equal(got, want) || pages != max(1, (len(want)+limit-1)/limit) {
						t.Fatalf("round %d, %s, %+v, limit %d: %d orders on %d pages, want %d", round, way, f, limit,
							len(got), pages, len(want))
					}
				}
			}
		}
	}
	for _, limit := range []int{0, -1} {
		if rows, next := v.Orders(OrderFilter{}, 0, limit, nil); len(rows) != 0 || next != 0 {
			t.Errorf("limit %d: %d orders, next %d", limit, len(rows), next)
		}
	}
	if rows, next := v.Orders(OrderFilter{}, 1<<31, 10, nil); len(rows) != 0 || next != 0 {
		t.Errorf("after the last: %d orders, next %d", len(rows), next)
	}
}

func TestReadsOfWhatIsNotThere(t *testing.T) {
	v := newTestViews(t, smallGenesis())
	if row, ok := v.Order(0); ok {
		t.Errorf("order 0: %+v", row)
	}
	if row, ok := v.Order(1 << 31); ok {
		t.Errorf("an order that never was: %+v", row)
	}
	if a, ok := v.Account(8); ok {
		t.Errorf("account 8: %+v", a)
	}
	for _, id := range []uint32{0, 4, 1 << 31} {
		if s, ok := v.Security(id); ok {
			t.Errorf("security %d: %+v", id, s)
		}
	}
	for _, pair := range [][2]uint32{{7, 0}, {7, 1}, {7, 1 << 31}, {8, 1}} {
		if p, ok := v.Position(pair[0], pair[1]); ok {
			t.Errorf("position %v: %+v", pair, p)
		}
	}
	if all := v.Positions(8, nil); len(all) != 0 {
		t.Errorf("positions %v", all)
	}
	if row, ok := v.Key(matcher.KeyOrder, 7, 0); ok {
		t.Errorf("key 0: %+v", row)
	}
}

func TestEveryAccountIsFoundInAFullTable(t *testing.T) {
	const seed, accounts = 54, 500
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 7))
	g := smallGenesis()
	g.Limits.MaxAccounts = accounts
	g.Accounts = nil
	v := newTestViews(t, g)
	want := map[uint32]Account{}
	for len(want) < accounts {
		a := Account{ID: rng.Uint32(), Enabled: rng.IntN(2) == 0, Version: rng.Int64()}
		if len(want) == 0 {
			a.ID = 0
		}
		enabled := uint32(0)
		if a.Enabled {
			enabled = 1
		}
		v.accounts.control(a.ID, enabled, false, a.Version)
		want[a.ID] = a
	}
	for id, a := range want {
		if got, ok := v.Account(id); !ok || got != a {
			t.Fatalf("account %d: %v %+v, want %+v", id, ok, got, a)
		}
	}
}
