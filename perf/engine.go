package perf

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
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
	"posttrade/sidecars/control"
	"posttrade/sidecars/feeds"
	"posttrade/sidecars/store"
)

// engineOptions describe the engine that a row needs in this process. Everything else is as the
// run's settings have it.
type engineOptions struct {
	// folder is that of the engine's data, in the folder of the run. A folder that exists is opened
	// again with the journal that is there.
	folder string
	// durability is fsync or os; members of a cluster have quorum.
	durability string
	// genesis is the universe of a new journal. A journal that exists has its own.
	genesis *matcher.Genesis
	// without snapshots but those that the row takes: a start then decides every command
	unsnapped bool
}

// fullEngine is a whole engine in this process, as the wiring builds it: gate, rings, matcher,
// recorder, journal. Its stages spin and sleep as a server's do, on the cores that the load uses
// too.
type fullEngine struct {
	*engine.Engine
	// end stops the engine, with all that is beside it, and leaves the data in place.
	end func() error
	// dir is the folder of its data, which close gives to leave.
	dir   string
	leave func(dir string) error
	// rows is how many trades the projection has booked; nil without one.
	rows func() (int64, error)
}

// durable is the last input sequence for which answers may be released.
func (e *fullEngine) durable() uint64 { return e.Watermark.Durable() }

// rebuild makes the second engines that read the journal again, from the same genesis.
func (e *fullEngine) rebuild() journal.Rebuild { return engine.RebuildFrom(e.Genesis) }

// ticker and security are the gate's names and numbers of securities; a number without a name has
// "", a ticker that is not known false.
func (e *fullEngine) ticker(id uint32) string { return e.Gate.Ticker(id) }
func (e *fullEngine) security(ticker string) (uint32, bool) {
	return e.Gate.Security([]byte(ticker))
}

// stop stops the engine for another open of its folder.
func (e *fullEngine) stop() error { return e.end() }

// close stops the engine and leaves its folder to be removed when the row has ended.
func (e *fullEngine) close() error { return errors.Join(e.end(), e.leave(e.dir)) }

// snapshot writes one at the head, by the shadow engine, and waits for it. The shadow reads the
// whole journal up to there first.
func (e *fullEngine) snapshot() error {
	_, err := e.Shadow.Take(context.Background())
	return err
}

// controls carries a source's changes into the engine, as the sidecar of a source does.
func (e *fullEngine) controls(s control.Source) *feeds.Sink {
	return &feeds.Sink{Source: s, Gate: e.Gate, Desk: e.Desk, Views: e.Views, Now: time.Now}
}

// wiring is what the wiring needs to build such an engine: settings, and options with the row's
// genesis. dir is the folder of its data. A failure of the journal prints its last line and ends
// the process.
func (r *Run) wiring(o engineOptions) (c *settings.Config, wired engine.Options, dir string) {
	dir = filepath.Join(r.o.Dir, o.folder)
	c = r.o.Config.With(map[string]string{"data.dir": dir, "journal.durability": o.durability})
	if o.unsnapped {
		c = c.With(map[string]string{"snapshot.interval-commands": "0"})
	}
	wired = installation.EngineOptions(c)
	wired.Genesis = func() (*matcher.Genesis, error) { return o.genesis, nil }
	wired.Fatal = installation.NewFatalStderr(r.o.Stderr).Failed
	return c, wired, dir
}

// open opens an engine with nothing beside it: no service, no sidecar, no listener. Its own loops
// run: stages, committer, the shadow engine that follows the journal. The caller stops or closes
// it.
func (r *Run) open(o engineOptions) (*fullEngine, error) {
	_, wired, dir := r.wiring(o)
	k, err := engine.Open(wired)
	if err != nil {
		return nil, err
	}
	return &fullEngine{k, k.Stop, dir, r.leave, nil}, nil
}

