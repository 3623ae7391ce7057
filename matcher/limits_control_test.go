package matcher

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
)

// limitsOf returns the commands of a change.
func limitsOf(version int64, account uint32, set map[LimitID]int64, remove ...LimitID) []Command {
	c := LimitsChange{Version: version, ForAccount: account != 0, AccountID: account}
	for id, value := range set {
		c.Set |= 1 << id
		c.Values[id] = value
	}
	for _, id := range remove {
		c.Remove |= 1 << id
	}
	return c.AppendTo(nil)
}

// changed applies all parts of a change.
func (r *rig) changed(parts []Command) {
	r.t.Helper()
	for _, c := range parts {
		r.must(c)
	}
}

// eachLimit is one limit of account 1 that refuses an order which is within the limits of all.
var eachLimit = []struct {
	id    LimitID
	value int64
	order func() Command
	want  RiskReason
}{
	{LimitOrderQty, 4, func() Command { return buy(1, 5, 100) }, OrderSize},
	{LimitOrderNotional, 499 * unit, func() Command { return buy(1, 5, 100) }, OrderNotional},
	{LimitPosition, 4, func() Command { return buy(1, 5, 100) }, PositionLimit},
	{LimitConcentration, 499 * unit, func() Command { return buy(1, 5, 100) }, ConcentrationLimit},
	{LimitCredit, 499 * unit, func() Command { return buy(1, 5, 100) }, CreditLimit},
	{LimitPriceAge, 5, func() Command { return with(buy(1, 5, 0), atTime(noon+6)) }, PriceStale},
	{LimitCollar, 100, func() Command { return buy(1, 5, 102) }, PriceCollar},
}

func atTime(millis int64) func(*Command) { return func(c *Command) { c.EventTimeMillis = millis } }

// The next order obeys a new limit, of all accounts or of one; the other accounts keep theirs. A
// limit that is removed gives way to the one of all accounts.
func TestTheNextOrderObeysANewLimit(t *testing.T) {
	for _, tt := range eachLimit {
		t.Run(tt.id.String(), func(t *testing.T) {
			for _, reread := range []bool{false, true} {
				r := newRig(t, testGenesis())
				r.reread = reread
				r.must(tick(aaa, 100))
				other := with(tt.order(), func(c *Command) { c.AccountID = 2 })
				set := map[LimitID]int64{tt.id: tt.value}

				r.changed(limitsOf(1, 1, set))
				r.refused(tt.order(), tt.want)
				r.must(other)
				r.changed(limitsOf(2, 1, nil, tt.id))
				r.must(tt.order())

				r.changed(limitsOf(3, 0, set))
				r.refused(tt.order(), tt.want)
				r.refused(other, tt.want)
				r.changed(limitsOf(4, 2, map[LimitID]int64{tt.id: 1<<31 - 1}))
				r.refused(tt.order(), tt.want)
				r.must(other) // its own limit is larger
			}
		})
	}
}

// A later change of the limits of all accounts does not touch an account's own.
func TestAnAccountKeepsItsOwnLimits(t *testing.T) {
	r := newRig(t, testGenesis())
	r.changed(limitsOf(1, 1, map[LimitID]int64{LimitOrderQty: 5}))
	r.changed(limitsOf(2, 0, map[LimitID]int64{LimitOrderQty: 3, LimitOrderNotional: 400 * unit}))
	r.must(buy(1, 4, 100))
	r.refused(buy(2, 4, 100), OrderSize)
	r.refused(buy(1, 5, 100), OrderNotional) // not its own
	r.must(with(policyOf(3, 0), func(c *Command) { c.Qty = 2 }))
	r.refused(buy(1, 3, 100), PositionLimit)
	if got := r.e.RiskLimits(); got[LimitPosition] != 2 || got[LimitOrderQty] != 3 {
		t.Errorf("limits of all accounts %v", got)
	}
	r.e.EachOwnLimits(func(o OwnLimits) bool {
		if want := (OwnLimits{1, 1 << LimitOrderQty, RiskLimits{5}}); o != want {
			t.Errorf("own limits %+v, want %+v", o, want)
		}
		return true
	})
}

