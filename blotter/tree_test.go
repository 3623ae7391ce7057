package blotter

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"posttrade/matcher"
	"posttrade/ring"
	"posttrade/ring/must"
)

// checkShape asserts the invariants of a tree's branches, and returns how many it has.
func checkShape(m *branches, t *tree) (count int, err error) {
	if t.root == 0 {
		return 0, nil
	}
	var below func(at, height uint32, least, most uint64) error
	below = func(at, height uint32, least, most uint64) error {
		b := &m.all[at]
		count++
		if b.count == 0 || b.count > fanout {
			return fmt.Errorf("branch %d has %d entries", at, b.count)
		}
		for i := range b.count {
			lo, hi := least, most
			if i > 0 || height == 1 {
				lo = b.keys[i]
			}
			if i+1 < b.count {
				hi = b.keys[i+1] - 1
			}
			if lo < least || hi > most || lo > hi {
				return fmt.Errorf("branch %d: entry %d covers %d to %d, the branch %d to %d", at, i, lo, hi,
					least, most)
			}
			if height > 1 {
				if err := below(b.kids[i], height-1, lo, hi); err != nil {
					return err
				}
			}
		}
		return nil
	}
	if t.height > 1 && m.all[t.root].count < 2 {
		return 0, fmt.Errorf("root has %d entries at height %d", m.all[t.root].count, t.height)
	}
	return count, below(t.root, t.height, 0, math.MaxUint64)
}

func TestLevelsMatchMap(t *testing.T) {
	const seed, most, steps = 11, 3000, 16_000
	t.Logf("seed %d", seed)
	for name, px := range map[string]func(r *rand.Rand, step int) int64{
		"narrow":    func(r *rand.Rand, _ int) int64 { return 1 + r.Int64N(50) },
		"wide":      func(r *rand.Rand, _ int) int64 { return 1 + r.Int64N(1<<62) },
		"roaming":   func(r *rand.Rand, step int) int64 { return 1 + int64(step)*7 + r.Int64N(300) },
		"falling":   func(r *rand.Rand, step int) int64 { return 1<<40 - int64(step)*7 - r.Int64N(300) },
		"ascending": func(_ *rand.Rand, step int) int64 { return int64(step + 1) },
	} {
		rng := rand.New(rand.NewPCG(seed, 2))
		var a ring.Arena
		l := newLevels(&a, most, 1)
		want := [2]map[int64]Level{{}, {}}
		type resting struct {
			level  uint32
			side   matcher.Side
			leaves int32
		}
		var orders []resting
		highest := 0
		for step := range steps {
			// It fills up, stays full, and empties to the last level.
			grow := step < steps/4 || step < steps*3/5 && rng.IntN(2) == 0
			if grow && len(orders) < most {
				o := resting{side: matcher.Side(rng.IntN(2)), leaves: 1 + rng.Int32N(9)}
				at := px(rng, step)
				o.level = l.add(1, o.side, at, o.leaves)
				w := want[o.side][at]
				want[o.side][at] = Level{Px: at, Qty: w.Qty + int64(o.leaves), Orders: w.Orders + 1}
				orders = append(orders, o)
			} else if len(orders) > 0 {
				i := rng.IntN(len(orders))
				if name == "roaming" || name == "falling" {
					i = min(i, rng.IntN(200)) // the old ones go first
				}
				o := orders[i]
				orders = slices.Delete(orders, i, i+1)
				at := l.all[o.level].px
				l.leave(o.level, o.leaves)
				w := want[o.side][at]
				w.Qty, w.Orders = w.Qty-int64(o.leaves), w.Orders-1
				if want[o.side][at] = w; w.Orders == 0 {
					delete(want[o.side], at)
				}
			}
			if step%500 > 2 && step < steps-50 {
				continue
			}
			branches, live := 0, len(want[0])+len(want[1])
			for side := range want {
				tree := &l.trees[2+side]
				n, err := checkShape(&l.branches, tree)
				if err != nil {
					t.Fatalf("%s, step %d: %v", name, step, err)
				}
				branches += n
				sorted := slices.SortedFunc(maps.Values(want[side]), func(a, b Level) int {
					if side == int(matcher.Buy) {
						a, b = b, a
					}
					return int(min(1, max(-1, a.Px-b.Px)))
				})
				got := l.copySide(uint32(2+side), make([]Level, 0, most+1))
				if !slices.Equal(got, sorted) {
					t.Fatalf("%s, step %d, side %d:\n got %v\nwant %v", name, step, side, got, sorted)
				}
			}
			highest = max(highest, branches*100/max(live, 100))
		}
		if len(want[0])+len(want[1]) != 0 || l.trees[2].root != 0 || l.trees[3].root != 0 {
			t.Errorf("%s: %d levels left", name, len(want[0])+len(want[1]))
		}
		if highest > 25 {
			t.Errorf("%s: %d branches for 100 levels", name, highest)
		}
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestTreeMatchesMapInWaves empties and refills narrow ranges of a high tree, so that branches
// become empty beside full ones and keys return below the lowest key that a branch has held.
func TestTreeMatchesMapInWaves(t *testing.T) {
	const seed = 12
	most, waves := 8000, 3000
	if testing.Short() {
		most, waves = 2000, 800
	}
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 6))
	m, tr := &branches{all: make([]branch, most)}, &tree{}
	var keys []uint64 // sorted; key k has level k%most+1
	turn := func(k uint64) {
		at, there := slices.BinarySearch(keys, k)
		if got := m.search(tr, k); (got != 0) != there || there && got != uint32(k%uint64(most))+1 {
			t.Fatalf("key %d leads to %d, there %v", k, got, there)
		}
		if there {
			m.remove(tr)
			keys = slices.Delete(keys, at, at+1)
		} else {
			m.insert(tr, k, uint32(k%uint64(most))+1)
			keys = slices.Insert(keys, at, k)
		}
	}
	for range most {
		turn(rng.Uint64N(1 << 40))
	}
	for wave := range waves {
		from := rng.IntN(len(keys))
		stretch := slices.Clone(keys[from:min(len(keys), from+1+rng.IntN(80))])
		rng.Shuffle(len(stretch), func(i, j int) { stretch[i], stretch[j] = stretch[j], stretch[i] })
		for _, k := range stretch {
			turn(k)
		}
		lo, hi := slices.Min(stretch), slices.Max(stretch)
		back := rng.IntN(2 * len(stretch))
		if len(keys)+back > most {
			back = 0
		}
		for range back {
			turn(lo + rng.Uint64N(hi-lo+1))
		}
		if wave%50 == 0 || wave < 50 {
			if _, err := checkShape(m, tr); err != nil {
				t.Fatalf("wave %d: %v", wave, err)
			}
			got := make([]uint32, 0, len(keys))
			m.each(tr, func(level uint32) bool { got = append(got, level); return true })
			if !slices.EqualFunc(got, keys,
				func(level uint32, k uint64) bool { return level == uint32(k%uint64(most))+1 }) {
				t.Fatalf("wave %d: %d levels out of order", wave, len(got))
			}
		}
		if len(keys) < most/2 {
			for range most / 4 {
				turn(rng.Uint64N(1 << 40))
			}
		}
	}
	for len(keys) > 0 {
		turn(keys[rng.IntN(len(keys))])
	}
	if tr.root != 0 || tr.height != 0 || tr.count != 0 {
		t.Errorf("an empty tree is %+v", tr)
	}
}

