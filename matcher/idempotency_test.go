package matcher

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"posttrade/ring"
	"posttrade/ring/must"
)

func TestEngineAnswersARepeatedKeyWithTheFirstDecision(t *testing.T) {
	r := newRig(t, testGenesis())
	duplicate := func(c Command, kind IdempotencyKind, ref uint64, orderRef uint32,
		decision RiskReason) {
		t.Helper()
		refs := r.e.nextRef
		said := r.do(c)
		ev := &said[0]
		k, rf, d := ev.Duplicated()
		if len(said) != 1 || ev.Kind != EventRejected || ev.Reason != Duplicate ||
			k != kind || rf != ref || d != decision || ev.OrderRef != orderRef {
			t.Errorf("%+v\n got %q: %d %d %v order %d", c, describe(said), k, rf, d, ev.OrderRef)
		}
		if r.e.nextRef != refs {
			t.Error("a duplicate took an order reference")
		}
	}
	r.must(keyed(buy(1, 5, 100), 77))                                     // 1: order 1
	duplicate(keyed(buy(1, 5, 100), 77), KeyOrder, 1, 1, Accepted)        // 2
	duplicate(keyed(sell(1, 9, 50), 77), KeyOrder, 1, 1, Accepted)        // 3: whatever its terms
	r.refused(keyed(buy(4, 5, 100), 78), AccountDisabled)                 // 4: order 2
	r.must(control(AccountControl, 4, 0, 1))                              // 5
	duplicate(keyed(buy(4, 5, 100), 78), KeyOrder, 2, 2, AccountDisabled) // 6
	r.refused(keyed(trade(1, Buy, 1), 79), PriceMissing)                  // 7
	r.must(tick(aaa, 100))                                                // 8
	duplicate(keyed(trade(1, Buy, 1), 79), KeyTrade, 7, 0, PriceMissing)
	r.must(keyed(trade(1, Buy, 1), 80)) // 10
	duplicate(keyed(trade(1, Buy, 1), 80), KeyTrade, 10, 0, Accepted)
	// orders and trades share a key space
	duplicate(keyed(buy(1, 1, 100), 80), KeyTrade, 10, 0, Accepted)
	r.must(keyed(replace(1, Buy, 1, 4, 100), 81))
	duplicate(keyed(replace(1, Buy, 1, 4, 100), 81), KeyOrder, 1, 1, Accepted)
	r.refused(keyed(replace(1, Buy, 1, 0, 100), 82), Invalid)
	duplicate(keyed(replace(1, Buy, 1, 3, 100), 82), KeyOrder, 1, 1, Invalid)
	// The key comes before the gate's verdict and before everything else.
	r.must(control(PolicyControl, 0, 0, 1))
	duplicate(with(keyed(buy(1, 5, 100), 77), func(c *Command) { c.OrderRef = uint32(NotEntitled) }),
		KeyOrder, 1, 1, Accepted)
	r.must(policyOf(2, 0))
	// A replaced order that is gone still belongs to the first decision.
	r.must(cancel(1, 1))
	duplicate(keyed(replace(1, Buy, 1, 4, 100), 81), KeyOrder, 1, 1, Accepted)
	// A reference that was never issued names nothing to remember.
	r.refused(keyed(replace(1, Buy, 500, 4, 100), 83), Invalid)
	r.refused(keyed(replace(1, Buy, 500, 4, 100), 83), Invalid)
	r.refused(keyed(replace(1, Buy, 0, 4, 100), 83), Invalid)
	r.must(keyed(buy(1, 1, 100), 83))
	// 0 is no key.
	r.must(keyed(buy(1, 1, 100), noKey))
	r.must(keyed(buy(1, 1, 100), noKey))
}

// Two accounts may use one key, which is possible when the way keys are made is not secret. Each
// has its own first decision.
func TestOneKeyOfTwoAccountsIsTwoKeys(t *testing.T) {
	g := testGenesis()
	bookFor := func(account uint32) Command {
		terms := termed(swap(), func(t *ContractTerms) { t.AccountID = account })
		return terms.Command()
	}
	r := newRig(t, g)
	r.must(tick(aaa, 100))
	r.must(keyed(buy(1, 5, 100), 77))                     // order 1
	r.must(keyed(buy(2, 6, 100), 77))                     // order 2
	r.refused(keyed(buy(4, 5, 100), 77), AccountDisabled) // order 3
	r.must(keyed(trade(3, Buy, 1), 77))                   // no order
	r.must(keyed(replace(2, Buy, 2, 5, 100), 78))         // of order 2
	r.must(keyed(replace(1, Buy, 1, 4, 100), 78))         // of order 1
	r.must(keyed(bookFor(1), 77))                         // SW-8
	r.must(keyed(bookFor(2), 77))                         // SW-9
	again := func() {
		t.Helper()
		for _, tt := range []struct {
			give Command
			kind IdempotencyKind
			ref  uint64
		}{
			{keyed(buy(1, 5, 100), 77), KeyOrder, 1}, {keyed(buy(2, 6, 100), 77), KeyOrder, 2},
			{keyed(buy(4, 5, 100), 77), KeyOrder, 3}, {keyed(trade(3, Buy, 1), 77), KeyTrade, 5},
			{keyed(buy(2, 5, 100), 78), KeyOrder, 2}, {keyed(buy(1, 4, 100), 78), KeyOrder, 1},
			{keyed(bookFor(1), 77), KeyContract, 8}, {keyed(bookFor(2), 77), KeyContract, 9},
		} {
			said := r.do(tt.give)
			if kind, ref, _ := said[0].Duplicated(); said[0].Reason != Duplicate || kind != tt.kind ||
				ref != tt.ref {
				t.Errorf("%+v: %q, %d %d, want %d %d", tt.give, describe(said), kind, ref, tt.kind, tt.ref)
			}
		}
	}
	again()
	r.e = r.restored()
	again()
}

