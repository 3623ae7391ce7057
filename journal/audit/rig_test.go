package audit

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"testing"

	"posttrade/journal"
	"posttrade/journal/audit/lines"
	"posttrade/matcher"
	"posttrade/ring/must"
)

const noon = int64(1_700_000_000_000)

// smallGenesis has limits so narrow that commands reach most of them, and a ticker that JSON has to
// escape.
func smallGenesis() *matcher.Genesis {
	return &matcher.Genesis{
		Format: matcher.GenesisFormat, TickPx: 1000,
		Accounts: []matcher.GenesisAccount{{ID: 7, Enabled: true}, {ID: 3, Enabled: true},
			{ID: 900_001, Enabled: true}},
		Securities: []matcher.GenesisSecurity{
			{Ticker: "AAA", Enabled: true}, {Ticker: `B"\B`, Enabled: true},
			{Ticker: "<C&C>", Enabled: true, Halted: true},
		},
		Limits: matcher.Limits{
			MaxOrderQty: 1_000, MaxOrderNotional: 1e15, MaxPositionQty: 1_000_000,
			MaxConcentrationNotional: 1e17, CreditLimit: 1e17, PriceMaxAgeMillis: 10_000,
			IdempotencyCapacity: 24, MaxAccounts: 6, MaxSecurities: 6, MaxContracts: 40,
			MaxOpenOrders: 60, RetainedOrders: 20,
		},
	}
}

// venue is a journal with the engine that writes it. It keeps every event.
type venue struct {
	t       testing.TB
	dir     string
	genesis *matcher.Genesis
	j       *journal.Journal
	engine  *matcher.Engine
	out     *matcher.Outlet
	block   journal.Block
	events  []matcher.Event // all of them, unless forget
	said    []matcher.Event // of the last command
	forget  bool
	naive   *naive
}

func newVenue(t testing.TB, g *matcher.Genesis) *venue {
	t.Helper()
	v := &venue{t: t, dir: t.TempDir(), genesis: g, naive: newNaive(t, g)}
	text, err := json.Marshal(g)
	must.OK(t, err)
	v.open()
	must.OK(t, v.j.Create(text))
	v.engine, err = matcher.New(g)
	must.OK(t, err)
	v.out = matcher.NewOutlet(8, func(events []matcher.Event) { v.said = append(v.said, events...) })
	t.Cleanup(func() { must.OK(t, errors.Join(v.j.Close(), v.engine.Close())) })
	return v
}

// open opens the journal, in a mode without waits for syncs: these tests do not test syncing.
func (v *venue) open() {
	v.t.Helper()
	j := must.Get(journal.Open(v.dir, journal.Options{
		Durability: journal.DurabilityOS, Fatal: func(err error) { v.t.Errorf("fatal: %v", err) },
	}))(v.t)
	v.j = j
}

func (v *venue) reopen() {
	v.t.Helper()
	must.OK(v.t, v.j.Close())
	v.open()
}

// decide sequences a command and puts it into the block.
func (v *venue) decide(c matcher.Command) []matcher.Event {
	v.said = v.said[:0]
	v.engine.Apply(&c, v.out)
	v.out.Flush()
	for i := range v.said {
		if v.said[i].Flags&matcher.EventFirst != 0 {
			v.block.Command(v.said[i].Cmd())
		}
		if v.said[i].Kind == matcher.EventFilled {
			fill := v.said[i].Fill()
			v.block.Fill(&fill)
		}
	}
	if !v.forget {
		v.events = append(v.events, v.said...)
	}
	return v.said
}

// commit makes the block durable.
func (v *venue) commit() {
	if v.block.Commands() == 0 {
		return
	}
	c, err := v.j.Append(&v.block)
	if err == nil {
		err = c.Wait()
	}
	if err != nil {
		v.t.Error(err) // not Fatal: may be called on any goroutine
	}
	v.block.Reset()
}