// FuzzTreeMatchesMap replays a list of keys: it removes a key that is there and inserts one that is
// not. The upper bits of a byte spread the keys.
func FuzzTreeMatchesMap(f *testing.F) {
	f.Add([]byte("the quick brown fox jumps over the lazy dog"))
	f.Add(slices.Concat(make([]byte, 300),
		[]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20}))
	f.Fuzz(func(t *testing.T, tape []byte) {
		tape = tape[:min(len(tape), 2000)]
		m, tr := &branches{all: make([]branch, len(tape)+maxHeight)}, &tree{}
		want := map[uint64]uint32{}
		key := uint64(0)
		for i, b := range tape {
			key = key*31 + uint64(b>>1)
			k := key % 512
			if b&1 == 0 {
				k = key
			}
			level, there := want[k]
			if got := m.search(tr, k); got != level {
				t.Fatalf("step %d: key %d leads to %d, want %d", i, k, got, level)
			}
			if there {
				m.remove(tr)
				delete(want, k)
			} else {
				m.insert(tr, k, uint32(i+1))
				want[k] = uint32(i + 1)
			}
			if i%32 != 0 {
				continue
			}
			if _, err := checkShape(m, tr); err != nil {
				t.Fatalf("step %d: %v", i, err)
			}
		}
		must.Get(checkShape(m, tr))(t)
		var got []uint32
		m.each(tr, func(level uint32) bool {
			got = append(got, level)
			return true
		})
		var sorted []uint32
		for _, k := range slices.Sorted(maps.Keys(want)) {
			sorted = append(sorted, want[k])
		}
		if !slices.Equal(got, sorted) {
			t.Fatalf("got %v, want %v", got, sorted)
		}
	})
}
