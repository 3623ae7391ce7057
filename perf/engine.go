package perf

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"posttrade/app/engine"
	"posttrade/app/installation"
	"posttrade/app/settings"
	"posttrade/journal"
	"posttrade/journal/audit"
	"posttrade/matcher"
	"posttrade/matcher/desk"
	"posttrade/matcher/gate"
	"posttrade/sidecars/control"
	"posttrade/sidecars/feeds"
	"posttrade/sidecars/riskextract"
	"posttrade/sidecars/store"
)

// engineAlone is a whole engine as the rows of the performance table use it.
type engineAlone struct{ *engine.Engine }

func (c engineAlone) Gate() *gate.Gate          { return c.Engine.Gate }
func (c engineAlone) Desk() *desk.Desk          { return c.Engine.Desk }
func (c engineAlone) Durable() uint64           { return c.Watermark.Durable() }
func (c engineAlone) Journal() *journal.Journal { return c.Engine.Journal }
func (c engineAlone) Rebuild() journal.Rebuild  { return engine.RebuildFrom(c.Genesis) }
func (c engineAlone) Ticker(id uint32) string   { return c.Engine.Gate.Ticker(id) }
func (c engineAlone) SecurityID(ticker string) (uint32, bool) {
	return c.Engine.Gate.Security([]byte(ticker))
}
func (c engineAlone) Snapshot() error {
	_, err := c.Engine.Shadow.Take(context.Background())
	return err
}
func (c engineAlone) Stop() error { return c.Engine.Stop() }
func (c engineAlone) Close() error {
	return errors.Join(c.Engine.Stop(), os.RemoveAll(c.Options.Dir))
}

// NewControls returns the object that carries a source's changes into the engine.
func (c engineAlone) NewControls(s control.Source) Controls {
	return &feeds.Sink{Source: s, Gate: c.Engine.Gate, Desk: c.Engine.Desk, Views: c.Engine.Views,
		Now: time.Now}
}

// OpenEngine opens an engine, or with Everything a whole installation around it.
func OpenEngine(c *settings.Config, e EngineOptions, stderr io.Writer) (Engine, error) {
	if e.Members > 0 {
		return openMembers(c, e, installation.NewLastWords(stderr).Failed)
	}
	c = c.With(map[string]string{"data.dir": e.Dir, "journal.durability": e.Durability})
	o := installation.EngineOptions(c)
	o.Genesis = func() (*matcher.Genesis, error) { return e.Genesis, nil }
	o.Fatal = installation.NewLastWords(stderr).Failed
	if e.Everything {
		return openEverything(c, o, e)
	}
	if e.Served {
		return openServed(c, o)
	}
	k, err := engine.Open(o)
	if err != nil {
		return nil, err
	}
	if e.Watch {
		return watchCore(k)
	}
	x, err := withExtracts(c, k)
	if err != nil {
		return nil, errors.Join(err, k.Stop())
	}
	return x, nil
}

// watched is an engine with a matcher's loop that reads the clock.
type watched struct {
	engineAlone
	loop *WatchedLoop
}

// watchCore puts a watched loop in the place of an engine's stage, which has decided nothing yet.
func watchCore(k *engine.Engine) (*watched, error) {
	k.Stage.Stop()
	if err := <-k.StageDone; err != nil {
		k.StageDone <- err // Stop receives it
		return nil, errors.Join(err, k.Stop())
	}
	w := &watched{engineAlone{k}, Watch(k.Engine, k.In, k.Out, k.Options.Idle,
		k.Options.MatcherCPU)}
	go func() { k.StageDone <- w.loop.Run() }()
	return w, nil
}

func (w *watched) Loop() *WatchedLoop { return w.loop }

func (w *watched) Stop() error {
	if w.Engine.Journal == nil {
		return nil // it has been stopped
	}
	w.loop.Stop()
	return w.Engine.Stop()
}

func (w *watched) Close() error { return errors.Join(w.Stop(), os.RemoveAll(w.Options.Dir)) }

// everything is an installation with a regulatory report that runs all the time.
type everything struct {
	engineAlone
	in     *installation.Installation
	cancel context.CancelFunc
	ended  chan error // of the report, and of the lock
}

// readyTimeout is how long the control sources may take to become ready.
const readyTimeout = 30 * time.Second

