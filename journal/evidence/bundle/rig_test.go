package bundle_test

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

	"github.com/klauspost/compress/zstd"

	"posttrade/journal"
	"posttrade/journal/audit"
	"posttrade/journal/evidence"
	"posttrade/journal/evidence/export"
	"posttrade/journal/evidence/verify"
	"posttrade/matcher"
	"posttrade/ring/must"
)

// venue is a journal with trades, and its log.
type venue struct {
	t       *testing.T
	dir     string
	genesis *matcher.Genesis
	j       *journal.Journal
	log     *evidence.Log
}

func (v *venue) logDir() string { return filepath.Join(v.dir, "evidence") }

func (v *venue) rebuild(state io.Reader) (journal.Engine, error) {
	if state == nil {
		return matcher.New(v.genesis)
	}
	return matcher.ReadSnapshot(v.genesis, state)
}

// newVenue trades: rounds of commands, a snapshot and a signed head after each.
func newVenue(t *testing.T, rounds ...int) *venue {
	t.Helper()
	v := &venue{t: t, dir: t.TempDir(), genesis: &matcher.Genesis{
		Format: matcher.GenesisFormat, TickPx: 1000, EvidenceKey: matcher.NewEvidenceKey(),
		ClientKey:  matcher.NewClientKey(),
		Accounts:   []matcher.GenesisAccount{{ID: 1, Enabled: true}, {ID: 2, Enabled: true}},
		Securities: []matcher.GenesisSecurity{{Ticker: "AAA", Enabled: true}},
		Limits: matcher.Limits{
			MaxOrderQty: 1_000, MaxOrderNotional: 1e15, MaxPositionQty: 1e9,
			MaxConcentrationNotional: 1e18, CreditLimit: 1e18, PriceMaxAgeMillis: 1e12,
			IdempotencyCapacity: 64, MaxAccounts: 16, MaxSecurities: 8, MaxContracts: 64,
			MaxOpenOrders: 4096, RetainedOrders: 64,
		}}}
	j := must.Get(journal.Open(filepath.Join(v.dir, "journal"),
		journal.Options{Durability: journal.DurabilityOS}))(t)
	v.j = j
	must.OK(t, j.Create(v.genesis.Marshal()))
	engine := must.Get(matcher.New(v.genesis))(t)
	t.Cleanup(func() { must.OK(t, errors.Join(v.j.Close(), engine.Close())) })
	rng := rand.New(rand.NewPCG(1, 2))
	for _, n := range rounds {
		v.trade(engine, rng, n)
		v.sign()
		s, err := journal.NewSnapshotter(v.j, journal.Rebuild{Engine: v.rebuild}, 0)
		must.OK(t, err)
		_, err = s.Take(context.Background())
		must.OK(t, err)
	}
	return v
}

func (v *venue) trade(engine *matcher.Engine, rng *rand.Rand, n int) {
	var list []matcher.Command
	for range n {
		c := matcher.NewCommand(matcher.OrderNew)
		c.AccountID, c.SecurityID, c.Side = 1+rng.Uint32N(2), 1, matcher.Side(rng.IntN(2))
		c.Qty, c.LimitPx = 1+rng.Int32N(100), 100_000_000+1000*rng.Int64N(5)
		if rng.IntN(20) == 0 {
			c = matcher.NewSymbolRegister(fmt.Sprintf("S%d", rng.IntN(9)))
		}
		list = append(list, c)
	}
	v.send(engine, list...)
}

// send decides commands and writes them into the journal as one block.
func (v *venue) send(engine *matcher.Engine, list ...matcher.Command) {
	var block journal.Block
	out := matcher.NewOutlet(8, func(events []matcher.Event) {
		for i := range events {
			if events[i].Flags&matcher.EventFirst != 0 {
				block.Command(events[i].Cmd())
				if events[i].InputSeq%3 == 0 {
					block.ClientID(events[i].InputSeq, fmt.Appendf(nil, "c%d", events[i].InputSeq))
				}
			}
			if events[i].Kind == matcher.EventFilled {
				f := events[i].Fill()
				block.Fill(&f)
			}
		}
	})
	for _, c := range list {
		if c.TemplateID == matcher.TemplateCommand {
			c.EventTimeMillis = 1_700_000_000_000 + int64(engine.AppliedSeq())
		}
		engine.Apply(&c, out)
	}
	out.Flush()
	commit := must.Get(v.j.Append(&block))(v.t)
	must.OK(v.t, commit.Wait())
	must.OK(v.t, v.j.WaitStable(context.Background(), engine.AppliedSeq()))
}

// sign keeps the log until its head covers the journal, signed with its key.
func (v *venue) sign() {
	v.t.Helper()
	l := must.Get(evidence.Open(v.j, evidence.Options{Dir: v.logDir(), Engine: v.rebuild,
		Interval: time.Millisecond, Alarm: func(err error) { v.t.Error(err) }}))(v.t)
	v.log = l
	head, _ := v.j.Head()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- l.Run(ctx) }()
	late := time.After(time.Minute)
	keys := v.keys()
	for ours := false; !ours || l.State().Signed < head; {
		_, _, err := keys.Open(l.Checkpoint())
		ours = err == nil
		select {
		case <-late:
			v.t.Fatalf("%+v", l.State())
		case <-time.After(time.Millisecond):
		}
	}
	cancel()
	must.OK(v.t, <-ended)
}

func (v *venue) keys() *verify.Keys {
	v.t.Helper()
	k := must.Get(verify.ParseKeys([]string{v.log.VKey()}, nil))(v.t)
	return &k
}

// export writes a bundle and returns its files.
func (v *venue) export(from, to uint64) map[string][]byte {
	v.t.Helper()
	dir := filepath.Join(v.t.TempDir(), "bundle")
	p := must.Get(export.Write(context.Background(), v.input(), from, to, dir))(v.t)
	if p.From != from || to != 0 && p.To != to {
		v.t.Errorf("%+v", p.Manifest)
	}
	return filesOf(v.t, dir)
}

func filesOf(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	must.OK(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		files[filepath.ToSlash(name)], err = os.ReadFile(path)
		return err
	}))
	return files
}

func reading(files map[string][]byte) verify.Read {
	return func(name string) ([]byte, error) {
		if data, ok := files[name]; ok {
			return data, nil
		}
		return nil, fmt.Errorf("%s: %w", name, os.ErrNotExist)
	}
}

// reportOf is the regulatory report of a range, a record a line, as the server makes it.
func (v *venue) reportOf(from, to uint64) (lines []byte, total audit.Total) {
	v.t.Helper()
	r := audit.New(v.j, v.rebuild, audit.Options{})
	total = must.Get(r.Write(context.Background(), from, to, func(records []byte, _ int) error {
		lines = append(lines, records...)
		return nil
	}))(v.t)
	return lines, total
}

func packedText(t *testing.T, plain []byte) []byte {
	t.Helper()
	z := must.Get(zstd.NewWriter(nil))(t)
	return z.EncodeAll(plain, nil)
}
