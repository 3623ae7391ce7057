package journal

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"testing"
	"time"

	"posttrade/matcher"
	"posttrade/ring/must"
)

// realGenesis is a small universe for the real engine.
func realGenesis() *matcher.Genesis {
	g := &matcher.Genesis{
		Format: matcher.GenesisFormat, TickPx: 1000,
		Limits: matcher.Limits{
			MaxOrderQty: 1 << 20, MaxOrderNotional: 1 << 60, MaxPositionQty: 1 << 40,
			MaxConcentrationNotional: 1 << 60,
			CreditLimit:              1 << 60, PriceMaxAgeMillis: 1 << 40, IdempotencyCapacity: 1 << 10,
			MaxAccounts:   64,
			MaxSecurities: 64, MaxContracts: 64, MaxOpenOrders: 1 << 12, RetainedOrders: 1 << 10,
		},
	}
	for id := range uint32(8) {
		g.Accounts = append(g.Accounts, matcher.GenesisAccount{ID: id + 1, Enabled: true})
	}
	for _, ticker := range []string{"A", "B", "C"} {
		g.Securities = append(g.Securities, matcher.GenesisSecurity{Ticker: ticker, Enabled: true})
	}
	return g
}

// realCommand draws a command on which the real engine has something to decide.
func realCommand(r *rand.Rand, n uint64) matcher.Command {
	c := matcher.NewCommand(matcher.OrderNew)
	if n > 10 && r.IntN(3) == 0 {
		c.Type, c.OrderRef = matcher.OrderCancel, uint32(1+r.Uint64N(n))
	}
	c.EventTimeMillis = flowStart + int64(n)
	c.AccountID, c.SecurityID = 1+r.Uint32N(8), 1+r.Uint32N(3)
	c.Side, c.Qty = matcher.Side(r.IntN(2)), 1+r.Int32N(100)
	c.LimitPx = 100_000_000 + 1000*r.Int64N(40)
	return c
}

// realRun drives the real engine through ring and recorder into a new journal in dir.
func realRun(t *testing.T, dir string, g *matcher.Genesis, n uint64) (*Journal, *matcher.Engine) {
	t.Helper()
	t.Logf("-args -faultseed=%d", *faultSeed)
	genesis := must.Get(json.Marshal(g))(t)
	j := must.Get(Open(dir, Options{Fatal: func(err error) { t.Error(err) }}))(t)
	must.OK(t, j.Create(genesis))
	engine := must.Get(matcher.New(g))(t)
	r := newRig(t, j, 1<<13, flow{}, RecorderOptions{})
	r.run()
	rng := rand.New(rand.NewPCG(*faultSeed, 9))
	r.outlet.More = func(o *matcher.Outlet) {
		r.out.PublishTo(o.Next)
		until(t, "room in the ring", func() bool { o.Limit = r.out.Limit(); return o.Next < o.Limit })
	}
	for i := range n {
		c := realCommand(rng, i)
		engine.Apply(&c, &r.outlet)
		r.out.PublishTo(r.outlet.Next)
	}
	r.rec.Stop()
	must.OK(t, <-r.done)
	if seq, trades := j.Head(); seq != n || trades != engine.TradeSeq() || trades == 0 {
		t.Fatalf("head %d, %d trades; the engine is at %d, %d", seq, trades, engine.AppliedSeq(),
			engine.TradeSeq())
	}
	return j, engine
}

// realRebuild makes real engines.
func realRebuild(g *matcher.Genesis) Rebuild {
	return Rebuild{Engine: func(state io.Reader) (Engine, error) {
		if state == nil {
			return matcher.New(g)
		}
		return matcher.ReadSnapshot(g, state)
	}}
}

// TestRealEngineIsWhatTheJournalGivesBack drives the real engine through ring
// and recorder, and expects the same engine from the journal: by replay, by a
// shadow's snapshot, and fill for fill from Verify.
func TestRealEngineIsWhatTheJournalGivesBack(t *testing.T) {
	const n = 20_000
	dir, g := t.TempDir(), realGenesis()
	j, engine := realRun(t, dir, g, n)

	again, err := matcher.New(g)
	must.OK(t, err)
	out := matcher.NewOutlet(1024, func([]matcher.Event) {})
	start := time.Now()
	must.OK(t, j.Replay(context.Background(), 1, func(cmds []matcher.Command, _ ClientIDs) error {
		for i := range cmds {
			if err := again.Replay(&cmds[i], out); err != nil {
				return err
			}
		}
		return nil
	}))
	t.Logf("%.2f M commands/s replayed through the engine", n/time.Since(start).Seconds()/1e6)
	if again.StateHash() != engine.StateHash() {
		t.Error("a replay gives another state")
	}
	shadows, err := NewSnapshotter(j, realRebuild(g), 0)
	must.OK(t, err)
	_, err = shadows.Take(context.Background())
	must.OK(t, err)
	_, err = j.Restore(func(err error) { t.Error(err) }, func(_ Snapshot, state, _ io.Reader) error {
		restored, err := matcher.ReadSnapshot(g, state)
		if err != nil {
			return err
		}
		if restored.StateHash() != engine.StateHash() {
			t.Error("the shadow's snapshot is another state")
		}
		return restored.Close()
	})
	must.OK(t, err)
	must.OK(t, j.Close())
	report, err := Verify(context.Background(), dir,
		VerifyOptions{Engine: func([]byte) (Engine, error) { return matcher.New(g) }})
	must.OK(t, err)
	if !report.Replayed || report.Fills != engine.TradeSeq() {
		t.Errorf("report %+v", report)
	}
	must.OK(t, errors.Join(engine.Close(), again.Close()))
}

// TestRealEngineIsWhatATransferGivesBack expects the real engine from a copy of
// its journal: from the copy's snapshot, and from genesis.
func TestRealEngineIsWhatATransferGivesBack(t *testing.T) {
	dir, g := t.TempDir(), realGenesis()
	j, engine := realRun(t, dir+"/j", g, 5000)
	shadows, err := NewSnapshotter(j, realRebuild(g), 0)
	must.OK(t, err)
	_, err = shadows.Take(t.Context())
	must.OK(t, err)
	tr, err := j.Transfer()
	must.OK(t, err)
	_, err = Receive(dir+"/copy", tr, Options{Fatal: func(err error) { t.Error(err) }})
	must.OK(t, errors.Join(err, tr.Close()))
	c, err := Open(dir+"/copy", Options{Fatal: func(err error) { t.Error(err) }})
	must.OK(t, err)
	list, err := c.Snapshots()
	must.OK(t, err)
	if len(list) != 1 {
		t.Fatalf("snapshots %+v", list)
	}
	for _, from := range []*Snapshot{nil, &list[0]} {
		got := must.Get(RecoverFrom(t.Context(), c, realRebuild(g), from))(t)
		if got.Engine.(*matcher.Engine).StateHash() != engine.StateHash() {
			t.Errorf("another state, from snapshot %d", got.Snapshot)
		}
		must.OK(t, got.Engine.Close())
	}
	must.OK(t, errors.Join(c.Close(), j.Close(), engine.Close()))
	_, err = Verify(t.Context(), dir+"/copy", VerifyOptions{Engine: func([]byte) (Engine, error) {
		return matcher.New(g)
	}})
	must.OK(t, err)
}
