package evidence

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"posttrade/journal"
	"posttrade/journal/asof"
	"posttrade/matcher"
	"posttrade/ring/must"
)

func testGenesis() *matcher.Genesis {
	g := &matcher.Genesis{
		Format: matcher.GenesisFormat, TickPx: 1000, EvidenceKey: matcher.NewEvidenceKey(),
		Securities: []matcher.GenesisSecurity{{Ticker: "AAA", Enabled: true},
			{Ticker: "B", Enabled: true}},
		Limits: matcher.Limits{
			MaxOrderQty: 1_000, MaxOrderNotional: 1e15, MaxPositionQty: 1e9,
			MaxConcentrationNotional: 1e18, CreditLimit: 1e18, PriceMaxAgeMillis: 1e12,
			IdempotencyCapacity: 1024, MaxAccounts: 16, MaxSecurities: 8, MaxContracts: 4096,
			MaxOpenOrders: 4096, RetainedOrders: 64,
		},
	}
	for id := range uint32(5) {
		g.Accounts = append(g.Accounts, matcher.GenesisAccount{ID: id + 1, Enabled: true})
	}
	return g
}

// venue is a journal with the engine that writes it.
type venue struct {
	t       testing.TB
	dir     string
	genesis *matcher.Genesis
	j       *journal.Journal
	engine  *matcher.Engine
	out     *matcher.Outlet
	block   journal.Block
	rng     *rand.Rand
	said    []matcher.Event
	orders  uint32
}

func newVenue(t testing.TB, seed uint64) *venue {
	t.Helper()
	return newVenueOf(t, seed, testGenesis())
}

func newVenueOf(t testing.TB, seed uint64, g *matcher.Genesis) *venue {
	t.Helper()
	t.Logf("seed %d", seed)
	v := &venue{t: t, dir: t.TempDir(), genesis: g, rng: rand.New(rand.NewPCG(seed, 1))}
	v.open()
	must.OK(t, v.j.Create(v.genesis.Marshal()))
	var err error
	v.engine, err = matcher.New(v.genesis)
	must.OK(t, err)
	v.out = matcher.NewOutlet(8, func(events []matcher.Event) { v.said = append(v.said, events...) })
	t.Cleanup(func() { must.OK(t, errors.Join(v.j.Close(), v.engine.Close())) })
	return v
}

func (v *venue) journalDir() string { return filepath.Join(v.dir, "journal") }
func (v *venue) logDir() string     { return filepath.Join(v.dir, "evidence") }

func (v *venue) open() {
	v.t.Helper()
	j := must.Get(journal.Open(v.journalDir(), journal.Options{
		Durability: journal.DurabilityOS, Fatal: func(err error) { v.t.Errorf("fatal: %v", err) },
	}))(v.t)
	v.j = j
}

// decide sequences a command and puts it into the block.
func (v *venue) decide(c matcher.Command, id string) {
	v.said = v.said[:0]
	v.engine.Apply(&c, v.out)
	v.out.Flush()
	for i := range v.said {
		ev := &v.said[i]
		if ev.Flags&matcher.EventFirst != 0 {
			v.block.Command(ev.Cmd())
			if id != "" {
				v.block.ClientID(ev.InputSeq, []byte(id))
			}
			if ev.Kind == matcher.EventAccepted || ev.Kind == matcher.EventRejected {
				v.orders = max(v.orders, ev.OrderRef)
			}
		}
		if ev.Kind == matcher.EventFilled {
			fill := ev.Fill()
			v.block.Fill(&fill)
		}
	}
}

func (v *venue) commit() {
	if v.block.Commands() == 0 {
		return
	}
	c, err := v.j.Append(&v.block)
	if err == nil {
		err = c.Wait()
	}
	must.OK(v.t, err)
	v.block.Reset()
}

// trade commits n random commands in blocks of random sizes.
func (v *venue) trade(n int) {
	for left := n; left > 0; {
		size := min(left, 1+v.rng.IntN(300))
		for range size {
			c, id := v.command()
			v.decide(c, id)
		}
		v.commit()
		left -= size
	}
	must.OK(v.t, v.j.WaitStable(context.Background(), v.engine.AppliedSeq()))
}

