package perf

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"posttrade/blotter"
	"posttrade/journal"
	"posttrade/journal/audit"
	"posttrade/matcher/flow"
	"posttrade/sidecars/recon"
	"posttrade/sidecars/store"
	"posttrade/sidecars/tca"
)

// What the row asks for: records of the report and fills of the index a second, and milliseconds
// for one report on a trade.
var (
	reportRate  = atLeast("P10", 1e6, "report, records/s")
	reindexRate = atLeast("P10", 3e6, "reindex, fills/s")
	costsTime   = atMost("P10", 1, "one TCA report, p50, ms")
)

// measureDownstream is row P10: projection, reconciliation, report, reindex and transaction-cost
// reports over one journal, each beside its bare comparator.
//
// The history is a million commands that make about as many fills. They run one after the other,
// alone on the machine and at the usual priority, on files that were just written and are in the
// kernel's cache. So the figures are those of catching up, not those beside orders (row P13), and
// not with cold disks.
func measureDownstream(r *Run) error {
	return r.withHistory("downstream", 1_000_000,
		func(d *fullEngine, _ int) error { return r.downstream(d) })
}

// withHistory opens an engine in a folder of its own, sends about n commands through it and calls
// use, with the number of commands that there are. The flow is that of row P6: every second order
// trades with the one before. The journal is in mode os, because making it is not measured. The
// engine still runs while use does, without load.
func (r *Run) withHistory(folder string, n int, use func(*fullEngine, int) error) (err error) {
	o := engineOptions{folder: folder, durability: "os", genesis: flowGenesis(8)}
	e, n, err := r.pumped(o, n)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.close()) }()
	return use(e, n)
}

// downstream measures every part. Both databases get the same fills.
func (r *Run) downstream(d *fullEngine) error {
	_, fills := d.Journal.Head()
	if err := r.projectAndReconcile(d, "sqlite", "", fills); err != nil {
		return err
	}
	if r.o.Postgres != "" {
		if err := r.onPostgres(func(url string) error {
			return r.projectAndReconcile(d, "postgres", url, fills)
		}); err != nil {
			return err
		}
	}
	if err := r.report(d); err != nil {
		return err
	}
	if err := r.reindex(d); err != nil {
		return err
	}
	return r.costs(d)
}

// onPostgres runs measure on a database that it makes before and drops afterwards, also after an
// error. The user of the URL must be allowed to make databases. The error of a bad URL does not
// show it, because it may have a password.
func (r *Run) onPostgres(measure func(url string) error) (err error) {
	ctx := context.Background()
	server, err := url.Parse(r.o.Postgres)
	if err != nil {
		return errors.New("--postgres is not a URL")
	}
	name := fmt.Sprintf("posttrade_perf_%d", os.Getpid())
	if err := store.Administer(ctx, r.o.Postgres, "create database "+name); err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, store.Administer(ctx, r.o.Postgres, "drop database "+name+" with (force)"))
	}()
	own := *server
	own.Path = "/" + name
	return measure(own.String())
}

// reconcile sweeps until every fill has a class, and checks that the class is the right one. There
// is no grace, so that a fill is judged at once, and the blotter has the last fills only, as in a
// server. Every fill must match: a sweep that finds differences is another amount of work. Making
// the blotter is not in the time.
func (r *Run) reconcile(d *fullEngine, db *store.DB,
	fills uint64) (entries uint64, took time.Duration, err error) {
	ctx := context.Background()
	entriesBlotter, err := blotter.New(blotter.DefaultCapacity)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, entriesBlotter.Close()) }()
	last, err := d.Journal.LastFills(blotter.DefaultCapacity)
	if err != nil {
		return 0, 0, err
	}
	for i := range last {
		entriesBlotter.Append(&last[i])
	}
	c := recon.New(recon.Options{Journal: d.Journal, Blotter: entriesBlotter, DB: db,
		Ticker: d.ticker, Now: time.Now,
		Interval: time.Second, Grace: -1, VerifyInterval: time.Minute})
	start := time.Now()
	for {
		if err := c.Sweep(ctx); err != nil {
			return 0, 0, err
		}
		s, err := c.Status(ctx)
		if err != nil {
			return 0, 0, err
		}
		if s.Cursor == fills {
			if s.Matched != fills {
				return 0, 0, fmt.Errorf("%d of %d entries match", s.Matched, fills)
			}
			return fills, time.Since(start), nil
		}
	}
}

