package feed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"posttrade/blotter"
	"posttrade/journal"
	"posttrade/matcher"
	"posttrade/ring/must"
)

// rig is a real journal that a test writes: an engine decides random commands, their blocks are
// appended and synced, and an own deriver with views of its own writes down the one true stream.
type rig struct {
	t       *testing.T
	genesis *matcher.Genesis
	j       *journal.Journal
	engine  *matcher.Engine
	random  *rand.Rand
	block   journal.Block
	id      []byte
	orders  uint32 // references so far
	millis  int64

	mu      sync.Mutex
	moved   *sync.Cond
	durable uint64
	waiting int // calls of WaitDurable that have not returned

	truth []frame            // of every kind; by the deriver, frame by frame
	books map[uint64][]image // by sequence: the books after the command
	d     *deriver
}

// frame is one event of the true stream.
type frame struct {
	position Position
	item     item
	text     string
}

// image is the book of a security.
type image struct{ bids, asks []blotter.Level }

const testSecurities = 3

func newRig(t *testing.T) *rig {
	t.Helper()
	g := &matcher.Genesis{Format: matcher.GenesisFormat, TickPx: 1000,
		Limits: matcher.Limits{MaxOrderQty: 1e6, MaxOrderNotional: 1e15, MaxPositionQty: 1e9,
			MaxConcentrationNotional: 1e18, CreditLimit: 1e18, PriceMaxAgeMillis: 1e12,
			PriceCollarBps: 0, IdempotencyCapacity: 1024, MaxAccounts: 16, MaxSecurities: 16,
			MaxContracts: 1024, MaxOpenOrders: 4096, RetainedOrders: 64}}
	for id := uint32(1); id <= 4; id++ {
		g.Accounts = append(g.Accounts, matcher.GenesisAccount{ID: id, Enabled: true})
	}
	for id := range testSecurities {
		g.Securities = append(g.Securities,
			matcher.GenesisSecurity{Ticker: fmt.Sprintf("S%d", id+1), Enabled: true})
	}
	r := &rig{t: t, genesis: g, random: rand.New(rand.NewPCG(7, 1)), millis: 1_700_000_000_000,
		books: map[uint64][]image{}}
	r.moved = sync.NewCond(&r.mu)
	var err error
	if r.j, err = journal.Open(t.TempDir(), journal.Options{ReserveBytes: 1,
		Fatal: func(err error) { t.Error(err) }}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.j.Close(); err != nil {
			t.Error(err)
		}
	})
	must.OK(t, r.j.Create(g.Marshal()))
	if r.engine, err = matcher.New(g); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.engine.Close() })
	views, err := blotter.NewViews(g)
	must.OK(t, err)
	t.Cleanup(func() { views.Close() })
	r.d = &deriver{views: views, ended: func(uint64, uint32) {}}
	r.d.emit = func(e *Event) {
		r.truth = append(r.truth, frame{e.Position,
			item{kind: e.Kind, security: e.SecurityID, account: e.AccountID},
			string(appendFrame(nil, e, render))})
	}
	return r
}

// render writes what the tests compare.
func render(b []byte, e *Event) []byte {
	switch e.Kind {
	case Book:
		return fmt.Appendf(b, "%s %d %d %d %d", e.Ticker, e.Side, e.Level.Px, e.Level.Qty, e.Level.Orders)
	case Snapshot:
		return fmt.Appendf(b, "%s %v %v", e.Ticker, e.Depth.Bids, e.Depth.Asks)
	case BBO:
		return fmt.Appendf(b, "%s %v %v", e.Ticker, e.Bid, e.Ask)
	case Order:
		return fmt.Appendf(b, "%d %s %s %d %d %d", e.Order.Number(), e.Order.ClientID(),
			e.Order.Status, e.Order.Leaves, e.Order.LimitPx, e.Order.LastPx)
	case Contract:
		return fmt.Appendf(b, "%d", e.Contract.ID)
	}
	return fmt.Appendf(b, "%d %d %d", e.Engine.TradeSeq, e.Engine.Px, e.Engine.Qty)
}

// Durable and WaitDurable implement Waiter.
func (r *rig) Durable() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.durable
}

func (r *rig) WaitDurable(inputSeq uint64, timeout time.Duration) error {
	until := time.Now().Add(timeout) // before the timer begins, which ends no wait before it
	timer := time.AfterFunc(timeout, func() {
		r.mu.Lock() // the waiter looks at the clock and waits under the same lock
		defer r.mu.Unlock()
		r.moved.Broadcast()
	})
	defer timer.Stop()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting++
	defer func() { r.waiting-- }()
	for r.durable < inputSeq {
		if !time.Now().Before(until) {
			return errors.New("not durable in time")
		}
		r.moved.Wait()
	}
	return nil
}

// command is a random command.
func (r *rig) command() matcher.Command {
	n := r.random.IntN
	r.millis += int64(n(3))
	c := matcher.NewCommand(matcher.OrderNew)
	c.AccountID, c.SecurityID = 1+uint32(n(4)), 1+uint32(n(testSecurities))
	c.Side, c.Qty = matcher.Side(n(2)), int32(1+n(50))
	c.LimitPx = int64(100_000_000 + 1000*n(12))
	switch kind := n(20); {
	case kind < 10:
		c.PriceTicks = int64(r.random.Uint64() >> 1)
		c.Flags = []uint16{0, 0, 0, matcher.FlagIOC, matcher.FlagPostOnly}[n(5)]
		if n(20) == 0 { // sequenced, and refused
			c.SecurityID = []uint32{0, testSecurities + 1, 1 << 30, matcher.UnknownTicker([]byte("NOPE")),
				math.MaxUint32}[n(5)]
		}
	case kind < 14:
		r.about(&c, matcher.OrderCancel)
	case kind < 17:
		r.about(&c, matcher.OrderReplace)
	case kind == 17:
		c = matcher.NewCommand(matcher.PriceTick)
		c.SecurityID, c.PriceTicks = 1+uint32(n(testSecurities)), 100_000_000
	case kind == 18:
		c = matcher.NewCommand(matcher.TradeNew)
		c.AccountID, c.SecurityID, c.Qty, c.PriceTicks = 1, 1+uint32(n(testSecurities)), 5, 0
	default:
		c = matcher.NewCommand(matcher.RestrictionControl)
		c.SecurityID, c.Side = 1+uint32(n(testSecurities)), matcher.Side(n(8)/7)
		c.PriceTicks = int64(r.engine.AppliedSeq())
	}
	c.EventTimeMillis = r.millis
	return c
}