// A change is there whole or not at all: whatever number of its parts survives, and whatever comes
// next, no order is judged by some of it.
func TestAChangeOfLimitsIsWholeOrAbsent(t *testing.T) {
	parts := limitsOf(7, 0, map[LimitID]int64{
		LimitOrderQty: 10, LimitOrderNotional: 900 * unit, LimitCredit: 800 * unit, LimitCollar: 1,
	})
	next := limitsOf(7, 0, map[LimitID]int64{LimitOrderNotional: 300 * unit, LimitCollar: 3})
	for survived := range len(parts) {
		r := newRig(t, testGenesis())
		r.reread = true
		before := r.e.RiskLimits()
		r.changed(parts[:survived])
		r.must(buy(1, 50, 100))
		if got := r.e.RiskLimits(); got != before || r.e.Policy().Version != 0 {
			t.Errorf("%d of %d parts: limits %v, version %d", survived, len(parts), got,
				r.e.Policy().Version)
		}
		r.changed(next)
		want := before
		want[LimitOrderNotional], want[LimitCollar] = 300*unit, 3
		if got := r.e.RiskLimits(); got != want || r.e.Policy().Version != 7 {
			t.Errorf("after %d parts of another change: limits %v, want %v", survived, got, want)
		}
	}
}

func TestRefusalsOfLimits(t *testing.T) {
	two := func(edit func(c *Command)) []Command {
		parts := limitsOf(9, 1, map[LimitID]int64{LimitOrderQty: 5, LimitCredit: unit})
		edit(&parts[1])
		return parts
	}
	tests := []struct {
		name string
		last []Command // all but the last are applied
		want RiskReason
	}{
		{"a version that does not rise", limitsOf(4, 0, map[LimitID]int64{LimitOrderQty: 5}), Invalid},
		{"the version in force", limitsOf(5, 0, map[LimitID]int64{LimitOrderQty: 5}), Invalid},
		{"an unknown account", limitsOf(9, 77, map[LimitID]int64{LimitOrderQty: 5}), UnknownAccount},
		{"a quantity of 0", limitsOf(9, 0, map[LimitID]int64{LimitOrderQty: 0}), Invalid},
		{"a quantity beyond an order's", limitsOf(9, 0, map[LimitID]int64{LimitOrderQty: 1 << 31}),
			Invalid},
		{"a negative collar", limitsOf(9, 0, map[LimitID]int64{LimitCollar: -1}), Invalid},
		{"removed for all", limitsOf(9, 0, nil, LimitCollar), Invalid},
		{"another version", two(func(c *Command) { c.PriceTicks++ }), Invalid},
		{"another account", two(func(c *Command) { c.AccountID = 2 }), Invalid},
		{"all accounts", two(func(c *Command) { c.OrderRef = 0 }), Invalid},
		{"another scope", two(func(c *Command) { c.OrderRef = 2 }), Invalid},
		{"a limit twice", two(func(c *Command) { c.SecurityID = 0 }), Invalid},
		{"an unknown limit", two(func(c *Command) { c.SecurityID = LimitCount }), Invalid},
		{"a part twice", two(func(c *Command) { c.Qty = 1<<8 | 2 }), Invalid},
		{"a part beyond the last", two(func(c *Command) { c.Qty = 2<<8 | 3 }), Invalid},
		{"part 0", two(func(c *Command) { c.Qty = 2 << 8 }), Invalid},
		{"another number of parts", two(func(c *Command) { c.Qty = 3<<8 | 2 }), Invalid},
		{"removed with a value", two(func(c *Command) { c.Side = 1 }), Invalid},
		{"flags", two(func(c *Command) { c.Flags = FlagShadow }), Invalid},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, testGenesis())
			r.must(policyOf(5, 0))
			before := r.e.RiskLimits()
			last := len(tt.last) - 1
			r.changed(tt.last[:last])
			r.refused(tt.last[last], tt.want)
			r.refused(with(tt.last[last], func(c *Command) { c.Qty, c.PriceTicks = 2<<8|2, 9 }), tt.want)
			if r.e.RiskLimits() != before || r.e.pending.next != 0 || r.e.Policy().Version != 5 {
				t.Errorf("limits %v, pending %+v", r.e.RiskLimits(), r.e.pending)
			}
			r.must(buy(1, 50, 100))
		})
	}
	old := limitsOf(1, 0, map[LimitID]int64{LimitOrderQty: 5})[0]
	old.Version = OldestVersion
	if err := old.Verify(); !errors.Is(err, ErrCommandType) {
		t.Errorf("a record of version 1: %v, want %v", err, ErrCommandType)
	}
}

