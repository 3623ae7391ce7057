package session

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"posttrade/matcher"
	"posttrade/matcher/session/client"
	"posttrade/matcher/session/wire"
	"posttrade/ring/must"
)

// truth is another engine with the same commands. Its best levels are computed from every order
// after every command.
type truth struct {
	mu       sync.Mutex
	commands []matcher.Command
}

func (h *truth) watch(ev *matcher.Event) {
	if ev.Flags&matcher.EventFirst != 0 {
		h.mu.Lock()
		h.commands = append(h.commands, *ev.Cmd())
		h.mu.Unlock()
	}
}

// bests are the best levels of all securities after each command; bests[0] is empty.
func (h *truth) bests(t *testing.T) []map[uint32]wire.Best {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	e := must.Get(matcher.New(testGenesis()))(t)
	defer e.Close()
	out := matcher.NewOutlet(1<<12, func([]matcher.Event) {})
	all := []map[uint32]wire.Best{{}}
	for i := range h.commands {
		must.OK(t, e.Replay(&h.commands[i], out))
		all = append(all, bestOf(e))
	}
	return all
}

func bestOf(e *matcher.Engine) map[uint32]wire.Best {
	bests := map[uint32]wire.Best{}
	e.EachOrder(func(o matcher.OrderInfo) bool {
		if !o.Open() {
			return true
		}
		b := bests[o.SecurityID]
		px, qty, orders := &b.BidPx, &b.BidQty, &b.BidOrders
		if o.Side == matcher.Sell {
			px, qty, orders = &b.AskPx, &b.AskQty, &b.AskOrders
		}
		switch better := o.LimitPx > *px == (o.Side == matcher.Buy); {
		case *orders == 0 || o.LimitPx != *px && better:
			*px, *qty, *orders = o.LimitPx, int64(o.Leaves), 1
		case o.LimitPx == *px:
			*qty += int64(o.Leaves)
			*orders++
		}
		bests[o.SecurityID] = b
		return true
	})
	return bests
}

// flow makes commands that rest, trade, change, cancel, and cancel by the hundred.
type flow struct {
	random *rand.Rand
	last   uint32
}

func (f *flow) next() matcher.Command {
	px := 100_000_000 + int64(f.random.IntN(21)-10)*10_000
	switch k := f.random.IntN(100); {
	case k < 50:
		f.last++
		return with(order(), func(c *matcher.Command) {
			c.AccountID, c.SecurityID = 1+f.random.Uint32N(3), 1+f.random.Uint32N(2)
			c.Side, c.Qty, c.LimitPx = matcher.Side(f.random.IntN(2)), 1+f.random.Int32N(20), px
			c.Flags = [...]uint16{0, 0, 0, matcher.FlagIOC, matcher.FlagFOK,
				matcher.FlagPostOnly}[f.random.IntN(6)]
			if f.random.IntN(12) == 0 {
				c.LimitPx, c.Flags = 0, 0
			}
		})
	case k < 68:
		return typed(matcher.OrderCancel, func(c *matcher.Command) { c.OrderRef = f.ref() })
	case k < 90:
		return typed(matcher.OrderReplace, func(c *matcher.Command) {
			c.OrderRef, c.Qty, c.LimitPx = f.ref(), 1+f.random.Int32N(25), px
		})
	case k < 92:
		return typed(matcher.ForceFill,
			func(c *matcher.Command) { c.OrderRef, c.Qty, c.LimitPx = f.ref(), 1, px })
	case k < 94:
		return typed(matcher.PriceTick,
			func(c *matcher.Command) { c.SecurityID, c.PriceTicks = 1+f.random.Uint32N(2), px })
	case k < 96:
		return typed(matcher.AccountControl, func(c *matcher.Command) {
			c.AccountID, c.Side = 1+f.random.Uint32N(3), matcher.Side(min(f.random.IntN(4), 1))
		})
	case k < 97:
		return typed(matcher.RestrictionControl,
			func(c *matcher.Command) { c.SecurityID, c.Side = 1+f.random.Uint32N(2), 1 })
	}
	return typed(matcher.RestrictionControl,
		func(c *matcher.Command) { c.SecurityID = 1 + f.random.Uint32N(2) })
}

// ref is a recent order.
func (f *flow) ref() uint32 { return f.last - min(f.last, f.random.Uint32N(60)) }

// send hands in n commands of the flow, several in each ticket, and waits for them. A command that
// names an order takes its account, security and side from the views.
func (f *flow) send(t *testing.T, r *rig, n int) {
	for sent := 0; sent < n; {
		size := min(1+f.random.IntN(32), n-sent)
		ticket, err := r.desk.Acquire(size)
		if err != nil {
			t.Error(err)
			return
		}
		for i := range size {
			c := ticket.Command(i)
			*c = f.next()
			c.EventTimeMillis = testTime
			if row, ok := r.views.Order(c.OrderRef); ok && c.OrderRef != 0 {
				c.AccountID, c.SecurityID, c.Side = row.AccountID, row.SecurityID, row.Side
			} else if c.OrderRef != 0 {
				c.AccountID, c.SecurityID = 1, aaa
			}
		}
		if err := ticket.Submit(); err != nil {
			t.Error(err)
			return
		}
		if err := ticket.Wait(0); err != nil {
			t.Error(err)
			return
		}
		ticket.Release()
		sent += size
	}
}

