package blotter

import (
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"posttrade/matcher"
	"posttrade/ring/must"
)

// fillOf is the fill of a trade sequence in these tests: every field is computed from the sequence.
func fillOf(tradeSeq uint64) matcher.Fill {
	return matcher.Fill{
		TradeSeq: tradeSeq, InputSeq: 100 + tradeSeq/3*2, TimeMillis: int64(tradeSeq * 7),
		Px: int64(tradeSeq * 1000), OrderRef: uint32(tradeSeq + 1),
		AccountID: uint32(tradeSeq + 2), SecurityID: uint32(tradeSeq + 3),
		Qty: int32(tradeSeq&0xffff + 4), CounterRef: uint32(tradeSeq + 5),
		Side: matcher.Side(tradeSeq & 1), Flags: uint16(tradeSeq),
	}
}

func newTestBlotter(t testing.TB, capacity int) *Blotter {
	t.Helper()
	b := must.Get(New(capacity))(t)
	t.Cleanup(func() { b.Close() })
	return b
}

func appendTo(b *Blotter, from, to uint64) {
	for tradeSeq := from; tradeSeq <= to; tradeSeq++ {
		fill := fillOf(tradeSeq)
		b.Append(&fill)
	}
}

func TestBlotterMatchesModel(t *testing.T) {
	const seed = 5
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 3))
	for _, capacity := range []int{1, 2, 3, 7, 64} {
		for _, first := range []uint64{1, 2, 63, 1000} {
			b := newTestBlotter(t, capacity)
			var model []matcher.Fill
			for tradeSeq := first; tradeSeq < first+200; tradeSeq++ {
				appendTo(b, tradeSeq, tradeSeq)
				model = append(model, fillOf(tradeSeq))
				model = model[max(0, len(model)-capacity):]
				oldest := model[0].TradeSeq

				since, limit := uint64(rng.IntN(int(tradeSeq)+3)), rng.IntN(capacity+3)
				var want []matcher.Fill
				next := since
				for _, fill := range model {
					if fill.TradeSeq > since && len(want) < limit {
						want, next = append(want, fill), fill.TradeSeq
					}
				}
				got, gotNext, evicted := b.Page(since, limit, nil)
				if !slices.Equal(got, want) || gotNext != next || evicted != oldest-1 {
					t.Fatalf(
						"capacity %d, last %d: page since %d limit %d: %d fills, next %d, evicted %d; want "+
							"%d, %d, %d",
						capacity, tradeSeq, since, limit, len(got), gotNext, evicted, len(want), next, oldest-1)
				}
				if n := uint64(rng.IntN(int(tradeSeq) + 3)); true {
					fill, ok := b.ByTradeSeq(n)
					if kept := n >= oldest && n <= tradeSeq; ok != kept || ok && fill != fillOf(n) {
						t.Fatalf("capacity %d, last %d: fill %d: %v %+v", capacity, tradeSeq, n, ok, fill)
					}
				}
				inputSeq := fillOf(oldest).InputSeq + uint64(rng.IntN(capacity+4)) - 1
				want = nil
				for _, fill := range model {
					if fill.InputSeq == inputSeq {
						want = append(want, fill)
					}
				}
				got, whole := b.ByInputSeq(inputSeq, nil)
				wantWhole := oldest == 1 || fillOf(oldest).InputSeq < inputSeq
				if !slices.Equal(got, want) || whole != wantWhole {
					t.Fatalf("capacity %d, last %d: inputSeq %d: %v, whole %v, want %v, %v", capacity, tradeSeq,
						inputSeq, got, whole, want, wantWhole)
				}
				if b.LastSeq() != tradeSeq || b.Capacity() != capacity {
					t.Fatalf("last %d, capacity %d", b.LastSeq(), b.Capacity())
				}
			}
		}
	}
}

func TestEmptyBlotterHasNothing(t *testing.T) {
	b := newTestBlotter(t, 4)
	items, next, evicted := b.Page(0, 10, nil)
	fills, whole := b.ByInputSeq(1, nil)
	if len(items) != 0 || next != 0 || evicted != 0 || len(fills) != 0 || !whole {
		t.Errorf("page %v, next %d, evicted %d", items, next, evicted)
	}
	for _, tradeSeq := range []uint64{0, 1, math.MaxUint64} {
		if fill, ok := b.ByTradeSeq(tradeSeq); ok {
			t.Errorf("fill %d: %+v", tradeSeq, fill)
		}
	}
}

func TestPageEdges(t *testing.T) {
	b := newTestBlotter(t, 8)
	appendTo(b, 1, 20)
	dst := []matcher.Fill{fillOf(99)}
	for _, tt := range []struct {
		name       string
		since      uint64
		limit      int
		from, to   uint64 // nothing when from > to
		next       uint64
		wantedHole bool
	}{
		{"from the start, evicted", 0, 100, 13, 20, 20, true},
		{"just before the oldest", 12, 100, 13, 20, 20, false},
		{"limit 0", 12, 0, 1, 0, 12, false},
		{"limit below 0", 12, -1, 1, 0, 12, false},
		{"limit 1", 14, 1, 15, 15, 15, false},
		{"at the end", 20, 100, 1, 0, 20, false},
		{"beyond the end", 21, 100, 1, 0, 21, false},
		{"far beyond the end", math.MaxUint64, 100, 1, 0, math.MaxUint64, false},
		{"largest limit", 18, math.MaxInt, 19, 20, 20, false},
	} {
		items, next, evicted := b.Page(tt.since, tt.limit, dst)
		want := slices.Clone(dst)
		for n := tt.from; n <= tt.to; n++ {
			want = append(want, fillOf(n))
		}
		if !slices.Equal(items, want) || next != tt.next || evicted != 12 ||
			(evicted > tt.since) != tt.wantedHole {
			t.Errorf("%s: %v, next %d, evicted %d", tt.name, items, next, evicted)
		}
	}
}