// report measures the regulatory report over everything, and its use of memory. The records are
// counted and dropped. The heap is looked at once in 256 chunks, so "MiB-heap-above" is a lower
// bound of what it takes above the heap before, garbage included.
func (r *Run) report(d *fullEngine) error {
	reporter := audit.New(d.Journal, d.rebuild().Engine, audit.Options{})
	from, to, err := reporter.Clip(0, 0)
	if err != nil {
		return err
	}
	runtime.GC()
	var before, now runtime.MemStats
	runtime.ReadMemStats(&before)
	most, bytes, chunks := uint64(0), 0, 0
	start := time.Now()
	total, err := reporter.Write(context.Background(), from, to, func(records []byte, _ int) error {
		bytes += len(records)
		if chunks++; chunks%256 == 0 {
			runtime.ReadMemStats(&now)
			most = max(most, now.HeapAlloc)
		}
		return nil
	})
	if err != nil {
		return err
	}
	took := time.Since(start)
	rate := float64(total.Count) / took.Seconds()
	r.bench("Report/op=records", int(total.Count), took, metric{rate, "records/s"},
		metric{float64(bytes) / (1 << 20), "MiB-written"},
		metric{float64(max(most, before.HeapAlloc)-before.HeapAlloc) / (1 << 20), "MiB-heap-above"})
	r.judge(reportRate, rate)
	return nil
}

// reindex measures the full-history index of all fills, in fills a second, from an empty folder.
func (r *Run) reindex(d *fullEngine) error {
	h := blotter.NewHistory(filepath.Join(r.o.Dir, "history"))
	start := time.Now()
	info, err := h.Reindex(context.Background(), d.Journal.Fills, d.Journal.Head)
	if err != nil {
		return err
	}
	took := time.Since(start)
	rate := float64(info.IndexedTrades) / took.Seconds()
	r.bench("Reindex/op=fills", int(info.IndexedTrades), took, metric{rate, "fills/s"})
	r.judge(reindexRate, rate)
	return h.Close()
}

// costs measures building the price history, and single reports on random trades. Building is
// stated in commands a second and not judged.
func (r *Run) costs(d *fullEngine) (err error) {
	ctx := context.Background()
	t, err := tca.Open(tca.Options{
		Dir: filepath.Join(r.o.Dir, "tca"), Window: 5 * time.Minute, Genesis: []byte("perf"),
		Durable: d.Journal.Durable,
		Shadow: func(before uint64) (tca.Shadow, error) {
			return journal.NewShadow(d.Journal, d.rebuild().Engine, before)
		},
		SecurityID: d.security,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	following, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	start := time.Now()
	go func() { ended <- t.Run(following) }()
	head := d.Journal.Durable()
	if err := t.CatchUp(ctx, head); err != nil {
		stop()
		return errors.Join(err, <-ended)
	}
	built := time.Since(start)
	r.bench("TCA/op=follow", int(head), built, metric{float64(head) / built.Seconds(), "commands/s"})
	stop()
	if err := <-ended; err != nil {
		return err
	}
	return r.reports(ctx, d, t)
}

// reports measures single reports on random trades, in milliseconds, one at a time, on a history
// that is complete. The trades are those of a fixed seed.
func (r *Run) reports(ctx context.Context, d *fullEngine, t *tca.TCA) error {
	rows, err := bookedRows(d)
	if err != nil {
		return err
	}
	random := flow.NewRandom(11)
	ns := make([]int64, 0, 10_000)
	for range r.scale(10_000) {
		trade := rows[random.N(uint64(len(rows)))]
		begun := time.Now()
		if _, err := t.Report(ctx, trade); err != nil {
			return err
		}
		ns = append(ns, time.Since(begun).Nanoseconds())
	}
	p50, p99 := float64(percentile(ns, 50))/1e6, float64(percentile(ns, 99))/1e6
	r.figures("TCA/op=report", metric{p50, "p50-ms"}, metric{p99, "p99-ms"})
	r.judge(costsTime, p50)
	return nil
}