func openEverything(c *settings.Config, o engine.Options,
	options EngineOptions) (_ *everything, err error) {
	accounts, securities, err := writeUniverse(c.String("data.dir"), options.Genesis)
	if err != nil {
		return nil, err
	}
	c = c.With(anyPorts).With(map[string]string{"seed.accounts": accounts,
		"seed.securities": securities})
	in, err := installation.Open(context.Background(), c, o, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	e := &everything{engineAlone: engineAlone{in.Core}, in: in, ended: make(chan error, 2)}
	for begun := time.Now(); !in.Core.Gate.Ready(); time.Sleep(time.Millisecond) {
		if time.Since(begun) > readyTimeout {
			return nil, errors.Join(fmt.Errorf("the control sources are not ready after %v", readyTimeout),
				in.Stop())
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	e.cancel = cancel
	held := make(chan struct{})
	go func() { e.ended <- e.report(ctx) }()
	go func() { e.ended <- e.hold(ctx, options.HoldSQL, held) }()
	select {
	case <-held:
		return e, nil
	case err := <-e.ended:
		e.ended <- err // Stop receives both results
		return nil, e.Stop()
	}
}

// anyPorts are the listeners of a whole installation, and no console.
var anyPorts = map[string]string{
	"order-matcher.listen": "127.0.0.1:0", "trade-processor.listen": "127.0.0.1:0",
	"account-service.listen": "127.0.0.1:0", "reference-data.listen": "127.0.0.1:0",
	"admin.listen": "127.0.0.1:0", "console.listen": "",
}

// served is an engine with its listener.
type served struct {
	engineAlone
	in *installation.Installation
}

func openServed(c *settings.Config, o engine.Options) (Engine, error) {
	c = c.With(anyPorts).With(map[string]string{"sidecars.enabled": "false"})
	o.Feeds = false
	in, err := installation.Open(context.Background(), c, o, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	return &served{engineAlone{in.Core}, in}, nil
}

// Address is that of the order-matcher.
func (s *served) Address() string { return s.in.Address("order-matcher") }

func (s *served) WaitDurable(inputSeq uint64, timeout time.Duration) error {
	return s.Watermark.WaitDurable(inputSeq, timeout)
}

func (s *served) Stop() error { return s.in.Stop() }

func (s *served) Close() error {
	return errors.Join(s.Stop(), os.RemoveAll(filepath.Dir(s.Options.Dir)))
}

// hold takes the database's write lock, as another process would, until ctx ends.
func (e *everything) hold(ctx context.Context, wanted bool,
	held chan<- struct{}) (err error) {
	if !wanted {
		close(held)
		return nil
	}
	other, err := e.in.Beside.Load().Db.Twin()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, other.Close()) }()
	return other.Write(context.WithoutCancel(ctx), func(*store.Tx) error {
		close(held)
		<-ctx.Done()
		return nil
	})
}

// report makes one report after the other until ctx ends.
func (e *everything) report(ctx context.Context) error {
	reporter := audit.New(e.Journal(), e.Rebuild().Engine, audit.Options{})
	for ctx.Err() == nil {
		from, to, err := reporter.Clip(0, 0)
		if err == nil {
			_, err = reporter.Write(ctx, from, to, func([]byte, int) error { return nil })
		}
		if err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

func (e *everything) Stop() error {
	e.cancel()
	return errors.Join(<-e.ended, <-e.ended, e.in.Stop())
}

func (e *everything) Close() error {
	dir := filepath.Dir(e.Engine.Options.Dir)
	return errors.Join(e.Stop(), os.RemoveAll(dir))
}

// writeUniverse writes the seed files of a genesis record's universe.
func writeUniverse(dir string, g *matcher.Genesis) (accounts, securities string, err error) {
	rows := [][]string{{"id", "displayName", "enabled"}}
	for _, a := range g.Accounts {
		rows = append(rows, []string{strconv.Itoa(int(a.ID)), fmt.Sprint("Account ", a.ID),
			strconv.FormatBool(a.Enabled)})
	}
	if accounts, err = writeRows(dir, "accounts.csv", rows); err != nil {
		return "", "", err
	}
	rows = [][]string{{"ticker", "companyName", "enabled", "halted"}}
	for _, s := range g.Securities {
		rows = append(rows, []string{s.Ticker, s.Ticker, strconv.FormatBool(s.Enabled),
			strconv.FormatBool(s.Halted)})
	}
	securities, err = writeRows(dir, "securities.csv", rows)
	return accounts, securities, err
}

func writeRows(dir, name string, rows [][]string) (path string, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	path = filepath.Join(dir, name)
	file, err := os.Create(path)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return path, csv.NewWriter(file).WriteAll(rows)
}

// extractDay is the day for which the rows of the performance table make extracts.
const extractDay = 20_000

// Extract sequences a marker and makes its extract on a thread with the low priority of the
// service's thread. The counterparties are the accounts of the genesis record.
func (c extracting) Extract() (positions, contracts int, err error) {
	ctx := context.Background()
	var seq uint64
	err = desk.SubmitUntil(ctx, c.Engine.Desk, 1, func(_ int, command *matcher.Command) error {
		*command = matcher.NewRiskExtract(extractDay, 1)
		return nil
	}, func(a *desk.Answer) error {
		seq = a.InputSeq
		return nil
	})
	if err != nil {
		return 0, 0, err
	}
	x := installation.NewExtracts(c.config, c.Engine, nil, nil, riskextract.RoleSingle,
		slog.New(slog.DiscardHandler))
	err = journal.Politely(journal.Bulk, func() error {
		a, err := x.Extractor.Extract(ctx, riskextract.Marker{Seq: seq, SessionDate: extractDay,
			PriceVersion: 1})
		positions, contracts = a.Rows, a.Contracts
		return err
	})
	return positions, contracts, err
}

// extracting is an engine with the settings of its extracts.
type extracting struct {
	engineAlone
	config *settings.Config
}

// withExtracts gives an engine the counterparties of its accounts.
func withExtracts(c *settings.Config, k *engine.Engine) (extracting, error) {
	rows := [][]string{{"accountId", "counterpartyId", "nettingSetId", "currency"}}
	for _, a := range k.Genesis.Accounts {
		id := strconv.Itoa(int(a.ID))
		rows = append(rows, []string{id, "CP" + id, "NS" + id, "USD"})
	}
	path, err := writeRows(k.Options.Dir+"-reference", "counterparties.csv", rows)
	return extracting{engineAlone{k},
		c.With(map[string]string{"extract.counterparties": path})}, err
}