// trade commits n random commands in blocks of random sizes.
func (v *venue) trade(f *flow, n int) {
	for left := n; left > 0; {
		size := min(left, 1+f.rng.IntN(300))
		for range size {
			f.heard(v.decide(f.command(v.engine)))
		}
		v.commit()
		left -= size
	}
}

func (v *venue) head() uint64 {
	seq, _ := v.j.Head()
	return seq
}

func (v *venue) rebuild(state io.Reader) (journal.Engine, error) {
	if state == nil {
		return matcher.New(v.genesis)
	}
	return matcher.ReadSnapshot(v.genesis, state)
}

func (v *venue) reporter() *Reporter { return New(v.j, v.rebuild, Options{}) }

func (v *venue) snapshot() {
	v.t.Helper()
	s, err := journal.NewSnapshotter(v.j, journal.Rebuild{Engine: v.rebuild}, 0)
	must.OK(v.t, err)
	_, err = s.Take(context.Background())
	must.OK(v.t, err)
}

// report makes a report and checks what holds for every report.
func (v *venue) report(from, to uint64) []byte {
	v.t.Helper()
	var all []byte
	count := 0
	total := must.Get(v.reporter().Write(context.Background(), from, to,
		func(records []byte, n int) error {
			if len(records) == 0 || len(records) > lines.ChunkBytes || records[len(records)-1] != '\n' ||
				bytes.Count(records, []byte("\n")) != n {
				v.t.Errorf("a chunk of %d bytes and %d records is not whole", len(records), n)
			}
			all = append(all, records...)
			count += n
			return nil
		}))(v.t)
	if total.Count != uint64(count) || total.SHA256 != sha256.Sum256(all) {
		v.t.Errorf("total %d %x of %d records", total.Count, total.SHA256[:4], count)
	}
	return all
}

// expected is the naive renderer's report of the same range.
func (v *venue) expected(from, to uint64) []byte { return v.naive.report(v.events, from, to) }

// flow draws commands of every kind. Most of them are meaningful.
type flow struct {
	rng    *rand.Rand
	time   int64
	issued uint32 // order references so far
	policy int64  // the version of the last policy
}

func newFlow(t testing.TB, seed uint64) *flow {
	t.Logf("seed %d", seed)
	return &flow{rng: rand.New(rand.NewPCG(seed, 1)), time: noon}
}

func (f *flow) heard(events []matcher.Event) {
	if ev := &events[0]; ev.Kind == matcher.EventAccepted || ev.Kind == matcher.EventRejected {
		f.issued = max(f.issued, ev.OrderRef)
	}
}

func (f *flow) pick(of ...uint32) uint32 { return of[f.rng.IntN(len(of))] }

// px lies on the grid of orders, key is 0 or one of a few.
func (f *flow) px() int64 { return 1000 * (10_000 + f.rng.Int64N(40)) }

func (f *flow) key() int64 { return int64(f.rng.IntN(2)) * (1 + f.rng.Int64N(80)) }

func (f *flow) command(e *matcher.Engine) matcher.Command {
	f.time += f.rng.Int64N(50)
	c := f.draw(e)
	if c.TemplateID == matcher.TemplateCommand {
		c.EventTimeMillis = f.time
	}
	return c
}

func (f *flow) of(t matcher.CommandType) matcher.Command {
	c := matcher.NewCommand(t)
	c.AccountID = f.pick(7, 7, 3, 3, 900_001, 900_001, 12, 13, 14)
	c.SecurityID = f.pick(1, 1, 1, 1, 2, 2, 2, 3, 4, 5, 6, 7, 0)
	c.Side = matcher.Side(f.rng.IntN(2))
	return c
}