// Accounts with own limits keep them when the engine grows, and when others give theirs up.
func TestOwnLimitsSurviveGrowthAndRemoval(t *testing.T) {
	g := testGenesis()
	r := newRig(t, g)
	rng := rand.New(rand.NewPCG(18, 0))
	own, version := map[uint32]int64{}, int64(0)
	for step := range 400 {
		version++
		account := uint32(1 + rng.IntN(6))
		switch {
		case step == 200:
			r.must(NewCapacityControl(Capacities{Accounts: 40, Securities: 8, Contracts: 8}))
		case rng.IntN(8) == 0:
			r.reread = !r.reread
		}
		if step < 6 {
			r.must(control(AccountControl, uint32(step+1), 0, 1))
			continue
		}
		if rng.IntN(3) == 0 {
			r.changed(limitsOf(version, account, nil, LimitOrderQty))
			delete(own, account)
		} else {
			own[account] = 1 + rng.Int64N(9)
			r.changed(limitsOf(version, account, map[LimitID]int64{LimitOrderQty: own[account]}))
		}
		for id := uint32(1); id <= 6; id++ {
			most, has := own[id]
			if !has {
				most = 1_000_000
			}
			r.refused(with(buy(id, int32(most+1), 100), ioc), OrderSize)
			r.must(with(buy(id, int32(min(most, 10)), 100), ioc))
		}
	}
	if r.e.bounds.count != 1+len(own) {
		t.Errorf("%d rows of limits for %d accounts", r.e.bounds.count-1, len(own))
	}
}

func ioc(c *Command) { c.Flags = FlagIOC }

// An engine without changed limits writes no LIMITS record, also after a change back.
func TestLimitsOfTheGenesisLeaveNoTrace(t *testing.T) {
	g := testGenesis()
	r, plain := newRig(t, g), newRig(t, g)
	first := g.Limits.RiskLimits()
	r.changed(limitsOf(1, 0, map[LimitID]int64{LimitOrderQty: 7, LimitCollar: 9}))
	r.changed(limitsOf(2, 1, map[LimitID]int64{LimitOrderQty: 7}))
	r.changed(limitsOf(3, 1, nil, LimitOrderQty))
	r.changed(limitsOf(4, 0, map[LimitID]int64{LimitOrderQty: first[LimitOrderQty],
		LimitCollar: first[LimitCollar]}))
	plain.must(policyOf(4, 0))
	for plain.e.AppliedSeq() < r.e.AppliedSeq() {
		plain.must(control(SnapshotMark, 0, 0, 0))
	}
	if r.e.StateHash() != plain.e.StateHash() {
		t.Error("a state that limits have passed through differs")
	}
}

