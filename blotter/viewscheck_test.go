package blotter

import (
	"testing"

	"posttrade/matcher"
	"posttrade/ring/must"
)

// differing returns the views after some events, and the engine behind them.
func differing(t *testing.T, change func(v *Views)) error {
	t.Helper()
	g := smallGenesis()
	s, v := newSource(t, g, 77), newTestViews(t, g)
	for range 600 {
		observe(v, s.step())
	}
	must.OK(t, v.Check(s.engine))
	change(v)
	return v.Check(s.engine)
}

// firstOpen is the slot of an open order.
func firstOpen(v *Views) uint32 {
	for at := uint32(1); at <= v.orders.top; at++ {
		if row := &v.orders.slots[at].row; row.Ref != 0 && row.Open() {
			return at
		}
	}
	return 0
}

func TestCheckNoticesEveryDifference(t *testing.T) {
	for name, change := range map[string]func(v *Views){
		"an applied command": func(v *Views) { v.applied.Store(v.applied.Load() + 1) },
		"a trade sequence":   func(v *Views) { v.tradeSeq++ },
		"an order's leaves":  func(v *Views) { v.orders.slots[firstOpen(v)].row.Leaves++ },
		"a missing order":    func(v *Views) { v.orders.drop(firstOpen(v)) },
		"the order of eviction": func(v *Views) {
			v.orders.retained[0], v.orders.retained[1] = v.orders.retained[1], v.orders.retained[0]
		},
		"an open order too many": func(v *Views) { v.orders.open++ },
		"a level's quantity": func(
			v *Views) {
			v.levels.all[v.orders.slots[firstOpen(v)].row.level].qty++
		},
		"a level too many": func(v *Views) { v.levels.add(1, matcher.Sell, 1<<40, 1) },
		"a position":       func(v *Views) { v.positions.at(0, 1).set(123_456, 1) },
		"a position too many": func(v *Views) {
			v.positions.at(5, 6).set(1, 1)
			v.accounts.slots[5].row.held++
			v.accounts.count.Store(6)
		},
		"an account's flag": func(v *Views) { v.accounts.slots[0].row.flags ^= accountEnabled },
		"an account too many": func(v *Views) {
			v.accounts.slots = append(v.accounts.slots, accountSlot{})
			v.publish()
			v.accounts.count.Store(7)
		},
		"a security's flag":   func(v *Views) { v.securities.slots[0].row.flags ^= flagHalted },
		"a security's price":  func(v *Views) { v.securities.slots[0].row.market++ },
		"the policy":          func(v *Views) { v.policy.row.maxPosition++ },
		"a key":               func(v *Views) { v.keys.oldest(0).Ref++ },
		"a key less":          func(v *Views) { v.keys.count-- },
		"a contract's terms":  func(v *Views) { v.contracts.rows[1].FixedRate++ },
		"a contract's id":     func(v *Views) { v.contracts.rows[1].ID++ },
		"a contract less":     func(v *Views) { v.contracts.count.Store(v.contracts.count.Load() - 1) },
		"a contract too many": func(v *Views) { v.contracts.count.Store(v.contracts.count.Load() + 1) },
	} {
		if differing(t, change) == nil {
			t.Errorf("%s goes unnoticed", name)
		}
	}
}

func TestCheckOfInvariantsNoticesDamage(t *testing.T) {
	for name, change := range map[string]func(v *Views){
		"an incomplete command": func(v *Views) { v.current++ },
		"a chain's head":        func(v *Views) { v.orders.heads[v.orders.headOf(1<<20)] = 1<<52 | 1 },
		"a retained slot twice": func(v *Views) { v.orders.retained[0] = v.orders.retained[1] },
		"an open order retained": func(
			v *Views) {
			v.orders.slots[v.orders.retained[0]].row.Status = matcher.StatusNew
		},
		"an order's level": func(
			v *Views) {
			v.levels.all[v.orders.slots[firstOpen(v)].row.level].px++
		},
		"the count of open": func(v *Views) { v.orders.open++ },
		"a level's sum": func(
			v *Views) {
			v.levels.all[v.orders.slots[firstOpen(v)].row.level].qty++
		},
		"a tree's count": func(v *Views) { v.levels.trees[2].count++ },
		"a key's chain": func(
			v *Views) {
			v.keys.heads[v.keys.headOf(0, v.keys.oldest(3).Key)] = 0
		},
		"a contract's order": func(v *Views) { v.contracts.rows[1].ID = v.contracts.rows[0].ID },
		"a contract of tomorrow": func(
			v *Views) {
			v.contracts.rows[v.contracts.count.Load()-1].ID = v.current + 1
		},
		"a contract's account": func(v *Views) { v.contracts.accounts[0]++ },
		"a key's age":          func(v *Views) { v.keys.oldest(3).InputSeq = ^uint64(0) },
	} {
		g := smallGenesis()
		s, v := newSource(t, g, 78), newTestViews(t, g)
		for range 600 {
			observe(v, s.step())
		}
		must.OK(t, v.check())
		if change(v); v.check() == nil {
			t.Errorf("%s goes unnoticed", name)
		}
	}
}

func mustPanic(t *testing.T, what string, f func()) {
	t.Helper()
	defer func() {
		if recover() == nil {
			t.Errorf("%s: no panic", what)
		}
	}()
	f()
}

func TestBrokenEventStreamsPanic(t *testing.T) {
	last := uint16(matcher.EventFirst | matcher.EventLast)
	control := func(kind matcher.CommandType, security uint32) matcher.Event {
		ev := matcher.Event{Kind: matcher.EventApplied, Flags: last, InputSeq: 1, SecurityID: security}
		*ev.Cmd() = matcher.NewCommand(kind)
		ev.Cmd().SecurityID = security
		return ev
	}
	register := control(matcher.PriceTick, 9)
	*register.Cmd() = matcher.NewSymbolRegister("NEW")
	for name, ev := range map[string]matcher.Event{
		"a hole":              {Kind: matcher.EventApplied, Flags: last, InputSeq: 2},
		"no such kind":        {Kind: 99, Flags: last, InputSeq: 1},
		"no such order":       {Kind: matcher.EventCanceled, Flags: last, InputSeq: 1, OrderRef: 5},
		"no such account":     {Kind: matcher.EventFilled, InputSeq: 1, AccountID: 55, SecurityID: 1},
		"security 0":          control(matcher.SecurityControl, 0),
		"no such security":    control(matcher.PriceTick, 6),
		"a symbol too far on": register,
	} {
		v := newTestViews(t, smallGenesis())
		mustPanic(t, name, func() { v.Observe(&ev, nil) })
	}
	v := newTestViews(t, smallGenesis())
	half := control(matcher.SnapshotMark, 1)
	half.Flags = matcher.EventFirst
	v.Observe(&half, nil)
	half.InputSeq = 2
	mustPanic(t, "a command that has no end", func() { v.Observe(&half, nil) })

	v = newTestViews(t, smallGenesis())
	mustPanic(t, "an account too many", func() {
		for id := range uint32(7) {
			v.accounts.control(100+id, 1, false, 0)
		}
	})
	v = newTestViews(t, smallGenesis())
	mustPanic(t, "a contract too many", func() {
		for id := range uint64(41) {
			v.contracts.add(&matcher.ContractInfo{ID: id + 1}, 0, nil)
		}
	})
	v = newTestViews(t, smallGenesis())
	mustPanic(t, "an open order too many", func() {
		for ref := uint32(1); ref < 1000; ref++ {
			v.orders.insert(&OrderRow{Ref: ref}, nil)
		}
	})
}
