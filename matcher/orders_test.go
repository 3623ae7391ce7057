package matcher

import (
	"maps"
	"slices"
	"testing"

	"posttrade/matcher/flow"
	"posttrade/ring/must"
)

// A pool keeps its open orders and the last ones that were retired, and no others, also when an
// open order keeps its home for several laps, and when the retirement numbers wrap around.
func TestPoolForgetsRetiredOrders(t *testing.T) {
	const room, keeps = 64, 10
	pool := must.Get(newOrderPool(room))(t)
	defer pool.Close()
	pool.keeps, pool.retired = keeps, ^uint32(0)-500
	random := flow.NewRandom(3)
	open := map[uint32]ix{}
	var retained []uint32 // oldest first
	places := map[uint32]ix{}
	guests := 0
	for ref := uint32(1); ref < 3_000; ref++ {
		i, ok := pool.take(ref)
		if !ok {
			t.Fatalf("order %d: full with %d", ref, pool.live())
		}
		if i > ix(pool.homes) {
			guests++
		}
		open[ref] = i
		for len(open) > room-keeps-2 {
			gone := slices.Sorted(maps.Keys(open))[random.N(uint64(len(open)))]
			retire(pool, open[gone], places, &retained, gone, keeps)
			delete(open, gone)
		}
		if got, want := pool.live(), len(open)+len(retained); got != want {
			t.Fatalf("order %d: %d live, want %d", ref, got, want)
		}
		for r := uint32(1); r <= ref; r++ {
			want := open[r]
			if slices.Contains(retained, r) {
				want = places[r]
			}
			if got := pool.find(r); got != want {
				t.Fatalf("order %d: finds %d at %d, want %d", ref, r, got, want)
			}
		}
		seen := 0
		pool.each(func(ix) bool { seen++; return true })
		if seen != pool.live() {
			t.Fatalf("order %d: each gives %d of %d", ref, seen, pool.live())
		}
		if err := pool.check(); err != nil {
			t.Fatalf("order %d: %v", ref, err)
		}
	}
	if guests < 100 {
		t.Errorf("%d guests: homes were not in use for a lap", guests)
	}
}

// retire does with a pool what the engine's ring of retired orders does.
func retire(pool *orderPool, i ix, places map[uint32]ix, retained *[]uint32, ref uint32,
	keeps int) {
	pool.hot(i).setStatus(StatusCanceled)
	places[ref] = i
	*retained = append(*retained, ref)
	gone := ix(0)
	if len(*retained) > keeps {
		gone = places[(*retained)[0]]
		*retained = (*retained)[1:]
	}
	pool.retire(i, gone)
}