// openWatched opens an engine with a matcher's loop that reads the clock in the place of its stage,
// which has decided nothing yet.
//
// The engine stops as usual afterwards, also with the other loop. What the loop has measured may be
// read when the engine has stopped.
func (r *Run) openWatched(o engineOptions) (*fullEngine, *watchedLoop, error) {
	e, err := r.open(o)
	if err != nil {
		return nil, nil, err
	}
	e.Stage.Stop()
	if err := <-e.StageDone; err != nil {
		e.StageDone <- err // stop receives it
		return nil, nil, errors.Join(err, e.stop())
	}
	loop := watch(e.Engine.Engine, e.In, e.Out, e.Options.Idle, e.Options.MatcherCPU)
	e.end = func() error {
		if e.Journal == nil {
			return nil // it has been stopped
		}
		loop.Stop()
		return e.Stop()
	}
	go func() { e.StageDone <- loop.Run() }()
	return e, loop, nil
}

// readyTimeout is how long the control sources may take to become ready, or members to elect a
// leader.
const readyTimeout = 30 * time.Second

// openEverything opens a whole installation with a regulatory report that runs all the time, and
// returns when the gate admits orders. hold: another session holds the database's write lock from
// then on. Its accounts and securities are those of the genesis, as seed files, so that the control
// sources bring what the journal already has.
//
// Both goroutines beside it end with the engine, and their errors are those of its stop.
func (r *Run) openEverything(o engineOptions, hold bool) (*fullEngine, error) {
	c, wired, dir := r.wiring(o)
	accounts, securities, err := writeUniverse(dir, o.genesis)
	if err != nil {
		return nil, err
	}
	c = c.With(anyPorts).With(map[string]string{"seed.accounts": accounts,
		"seed.securities": securities})
	in, err := installation.Open(context.Background(), c, wired, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	for begun := time.Now(); !in.Core.Gate.Ready(); time.Sleep(time.Millisecond) {
		if time.Since(begun) > readyTimeout {
			return nil, errors.Join(fmt.Errorf("the control sources are not ready after %v", readyTimeout),
				in.Stop())
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	held, ended := make(chan struct{}), make(chan error, 2) // of the report, and of the lock
	e := &fullEngine{in.Core, func() error {
		cancel()
		return errors.Join(<-ended, <-ended, in.Stop())
	}, dir, r.leave, func() (n int64, err error) {
		err = in.Beside.Load().Db.Read(ctx, func(t *store.Tx) error {
			n, err = t.CountTrades()
			return err
		})
		return n, err
	}}
	go func() { ended <- e.report(ctx) }()
	go func() { ended <- holdDatabase(ctx, in, hold, held) }()
	select {
	case <-held:
		return e, nil
	case err := <-ended:
		ended <- err // stop receives both results
		return nil, e.stop()
	}
}

// anyPorts are the listeners of a whole installation on ports that are free, and no console.
var anyPorts = map[string]string{
	"order-matcher.listen": "127.0.0.1:0", "trade-processor.listen": "127.0.0.1:0",
	"account-service.listen": "127.0.0.1:0", "reference-data.listen": "127.0.0.1:0",
	"admin.listen": "127.0.0.1:0", "console.listen": "",
}

// openServed opens an engine with the order-matcher's listener and no service beside it. address is
// host:port.
func (r *Run) openServed(o engineOptions) (_ *fullEngine, address string, err error) {
	c, wired, dir := r.wiring(o)
	c = c.With(anyPorts).With(map[string]string{"sidecars.enabled": "false"})
	wired.Feeds = false
	in, err := installation.Open(context.Background(), c, wired, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, "", err
	}
	return &fullEngine{in.Core, in.Stop, dir, r.leave, nil}, in.Address("order-matcher"), nil
}

// holdDatabase takes the database's write lock, as another process would, until ctx ends. It closes
// held when it has the lock, or at once if none is wanted.
func holdDatabase(ctx context.Context, in *installation.Installation, wanted bool,
	held chan<- struct{}) (err error) {
	if !wanted {
		close(held)
		return nil
	}
	other, err := in.Beside.Load().Db.Twin()
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

// report makes one regulatory report after the other until ctx ends, each over the whole journal so
// far. The records go nowhere: reading the journal and deciding it again are the work.
func (e *fullEngine) report(ctx context.Context) error {
	reporter := audit.New(e.Journal, e.rebuild().Engine, audit.Options{})
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

// writeUniverse writes the seed files of a genesis record's universe, in the form of the settings
// seed.accounts and seed.securities, and returns their paths.
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

// writeRows writes a CSV file and makes its folder.
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