// watcher reads best levels until the end mark of a snapshot that is not older than the sequence
// last.
type watcher struct {
	changes []wire.Record // the changes as they happened
	now     map[uint32]wire.Best
	begun   uint64 // the first snapshot's sequence
	missed  uint64
}

// follow reads until the best levels of security are mark.
func (w *watcher) follow(c *client.Client, security uint32, mark wire.Best) error {
	w.now = map[uint32]wire.Best{}
	for whole := false; !whole || w.now[security] != mark; {
		r, err := c.Next()
		if err != nil {
			return err
		}
		switch {
		case r.Kind == wire.Gap:
			w.missed += r.Missed
		case r.Kind != wire.Top:
		case r.Flags&wire.FlagSnapshot == 0:
			w.changes = append(w.changes, *r)
			w.now[r.SecurityID] = r.Best()
		case r.SecurityID == 0:
			if whole = true; w.begun == 0 {
				w.begun = r.InputSeq
			}
		default:
			w.now[r.SecurityID] = r.Best()
		}
	}
	return nil
}

// Best levels are those of an independent book after every command: over a flow with replaces,
// cancels, immediate orders, forced fills and restricted securities, for readers that join when the
// book is already full and while it changes.
func TestTopsAreThoseOfTheBook(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	h := &truth{}
	r := newRig(t, func(r *rig) { r.watch = h.watch })
	f := &flow{random: rand.New(rand.NewPCG(seed, 1))}
	f.send(t, r, 500) // as after a restart: no event of these was tapped
	last := wire.Best{BidPx: 77_000_000, BidQty: 7, BidOrders: 1}
	var all, flowing sync.WaitGroup
	watchers := make([]watcher, 6)
	for i := range watchers {
		flowing.Go(func() { f.send(t, r, 400) })
		until(t, "in the flow", func() bool { return r.recorded.Load() >= uint64(600+400*i) })
		c := r.dial("", client.Options{Role: wire.Market, EventSlots: MaxSlots})
		all.Go(func() {
			if err := watchers[i].follow(c, 4, last); err != nil {
				t.Error(err)
			}
		})
		flowing.Wait()
	}
	r.register(t, "LAST")
	c := r.dial("", client.Options{})
	send(t, c, 1, with(order(),
		func(c *matcher.Command) { c.SecurityID, c.Qty, c.LimitPx, c.AccountID = 4, 7, 77_000_000, 5 }),
		"")
	all.Wait()
	bests := h.bests(t)
	for i := range watchers {
		if err := watchers[i].holdAgainst(bests); err != nil {
			t.Errorf("reader %d: %v", i, err)
		}
	}
}

// A reader that is too slow for its ring gets all best levels again, and has the right ones at the
// end.
func TestSlowReadersGetTheTopsAgain(t *testing.T) {
	r := newRig(t)
	c := r.dial("", client.Options{Role: wire.Market, EventSlots: 16})
	trader := r.dial("", client.Options{})
	const n = 100
	for i := range n { // each at a better price
		cmd := with(order(), func(
			c *matcher.Command) {
			c.LimitPx += int64(i) * 10_000
			c.SecurityID = aaa + uint32(i%2)
		})
		if got := send(t, trader, uint64(i), cmd, ""); got.Code != wire.Decided {
			t.Fatal(got)
		}
	}
	var w watcher
	must.OK(t, w.follow(c, bbb, wire.Best{BidPx: 100_990_000, BidQty: 5, BidOrders: 1}))
	for end := false; !end || w.now[aaa] != (wire.Best{BidPx: 100_980_000, BidQty: 5, BidOrders: 1}); {
		switch rec := next(t, c); {
		case rec.Kind == wire.Gap:
			w.missed += rec.Missed
		case rec.SecurityID == 0:
			end = true
		default:
			w.now[rec.SecurityID] = rec.Best()
		}
	}
	if w.missed == 0 {
		t.Error("nothing was missed")
	}
	if m := r.server.Metrics(); m.Missed != w.missed || m.Tops == 0 {
		t.Errorf("metrics %+v", m)
	}
}

// Best levels are kept while a session reads them.
func TestTopsEndWithTheirReaders(t *testing.T) {
	r := newRig(t)
	copies := r.dial("", client.Options{Role: wire.DropCopy})
	one := r.dial("", client.Options{Role: wire.Market})
	if end := next(t, one); end.Kind != wire.Top || end.SecurityID != 0 ||
		end.Flags != wire.FlagSnapshot {
		t.Fatalf("an empty book: %+v", end)
	}
	one.Close()
	until(t, "left", func() bool { return r.server.Metrics().Feeds == 1 })
	trader := r.dial("", client.Options{})
	send(t, trader, 1, order(), "")
	if got := next(t, copies); got.InputSeq != 1 {
		t.Errorf("%+v", got)
	}
	again := r.dial("", client.Options{Role: wire.Market})
	if got := next(t, again); got.SecurityID != aaa ||
		got.Best() != (wire.Best{BidPx: 100_000_000, BidQty: 5, BidOrders: 1}) {
		t.Errorf("%+v", got)
	}
}