func TestFillThatWasOverwrittenBeforeItsCopyIsNotReturned(t *testing.T) {
	b := newTestBlotter(t, 8)
	appendTo(b, 1, 8)
	if _, ok := b.copyOut(3); !ok {
		t.Error("fill 3 is not there")
	}
	appendTo(b, 9, 12)
	if fill, ok := b.copyOut(3); ok {
		t.Errorf("fill 3 is %+v after its slot was used again", fill)
	}
}

func TestAppendPassesOverFillsThatAreThere(t *testing.T) {
	b := newTestBlotter(t, 8)
	appendTo(b, 5, 9)
	appendTo(b, 3, 11)
	items, _, evicted := b.Page(0, 100, nil)
	if len(items) != 7 || items[0] != fillOf(5) || items[6] != fillOf(11) || evicted != 4 {
		t.Errorf("%d fills, evicted %d: %v", len(items), evicted, items)
	}
	mustPanic(t, "a hole", func() { appendTo(b, 13, 13) })
}

func TestDefaultCapacityAndOneThatIsTooLarge(t *testing.T) {
	if b := newTestBlotter(t, 0); b.Capacity() != DefaultCapacity {
		t.Errorf("capacity %d", b.Capacity())
	}
	if b, err := New(math.MaxInt - 1); err == nil {
		b.Close()
		t.Error("a capacity without memory for it: no error")
	}
}

func TestBlotterObservesFillsOnly(t *testing.T) {
	g := smallGenesis()
	s, b := newSource(t, g, 9), newTestBlotter(t, 50)
	var want []matcher.Fill
	for range 2000 {
		events := s.step()
		for i := range events {
			if events[i].Kind == matcher.EventFilled {
				want = append(want, events[i].Fill())
			}
			b.Observe(&events[i], nil)
		}
	}
	got, _, _ := b.Page(0, 1000, nil)
	if len(want) < 100 || !slices.Equal(got, want[len(want)-50:]) ||
		b.LastSeq() != s.engine.TradeSeq() {
		t.Errorf("%d of %d fills", len(got), len(want))
	}
}

// TestReadersNeverSeeTornOrMissingFills lets the writer lap its readers all the time.
func TestReadersNeverSeeTornOrMissingFills(t *testing.T) {
	const readers = 3
	last := uint64(20_000)
	if testing.Short() {
		last = 5_000
	}
	b := newTestBlotter(t, 5)
	var pages, lapped, reading atomic.Int64
	var wg sync.WaitGroup
	for range readers {
		reading.Add(1)
		wg.Go(func() {
			defer reading.Add(-1)
			since, dst := uint64(0), make([]matcher.Fill, 0, 64)
			for since < last {
				items, next, evicted := b.Page(since, 5, dst[:0])
				for i, fill := range items {
					if fill != fillOf(fill.TradeSeq) || i > 0 && fill.TradeSeq != items[i-1].TradeSeq+1 {
						t.Errorf("fill %+v after %d", fill, since)
						return
					}
				}
				if len(items) > 0 {
					pages.Add(1)
					if items[0].TradeSeq <= since || next != items[len(items)-1].TradeSeq {
						t.Errorf("since %d: from %d to %d, next %d", since, items[0].TradeSeq,
							items[len(items)-1].TradeSeq, next)
						return
					}
					if items[0].TradeSeq > since+1 {
						lapped.Add(1)
						if evicted < items[0].TradeSeq-1 {
							t.Errorf("since %d: starts at %d, evicted %d", since, items[0].TradeSeq, evicted)
							return
						}
					}
				}
				fills, _ := b.ByInputSeq(100+next/3*2, dst[:0])
				for _, fill := range fills {
					if fill != fillOf(fill.TradeSeq) {
						t.Errorf("fill %+v by input sequence", fill)
						return
					}
				}
				since = next
			}
		})
	}
	for tradeSeq := uint64(1); tradeSeq <= last; tradeSeq++ {
		appendTo(b, tradeSeq, tradeSeq)
		if tradeSeq%64 == 0 {
			for seen := pages.Load(); pages.Load() == seen && reading.Load() > 0; {
				runtime.Gosched()
			}
		}
	}
	wg.Wait()
	if lapped.Load() == 0 {
		t.Error("no reader was ever lapped")
	}
}

func TestBlotterDoesNotAllocate(t *testing.T) {
	b := newTestBlotter(t, 1000)
	next := uint64(1)
	if n := testing.AllocsPerRun(2000, func() { appendTo(b, next, next); next++ }); n != 0 {
		t.Errorf("append allocates %v times, want 0", n)
	}
	dst := make([]matcher.Fill, 0, 100)
	if n := testing.AllocsPerRun(100, func() { b.Page(next-100, 100, dst) }); n != 0 {
		t.Errorf("a page into enough memory allocates %v times, want 0", n)
	}
	if n := testing.AllocsPerRun(100, func() { b.ByInputSeq(100+(next-50)/3*2, dst) }); n != 0 {
		t.Errorf("a look-up by input sequence allocates %v times, want 0", n)
	}
}
