package matcher

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"posttrade/ring/must"
)

// mostVisits is how many pages one command may look at besides its own leaf: all heights of the
// tree up and down again, once for the level that it leaves and once for the one that it makes.
const mostVisits = 4 * 11

func newTortured(t *testing.T, room int, sink BookSink) *Book {
	t.Helper()
	b := must.Get(NewBook(BookOptions{MaxOrders: room, Sink: sink}))(t)
	t.Cleanup(func() { b.Close() })
	return b
}

// mustAccept runs one command and returns how many pages the command looked at.
func mustAccept(t *testing.T, b *Book, do func() Outcome) uint64 {
	t.Helper()
	before := b.ladder.pages.visits
	if got := do(); got.Reject != BookOK {
		t.Fatalf("refused: %+v", got)
	}
	return b.ladder.pages.visits - before
}

// TestBookOfWidePricesStaysCheap moves 100,000 levels over 2^41 ticks and to both ends of int64.
// Then it empties the book by cancels in any order and a sweep.
func TestBookOfWidePricesStaysCheap(t *testing.T) {
	const levels = 100_000
	r := rand.New(rand.NewPCG(1, 3))
	book := newTortured(t, levels, nil)
	var worst, total uint64
	count := func(visits uint64) { worst, total = max(worst, visits), total+visits }
	prices := map[int64]bool{}
	for id := uint32(1); id <= levels; id++ {
		px := r.Int64N(1 << 40)
		switch id % 100 {
		case 0:
			px = math.MaxInt64 - r.Int64N(1000)
		case 1:
			px = r.Int64()
		}
		side := Side(id >> 1 & 1)
		if side == Buy {
			px = -1 - px
		}
		prices[px] = true
		count(mustAccept(t, book, func() Outcome { return book.Limit(id, 0, side, px, 1) }))
	}
	g := book.ladder.pages
	must.OK(t, book.check())
	if used := int(g.highLeaf + g.highInner); used > 2*levels {
		t.Errorf("%d pages for %d levels", used, len(prices))
	}
	for _, n := range r.Perm(levels)[:levels/2] {
		count(mustAccept(t, book, func() Outcome { return book.Cancel(uint32(n) + 1) }))
	}
	must.OK(t, book.check())
	if mean := float64(total) / (levels * 3 / 2); worst > mostVisits || mean > 12 {
		t.Errorf("pages visited: %.1f a command, worst %d; allowed are 12 and %d", mean, worst,
			mostVisits)
	}

	before, left := g.visits, book.Len()
	for side := range Side(2) {
		book.New(BookOrder{ID: 1<<20 + uint32(side), Side: side, Qty: math.MaxInt32, Flags: FlagMarket})
	}
	if book.Len() != 0 || book.ladder.root != 0 {
		t.Errorf("%d orders left after the sweep, root %x", book.Len(), book.ladder.root)
	}
	if visits := g.visits - before; visits > uint64(left)*mostVisits/2 {
		t.Errorf("the sweep of %d levels visited %d pages", left, visits)
	}
	must.OK(t, book.check())
}

// TestBookGivesPagesBack moves the prices of a small book: the book must not need more pages than
// it has levels at one time.
func TestBookGivesPagesBack(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 3))
	book := newTortured(t, 64, nil)
	for id := uint32(1); id <= 50_000; id++ {
		px := int64(id)*977 + r.Int64N(1<<uint(1+id%50))
		book.Limit(id, 0, Buy, px, 1)
		if id > 60 {
			book.Cancel(id - 60)
		}
	}
	if g := book.ladder.pages; g.highLeaf > 64 || g.highInner > 63 {
		t.Errorf("%d leaves and %d inner pages for at most 61 levels", g.highLeaf, g.highInner)
	}
	must.OK(t, book.check())
}

// TestBookOfOneCrowdedLevelStaysCheap cancels 40,000 of 50,000 orders of a price from the middle.
// The others must still trade in the order in which they came.
func TestBookOfOneCrowdedLevelStaysCheap(t *testing.T) {
	const crowd = 50_000
	r := rand.New(rand.NewPCG(3, 3))
	var fills fillOrder
	book := newTortured(t, crowd, &fills)
	var visits uint64
	for id := uint32(1); id <= crowd; id++ {
		visits += mustAccept(t, book, func() Outcome { return book.Limit(id, 0, Sell, 100, 1) })
	}
	for _, n := range r.Perm(crowd)[:crowd*4/5] {
		visits += mustAccept(t, book, func() Outcome { return book.Cancel(uint32(n) + 1) })
	}
	must.OK(t, book.check())
	if visits > 1 {
		t.Errorf("%d pages visited for one level", visits)
	}
	book.Limit(crowd+1, 0, Buy, 100, crowd)
	if fills.count != crowd/5 || fills.disorder != 0 {
		t.Errorf("%d fills, %d of them out of turn; want %d and 0", fills.count, fills.disorder, crowd/5)
	}
}

// fillOrder counts fills with a maker that is not younger than the one before.
type fillOrder struct {
	last            uint32
	count, disorder int
}

func (f *fillOrder) Filled(maker, _ uint32, _ int64, _ int32) {
	if maker <= f.last {
		f.disorder++
	}
	f.last = maker
	f.count++
}

func (f *fillOrder) Prevented(_, _ uint32, _ int32) {}