// holdAgainst compares the changes since the snapshot, and the best levels at the end, with bests.
func (w *watcher) holdAgainst(bests []map[uint32]wire.Best) error {
	end := bests[len(bests)-1]
	if got := maps.Clone(w.now); !maps.EqualFunc(got, end,
		func(a, b wire.Best) bool { return a == b }) {
		maps.DeleteFunc(got, func(_ uint32, b wire.Best) bool { return b == wire.Best{} })
		if !maps.Equal(got, end) {
			return fmt.Errorf("knows %+v, want %+v", got, end)
		}
	}
	if w.missed != 0 || w.begun == 0 || int(w.begun) >= len(bests) {
		return fmt.Errorf("begun at %d of %d, missed %d", w.begun, len(bests)-1, w.missed)
	}
	told := slices.DeleteFunc(w.changes, func(r wire.Record) bool { return r.InputSeq <= w.begun })
	for seq := int(w.begun) + 1; seq < len(bests); seq++ {
		for security := uint32(1); security <= 4; security++ {
			want := bests[seq][security]
			if want == bests[seq-1][security] {
				continue
			}
			if len(told) == 0 || told[0].InputSeq != uint64(seq) || told[0].SecurityID != security ||
				told[0].Best() != want {
				return fmt.Errorf("sequence %d security %d: want %+v, told %+v", seq, security, want,
					told[:min(1, len(told))])
			}
			told = told[1:]
		}
	}
	if len(told) != 0 {
		return fmt.Errorf("told %+v, which did not happen", told[0])
	}
	return nil
}

// register makes a security and an account for it through the desk.
func (r *rig) register(t *testing.T, ticker string) {
	t.Helper()
	account := typed(matcher.AccountControl, func(c *matcher.Command) { c.AccountID, c.Side = 5, 1 })
	for _, c := range []matcher.Command{matcher.NewSymbolRegister(ticker), account,
		typed(matcher.SecurityControl,
			func(c *matcher.Command) { c.SecurityID, c.Side = 4, matcher.SecurityEnabled })} {
		ticket := must.Get(r.desk.Acquire(1))(t)
		*ticket.Command(0) = c
		must.OK(t, ticket.Submit())
		must.OK(t, ticket.Wait(0))
		if a := ticket.Answer(0); a.Refused() {
			t.Fatalf("%s: %v", ticker, a.Reason)
		}
		ticket.Release()
	}
}

// check asserts the invariants of exact best levels.
func (t *tops) check() error {
	type place struct {
		security uint32
		side     matcher.Side
		rank     int64
	}
	sums := map[place]priceLevel{}
	for ref, o := range t.orders {
		if o.leaves <= 0 || !o.rests {
			return fmt.Errorf("order %d: %+v", ref, o)
		}
		at := place{o.security, o.side, rankOf(o.side, o.px)}
		r := sums[at]
		sums[at] = priceLevel{at.rank, r.qty + int64(o.leaves), r.orders + 1}
	}
	for security := range t.books {
		for side := range t.books[security].sides {
			levels := t.books[security].sides[side].levels
			for i, r := range levels {
				at := place{uint32(security), matcher.Side(side), r.rank}
				if sums[at] != r || i > 0 && levels[i-1].rank >= r.rank {
					return fmt.Errorf("security %d level %d: %+v, orders sum up to %+v", security, i, r, sums[at])
				}
				delete(sums, at)
			}
		}
	}
	if len(sums) != 0 {
		return fmt.Errorf("levels missing: %+v", sums)
	}
	return nil
}

// A snapshot that begins in the middle of the securities has all of them before its end, also when
// a security comes meanwhile.
func TestSnapshotIsWholeWhenSecuritiesCome(t *testing.T) {
	r := newRig(t)
	_, one := idleServer(t, wire.Market, r.o)
	layout := one.layout()
	inbox := must.Get(wire.OpenInbox(one.regions[1], &layout,
		wire.PageAt(one.regions[0], int(layout.ClientPage))))(t)
	books := make([]book, 8) // by security, from 1
	for i := range books[1:] {
		books[1+i].used = true
	}
	s := &tops{books: books[:4], exact: true}
	one.cursor = 2 // of an earlier snapshot
	one.owe(s)
	s.books = books
	one.payTops(s)
	one.out.Flush()
	var got []uint32
	records := make([]wire.Record, 16)
	for _, record := range records[:inbox.Next(records)] {
		got = append(got, record.SecurityID)
	}
	if want := []uint32{2, 3, 4, 5, 6, 7, 1, 0}; !slices.Equal(got, want) {
		t.Errorf("securities %v, want %v", got, want)
	}
}