func (f *flow) draw(e *matcher.Engine) matcher.Command {
	switch n := f.rng.IntN(100); {
	case n < 50:
		return f.order()
	case n < 83:
		return f.about(e, n)
	case n < 87:
		c := f.of(matcher.TradeNew)
		c.Qty, c.PriceTicks = 1+f.rng.Int32N(50), f.key()
		return c
	case n < 90:
		c := f.of(matcher.PriceTick)
		c.PriceTicks = f.px() + f.rng.Int64N(1000) // a feed's price need not be on the grid
		return c
	case n < 92:
		return f.booking()
	case n < 97:
		return f.control()
	case n < 99:
		return matcher.NewSymbolRegister([]string{"NEW", `"Q"`, "AAA", "ZZZ"}[f.rng.IntN(4)])
	default:
		if f.rng.IntN(2) == 0 {
			return matcher.NewCommand(matcher.SnapshotMark)
		}
		return matcher.NewRiskExtract(19_000, 1)
	}
}

func (f *flow) order() matcher.Command {
	c := f.of(matcher.OrderNew)
	c.Qty, c.LimitPx, c.PriceTicks = 1+f.rng.Int32N(50), f.px(), f.key()
	c.Flags = []uint16{0, 0, 0, 0, matcher.FlagIOC, matcher.FlagFOK,
		matcher.FlagPostOnly}[f.rng.IntN(7)]
	switch f.rng.IntN(20) {
	case 0:
		c.LimitPx = 0
	case 1:
		c.Qty = 2000
	case 2:
		c.OrderRef = uint32(matcher.PriceCollar)
	case 3:
		c.LimitPx = -5
	case 4:
		c.Qty = -7
	}
	return c
}

// about is a command about an order: a cancel, a replace or a force fill.
func (f *flow) about(e *matcher.Engine, n int) matcher.Command {
	c := f.of(matcher.OrderCancel)
	switch {
	case n >= 80:
		c = f.of(matcher.ForceFill)
		c.Qty, c.LimitPx = 1+f.rng.Int32N(20), f.px()
	case n >= 68:
		c = f.of(matcher.OrderReplace)
		c.Qty, c.LimitPx, c.PriceTicks = 1+f.rng.Int32N(60), f.px(), f.key()
	}
	c.OrderRef = f.issued + 1 - min(f.issued+1, f.rng.Uint32N(40))
	if o, ok := e.Order(c.OrderRef); ok && f.rng.IntN(20) > 0 {
		c.AccountID, c.SecurityID, c.Side = o.AccountID, o.SecurityID, o.Side
		if c.Type == matcher.OrderReplace && f.rng.IntN(3) == 0 {
			c.LimitPx = o.LimitPx
		}
	}
	return c
}

// booking is an OTC booking, mostly one that can be made.
func (f *flow) booking() matcher.Command {
	effective := uint16(f.rng.IntN(1000))
	terms := matcher.ContractTerms{
		AccountID: f.of(matcher.SwapBook).AccountID, Side: matcher.Side(f.rng.IntN(2)),
		Notional: 1 + f.rng.Int32N(1e6), FixedRate: f.rng.Int64N(100_000) - 50_000,
		Effective: effective, Maturity: effective + uint16(f.rng.IntN(50)), Convention: f.rng.Uint32N(6),
		Swaption: f.rng.IntN(2) == 0, Expiry: uint16(f.rng.IntN(200)),
		Style: matcher.ExerciseStyle(f.rng.IntN(4)),
	}
	c := terms.Command()
	c.PriceTicks = f.key()
	return c
}

func (f *flow) control() matcher.Command {
	switch f.rng.IntN(6) {
	case 0, 1:
		c := f.of(matcher.AccountControl)
		c.Side = matcher.Side(1 - f.rng.IntN(5)/4)
		return c
	case 2, 3:
		c := f.of(matcher.SecurityControl)
		c.Side = matcher.Side(f.pick(0, 1, 1, 1, 1, 3))
		return c
	case 4:
		c := f.of(matcher.RestrictionControl)
		c.Side = matcher.Side(f.rng.IntN(6) / 5)
		return c
	default:
		c := f.of(matcher.PolicyControl)
		f.policy += int64(f.rng.IntN(4)) // mostly a higher version
		c.Side, c.SecurityID, c.PriceTicks = matcher.Side(f.rng.IntN(6)/5), 0, f.policy
		return c
	}
}