func (v *venue) command() (matcher.Command, string) {
	rng := v.rng
	c := matcher.NewCommand(matcher.OrderNew)
	c.EventTimeMillis = 1_700_000_000_000 + int64(v.engine.AppliedSeq())
	c.AccountID, c.SecurityID = 1+rng.Uint32N(5), 1+rng.Uint32N(2)
	c.Side, c.Qty = matcher.Side(rng.IntN(2)), 1+rng.Int32N(100)
	c.LimitPx = 100_000_000 + 1000*rng.Int64N(20)
	id := ""
	switch rng.IntN(12) {
	case 0:
		c.Type, c.OrderRef = matcher.OrderCancel, 1+rng.Uint32N(v.orders+1)
		if o, ok := v.engine.Order(c.OrderRef); ok {
			c.AccountID, c.SecurityID, c.Side = o.AccountID, o.SecurityID, o.Side
		}
	case 1:
		c.Type = matcher.TradeNew
	case 2:
		c.Type = matcher.PriceTick
		c.PriceTicks, c.LimitPx = c.LimitPx, 0
	case 3:
		terms := matcher.ContractTerms{AccountID: c.AccountID, Notional: 1000, FixedRate: 41_250,
			Effective: 20_000, Maturity: 21_000}
		at := c.EventTimeMillis
		c = terms.Command()
		c.EventTimeMillis = at
	case 4:
		c.Qty = 5000 // refused
	case 5:
		c.Qty = 900 // meets many
	case 6:
		c = matcher.NewSymbolRegister(fmt.Sprintf("T%d", rng.IntN(20)))
	}
	if rng.IntN(3) > 0 && c.TemplateID == matcher.TemplateCommand && c.Type != matcher.PriceTick {
		id = fmt.Sprintf("client-%d", rng.IntN(1_000_000))
	}
	return c, id
}

func (v *venue) rebuild(state io.Reader) (journal.Engine, error) {
	if state == nil {
		return matcher.New(v.genesis)
	}
	return matcher.ReadSnapshot(v.genesis, state)
}

func (v *venue) snapshot() {
	s, err := journal.NewSnapshotter(v.j, journal.Rebuild{Engine: v.rebuild}, 0)
	must.OK(v.t, err)
	_, err = s.Take(context.Background())
	must.OK(v.t, err)
}

// log opens the log of the venue.
func (v *venue) log() *Log {
	v.t.Helper()
	return must.Get(Open(v.j, v.logOptions()))(v.t)
}

func (v *venue) logOptions() Options {
	return Options{Dir: v.logDir(), Engine: v.rebuild, Interval: time.Millisecond,
		Alarm: func(err error) { v.t.Logf("alarm: %v", err) }}
}

// keep runs a log until everything is signed, or it has stopped, and then ends it.
func (v *venue) keep(l *Log) {
	v.t.Helper()
	head, _ := v.j.Head()
	v.keepUntil(l, func(s State) bool { return s.Checked && s.Signed >= head })
}

func (v *venue) keepUntil(l *Log, done func(State) bool) {
	v.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- l.Run(ctx) }()
	// The recheck has the lowest priority: on a machine that is busy with others it takes minutes.
	late := time.After(5 * time.Minute)
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for s := l.State(); s.Err == nil && !done(s); s = l.State() {
		select {
		case <-late:
			cancel()
			v.t.Fatalf("the log does not come further than %+v: %v", s, <-ended)
		case <-look.C:
		}
	}
	cancel()
	must.OK(v.t, <-ended)
}

func (v *venue) prover() *Prover {
	v.t.Helper()
	past := must.Get(asof.New(v.j, asof.Options{}))(v.t)
	v.t.Cleanup(func() { must.OK(v.t, past.Close()) })
	return must.Get(NewProver(past, v.logDir()))(v.t)
}

// removeAllBut empties a folder but for one file.
func removeAllBut(dir, keep string) error {
	list, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for _, e := range list {
		if e.Name() != keep {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
		}
	}
	return err
}