// about makes a command of a type about an order that there was.
func (r *rig) about(c *matcher.Command, kind matcher.CommandType) {
	c.Type, c.OrderRef = kind, max(1, r.orders-min(r.orders, uint32(r.random.IntN(40))))
	if row, ok := r.d.views.Order(c.OrderRef); ok {
		c.AccountID, c.SecurityID, c.Side = row.AccountID, row.SecurityID, row.Side
	}
}

// write decides n random commands and makes them durable, some at a time.
func (r *rig) write(n int) {
	r.t.Helper()
	for n > 0 {
		batch := min(n, 1+r.random.IntN(200))
		n -= batch
		r.block.Reset()
		for range batch {
			r.decide()
		}
		commit, err := r.j.Append(&r.block)
		if err == nil {
			err = commit.Wait()
		}
		must.OK(r.t, err)
		r.mu.Lock()
		r.durable = r.engine.AppliedSeq()
		r.mu.Unlock()
		r.moved.Broadcast()
	}
}

func (r *rig) decide() {
	c := r.command()
	out := matcher.NewOutlet(1<<12, r.observe)
	r.id = nil
	if c.Type == matcher.OrderNew && c.PriceTicks != 0 && c.PriceTicks%3 == 0 {
		r.id = fmt.Appendf(nil, "id-%d", c.PriceTicks%1000)
	}
	r.engine.Apply(&c, out)
	out.Flush()
	var images []image
	for id := range uint32(testSecurities) {
		d := r.d.views.WholeDepth(id + 1)
		images = append(images, image{d.Bids, d.Asks})
	}
	r.books[r.engine.AppliedSeq()] = images
}

func (r *rig) observe(events []matcher.Event) {
	for i := range events {
		ev := &events[i]
		if ev.Flags&matcher.EventFirst != 0 {
			r.block.Command(ev.Cmd())
			if r.id != nil {
				r.block.ClientID(ev.InputSeq, r.id)
			}
		}
		if ev.Kind == matcher.EventFilled {
			fill := ev.Fill()
			r.block.Fill(&fill)
		}
		if ev.Kind == matcher.EventAccepted || ev.Kind == matcher.EventRejected {
			r.orders = max(r.orders, ev.OrderRef)
		}
		r.d.Observe(ev, r.id)
	}
}

// hub makes a hub over the journal.
func (r *rig) hub(o Options) *Hub {
	o.Journal, o.Durable, o.Render = r.j, r, render
	o.Report = func(err error) { r.t.Error(err) }
	o.Rebuild = func(wrap func(v *blotter.Views) journal.Views) journal.Rebuild {
		return journal.Rebuild{
			Engine: func(state io.Reader) (journal.Engine, error) {
				if state == nil {
					return matcher.New(r.genesis)
				}
				return matcher.ReadSnapshot(r.genesis, state)
			},
			Views: func(image io.Reader) (journal.Views, error) {
				v, err := (*blotter.Views)(nil), error(nil)
				if image == nil {
					v, err = blotter.NewViews(r.genesis)
				} else {
					v, err = blotter.ReadImage(r.genesis, image)
				}
				if err != nil {
					return nil, err
				}
				return wrap(v), nil
			},
		}
	}
	h := New(o)
	r.t.Cleanup(h.Close)
	return h
}

// snapshot writes a snapshot of the journal as it stands.
func (r *rig) snapshot(h *Hub) {
	r.t.Helper()
	s, err := journal.NewSnapshotter(r.j,
		h.o.Rebuild(func(v *blotter.Views) journal.Views { return &deriver{views: v} }), 0)
	if err == nil {
		_, err = s.Take(context.Background())
	}
	must.OK(r.t, err)
}

// open opens a reader.
func (r *rig) open(h *Hub, s Selection, start Start) *Reader {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	must.OK(r.t, h.Begin(ctx))
	return must.Get(h.Open(ctx, s, start))(r.t)
}

// until reads until everything up to a sequence was returned.
func (r *rig) until(reader *Reader, inputSeq uint64) string {
	r.t.Helper()
	var text strings.Builder
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for reader.At().InputSeq < inputSeq || len(reader.first) > 0 || reader.past != nil {
		piece, err := reader.Next(ctx, time.After(10*time.Millisecond))
		if err != nil {
			r.t.Fatalf("at %v, want %d: %v", reader.At(), inputSeq, err)
		}
		text.Write(bytes.Join(piece, nil))
	}
	return text.String()
}

// want is the true stream of a selection behind a position, up to a sequence.
func (r *rig) want(s *Selection, after Position, to uint64) string {
	var text strings.Builder
	for i := range r.truth {
		f := &r.truth[i]
		if after.before(f.position) && f.position.InputSeq <= to &&
			s.has(f.item.kind, f.item.security, f.item.account) {
			text.WriteString(f.text)
		}
	}
	return text.String()
}