// The entry of a record of version 1 does not name its account. So it matches every record with its
// key, also in a replay and after a restore from a snapshot.
func TestKeysOfVersion1MeetEveryAccount(t *testing.T) {
	g := testGenesis()
	old := func(c Command) Command { c.Version = OldestVersion; return c }
	r := newRig(t, g)
	duplicate := func(c Command) {
		t.Helper()
		if said := r.do(c); said[0].Reason != Duplicate {
			t.Errorf("%+v: %q", c, describe(said))
		}
	}
	r.must(old(keyed(buy(1, 5, 100), 77)))
	duplicate(old(keyed(buy(2, 5, 100), 77)))
	duplicate(keyed(buy(2, 5, 100), 77))
	duplicate(keyed(buy(1, 5, 100), 77))
	r.must(keyed(buy(1, 5, 100), 78))
	duplicate(old(keyed(buy(2, 5, 100), 78)))
	r.must(keyed(buy(2, 5, 100), 78))
	var keys []KeyInfo
	r.e.EachKey(func(k KeyInfo) bool { keys = append(keys, k); return true })
	if got, want := fmt.Sprint(keys),
		"[{77 0 1 ACCEPTED false 0} {78 0 2 ACCEPTED true 1} {78 0 3 ACCEPTED true 2}]"; got != want {
		t.Errorf("keys %s, want %s", got, want)
	}
}

func TestEngineForgetsTheOldestKeys(t *testing.T) {
	g := testGenesis()
	g.Limits.IdempotencyCapacity = 3
	r := newRig(t, g)
	order := func(key int64) RiskReason {
		return r.do(keyed(flags(buy(1, 1, 100), FlagIOC), key))[0].Reason
	}
	for key := int64(1); key <= 4; key++ {
		if got := order(key); got != Accepted {
			t.Errorf("key %d: %v", key, got)
		}
	}
	for _, tt := range []struct {
		key  int64
		want RiskReason
	}{{2, Duplicate}, {3, Duplicate}, {4, Duplicate}, {1, Accepted}, {2, Accepted}, {4, Duplicate}} {
		if got := order(tt.key); got != tt.want {
			t.Errorf("key %d: %v, want %v", tt.key, got, tt.want)
		}
	}
}

// Compares the table with a map and a slice. A salt of 1 puts small keys into one bucket, so that
// most of them spill, and numbers start just before they wrap around.
func TestKeysMatchAModel(t *testing.T) {
	for _, capacity := range []int{1, 2, 3, 7, 64, 1000} {
		for _, salt := range []uint64{0, 1, rand.Uint64()} {
			t.Logf("capacity %d, salt %d", capacity, salt)
			rnd := seeded(t)
			var a ring.Arena
			k := newKeys(&a, capacity, salt)
			if a.Err() != nil {
				t.Fatal(a.Err())
			}
			if rnd.IntN(2) == 0 {
				k.number = -uint32(capacity) - uint32(rnd.IntN(500))
			}
			type id struct{ family, key uint64 }
			model := map[id]uint64{}
			var order []id
			for step := range 4000 {
				want := id{rnd.Uint64N(2), 1 + rnd.Uint64N(uint64(3*capacity))}
				if rnd.IntN(2) == 0 {
					want.key <<= 40 // equal lower halves
				}
				entry, slot := k.find(want.family, want.key, 0)
				ref, known := model[want]
				if known != (entry != nil) || known && entry.ref != ref {
					t.Fatalf("step %d: key %v found %+v, want %v %d", step, want, entry, known, ref)
				}
				if known {
					continue
				}
				k.remember(slot, want.key, uint64(step), want.family<<9)
				model[want] = uint64(step)
				if order = append(order, want); len(order) > capacity {
					delete(model, order[0])
					order = order[1:]
				}
				if k.count != len(order) || k.place(0).key != order[0].key {
					t.Fatalf("step %d: oldest of %d is %+v, want %v of %d", step, k.count, k.place(0), order[0],
						len(order))
				}
				if capacity > 64 && step%100 != 0 {
					continue
				}
				if err := (&Engine{keys: k}).checkKeys(); err != nil {
					t.Fatalf("step %d: %v", step, err)
				}
			}
			must.OK(t, a.Close())
		}
	}
}