// TestPoolFindsEveryReference uses references that share a home, and references from many laps, and
// bounds the length of their chains.
func TestPoolFindsEveryReference(t *testing.T) {
	const room = 1 << 12
	for _, step := range []uint32{1, 3, 1 << 4, 1 << 12, 1 << 13, 1 << 19, 0x9e3779b1} {
		pool := must.Get(newOrderPool(room))(t)
		at := map[uint32]ix{}
		for n := uint32(1); len(at) < room; n++ {
			ref := n * step
			if ref == 0 || at[ref] != 0 {
				ref = n // the steps have wrapped around uint32
			}
			if at[ref] != 0 {
				continue
			}
			i, ok := pool.take(ref)
			if !ok {
				t.Fatalf("step %d: full at %d", step, len(at))
			}
			at[ref] = i
		}
		if _, ok := pool.take(1<<31 + 1); ok || !pool.full() {
			t.Errorf("step %d: took one too many", step)
		}
		must.OK(t, pool.check())
		longest := 0
		for _, i := range pool.guests {
			length := 0
			for ; i != 0; i = pool.orders[i].chain {
				length++
			}
			longest = max(longest, length)
		}
		if longest > 16 {
			t.Errorf("step %d: a chain of %d orders", step, longest)
		}
		for ref, i := range at {
			if got := pool.find(ref); got != i {
				t.Fatalf("step %d: ref %d is %d, found %d", step, ref, i, got)
			}
			pool.drop(i)
			if pool.find(ref) != 0 {
				t.Fatalf("step %d: ref %d found after it was dropped", step, ref)
			}
		}
		if err := pool.check(); err != nil || pool.live() != 0 {
			t.Fatalf("step %d: %d left: %v", step, pool.live(), err)
		}
		if pool.find(0) != 0 {
			t.Errorf("step %d: reference 0 found", step)
		}
		pool.Close()
	}
}

func TestBookCapacityIsChecked(t *testing.T) {
	for _, orders := range []int{-1, MaxOrders + 1} {
		if _, err := NewBook(BookOptions{MaxOrders: orders}); !errors.Is(err, ErrCapacity) {
			t.Errorf("book for %d orders: %v, want ErrCapacity", orders, err)
		}
		if _, err := newPages(orders); !errors.Is(err, ErrCapacity) {
			t.Errorf("pages for %d orders: %v, want ErrCapacity", orders, err)
		}
	}
	memory := must.Get(NewBookMemory(1))(t)
	defer memory.Close()
	memory.books = maxSecurity
	if _, err := memory.NewBook(nil); !errors.Is(err, ErrCapacity) {
		t.Errorf("a book too many: %v, want ErrCapacity", err)
	}
}

// TestBooksOfOneShelfDoNotSeeEachOther uses one id space for two books.
func TestBooksOfOneShelfDoNotSeeEachOther(t *testing.T) {
	memory := must.Get(NewBookMemory(8))(t)
	defer memory.Close()
	one, _ := memory.NewBook(nil)
	two, _ := memory.NewBook(nil)
	one.Limit(1, 0, Buy, 100, 5)
	if got := two.Cancel(1); got.Reject != BookUnknownID {
		t.Errorf("cancel of another book's order: %+v", got)
	}
	if got := two.Modify(1, 100, 1); got.Reject != BookUnknownID {
		t.Errorf("modify of another book's order: %+v", got)
	}
	if got := two.Limit(1, 0, Sell, 100, 5); got.Reject != BookDuplicateID {
		t.Errorf("id of another book's order: %+v", got)
	}
	if got := two.Limit(9, 0, Sell, 100, 5); got.Reject != BookOK || !got.Rests || memory.Len() != 2 {
		t.Errorf("order beside another book's: %+v, %d in the memory", got, memory.Len())
	}
	if got := one.Cancel(1); got.Reject != BookOK || got.Leaves != 5 {
		t.Errorf("cancel: %+v", got)
	}
	if err := errors.Join(one.check(), two.check(), one.Close()); err != nil {
		t.Error(err)
	}
}

// TestBookDoesNotAllocate makes every call with every flag.
func TestBookDoesNotAllocate(t *testing.T) {
	book := newTortured(t, 1<<10, &fillOrder{})
	out := make([]BookEvent, 0, 64)
	id := uint32(0)
	next := func() uint32 { id++; return id }
	work := func() {
		a, b := next(), next()
		book.Limit(a, 1, Sell, int64(id)*1_000_003, 9)
		book.Limit(b, 2, Sell, int64(id)*1_000_003, 9)
		book.Limit(next(), 3, Buy, int64(id)*1_000_003, 4)
		book.New(BookOrder{ID: next(), Owner: 1, Side: Buy, Px: math.MaxInt64, Qty: 1, Flags: FlagFOK})
		book.New(BookOrder{ID: next(), Side: Buy, Px: math.MaxInt64, Qty: 1, Flags: FlagIOC})
		book.New(BookOrder{ID: next(), Side: Sell, Qty: 1, Flags: FlagMarket})
		book.New(BookOrder{ID: next(), Side: Sell, Px: math.MaxInt64, Qty: 1, Flags: FlagPostOnly})
		book.Cancel(id)
		book.Modify(b, math.MinInt64+int64(id), 3)
		out = book.Apply(BookCommand{Kind: BookCancel, Order: BookOrder{ID: a}}, out[:0])
		out = book.Apply(BookCommand{Kind: BookCancel, Order: BookOrder{ID: b}}, out[:0])
	}
	if n := testing.AllocsPerRun(1_000, work); n != 0 {
		t.Errorf("%v allocations a round, want 0", n)
	}
	if err := book.check(); err != nil {
		t.Error(err)
	}
}