// Every column of a LIMITS record is checked.
func TestRefusalsOfStoredLimits(t *testing.T) {
	records := func(edits ...[]int64) func([]piece) []piece {
		return after("account 2", func(d *draft) {
			for _, columns := range edits {
				d.record(recordLimits, columns...)
			}
		})
	}
	all := []int64{0, 0, 1, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0}
	own := []int64{1, 2, 1 << 6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	pending := []int64{3, 2, 1, 2, 7, 0, 0, 0, 0, 0, 0, 9, 3 | 5<<8}
	edit := func(of []int64, column int, value int64) []int64 {
		of = slices.Clone(of)
		of[column] = value
		return of
	}
	if _, err := ReadSnapshot(small(), bytes.NewReader(assemble(
		records(all, own, pending)(whole(6))))); err != nil {
		t.Fatalf("the records themselves: %v", err)
	}
	tests := []struct {
		name    string
		records [][]int64
		want    error
	}{
		{"kind 4", [][]int64{edit(pending, 0, 4)}, ErrSnapshotValue},
		{"kind -1", [][]int64{edit(own, 0, -1)}, ErrSnapshotValue},
		{"no limit", [][]int64{edit(edit(all, 2, 0), 4, 0)}, ErrSnapshotValue},
		{"a limit that does not exist", [][]int64{edit(own, 2, 1<<7)}, ErrSnapshotValue},
		{"a value without its limit", [][]int64{edit(all, 5, 1)}, ErrSnapshotValue},
		{"a value out of range", [][]int64{edit(all, 4, 0)}, ErrSnapshotValue},
		{"the genesis record's value", [][]int64{edit(all, 4, small().Limits.MaxOrderQty)},
			ErrSnapshotValue},
		{"a limit of the POLICY record", [][]int64{edit(edit(all, 2, 1<<2), 6, 7)}, ErrSnapshotValue},
		{"an account for all", [][]int64{edit(all, 1, 1)}, ErrSnapshotValue},
		{"an unknown account", [][]int64{edit(own, 1, 3)}, ErrSnapshotValue},
		{"an account out of range", [][]int64{edit(own, 1, 1<<32)}, ErrSnapshotValue},
		{"removed", [][]int64{edit(own, 3, 1)}, ErrSnapshotValue},
		{"a version", [][]int64{edit(own, 11, 1)}, ErrSnapshotValue},
		{"progress", [][]int64{edit(own, 12, 1)}, ErrSnapshotValue},
		{"all twice", [][]int64{all, all}, ErrSnapshotTwice},
		{"all behind an account", [][]int64{own, all}, ErrSnapshotTwice},
		{"an account twice", [][]int64{own, own}, ErrSnapshotTwice},
		{"accounts out of order", [][]int64{own, edit(own, 1, 1)}, ErrSnapshotTwice},
		{"pending twice", [][]int64{pending, pending}, ErrSnapshotTwice},
		{"an account behind pending", [][]int64{pending, own}, ErrSnapshotTwice},
		{"pending with a version in force", [][]int64{edit(pending, 11, 3)}, ErrSnapshotValue},
		{"pending of an unknown account", [][]int64{edit(pending, 1, 9)}, ErrSnapshotValue},
		{"pending for all that removes", [][]int64{edit(edit(pending, 0, 2), 1, 0)}, ErrSnapshotValue},
		{"pending that sets and removes", [][]int64{edit(pending, 3, 1)}, ErrSnapshotValue},
		{"pending without a part", [][]int64{edit(pending, 12, 1|5<<8)}, ErrSnapshotValue},
		{"pending that is whole", [][]int64{edit(pending, 12, 3|2<<8)}, ErrSnapshotValue},
		{"pending of too many parts", [][]int64{edit(pending, 12, 3|8<<8)}, ErrSnapshotValue},
		{"pending with too few limits", [][]int64{edit(pending, 12, 4|5<<8)}, ErrSnapshotValue},
		{"negative progress", [][]int64{edit(pending, 12, -1)}, ErrSnapshotValue},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			text := assemble(records(tt.records...)(whole(6)))
			if _, err := ReadSnapshot(small(), bytes.NewReader(text)); !errors.Is(err, tt.want) {
				t.Errorf("%v, want %v", err, tt.want)
			}
		})
	}
	late := assemble(after("symbol", func(d *draft) { d.record(recordLimits, all...) })(whole(6)))
	if _, err := ReadSnapshot(small(), bytes.NewReader(late)); !errors.Is(err,
		ErrSnapshotSequence) {
		t.Errorf("limits behind the symbols: %v", err)
	}
}
