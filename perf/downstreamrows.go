package perf

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"posttrade/matcher"
	"posttrade/sidecars/projection"
	"posttrade/sidecars/store"
)

// What the row asks for on each database: the projection writes rows that can be written again
// without harm, with a cursor in the same transaction, and may lose a fifth of the bare rate for
// it.
func projectionRate(dialect string) goal {
	return onDatabase(dialect, atLeast("P10", 0.8,
		"projection against a bare insert of the same rows, "+dialect))
}

// reconTime asks for seconds of a reconciliation of half a million entries. The row has another
// number of entries and states what half a million of them would take at the same rate.
func reconTime(dialect string) goal {
	return onDatabase(dialect, atMost("P10", 1, "recon of 500,000 entries, s, "+dialect))
}

// onDatabase says why a figure of PostgreSQL may be missing: a run needs a server for it.
func onDatabase(dialect string, g goal) goal {
	if dialect == store.Postgres.String() {
		return g.unless("--postgres names no server")
	}
	return g
}

// batchRows is the batch size of the comparators: that of the projection, whose step it must be,
// see stepOver.
const batchRows = 8192

// turnRows is how many rows the projection and the bare insert write in each turn. So both tables
// grow alike, and disturbances by the machine and the server affect both.
const turnRows = 8 * batchRows

// bookedRows are the rows of every fill, as the projection makes them. They are all in memory, so
// that neither side of the comparison waits for the journal because of the other.
func bookedRows(d *fullEngine) (rows []store.Trade, err error) {
	err = d.Journal.Fills(1, func(fills []matcher.Fill) error {
		for i := range fills {
			f := &fills[i]
			rows = append(rows, store.Trade{
				ID: matcher.TradeID(f.TradeSeq), Seq: f.TradeSeq, AccountID: f.AccountID,
				Security: d.ticker(f.SecurityID),
				Side:     f.Side, Quantity: int64(f.Qty), Price: f.Px, SettlementDate: 20000,
				ExecutedAt: f.TimeMillis,
				BookedAt:   f.TimeMillis, UpdatedAt: f.TimeMillis,
				OrderID: matcher.OrderID(f.Order()), Sequence: f.InputSeq,
			})
		}
		return nil
	})
	return rows, err
}

// projectAndReconcile measures the projection against a bare insert or COPY of the same rows into
// the same table, then reconciles all of them. databaseURL is "" for SQLite in the run's folder, or
// the URL of a PostgreSQL database that is empty.
func (r *Run) projectAndReconcile(d *fullEngine, dialect, databaseURL string,
	fills uint64) (err error) {
	ctx := context.Background()
	db, err := store.Open(store.Options{URL: databaseURL,
		Dir: filepath.Join(r.o.Dir, "rows-"+dialect)})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := db.Ready(ctx); err != nil {
		return err
	}
	if err := r.project(ctx, d, db, databaseURL); err != nil {
		return err
	}
	reconciled, took, err := r.reconcile(d, db, fills)
	if err != nil {
		return err
	}
	perHalfMillion := took.Seconds() * 500_000 / float64(reconciled)
	r.bench("Recon/op=sweep/database="+dialect, int(reconciled), took,
		metric{perHalfMillion, "s-per-500k"})
	r.judge(reconTime(dialect), perHalfMillion)
	return nil
}

// project measures the projection of every fill and a bare insert of the same rows, in turns. The
// best turn of each counts, because disturbances are in the others.
//
// The projection also reads the fills from the journal and makes the rows, which the bare insert
// gets ready-made: that is part of what the ratio asks. Overall figures of all turns are stated
// beside it.
func (r *Run) project(ctx context.Context, d *fullEngine, db *store.DB,
	databaseURL string) (err error) {
	rows, err := bookedRows(d)
	if err != nil {
		return err
	}
	bare, err := r.openBare(ctx, databaseURL)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bare.Close()) }()
	p := projection.New(projection.Options{Journal: d.Journal, DB: db, Ticker: d.ticker,
		Now:            time.Now,
		SettlementDate: func(int64) store.Date { return 20000 }})
	writers := [2]writer{
		{write: func(part []store.Trade) error { return bare.Write(ctx, part) }},
		{write: func(part []store.Trade) error { return stepOver(ctx, p, len(part)) }},
	}
	first := 0
	for turn := range slices.Chunk(rows, turnRows) {
		for i := range writers {
			if err := writers[(first+i)%len(writers)].turn(turn); err != nil {
				return err
			}
		}
		first++ // the second writer finds the other's pages on their way to the disk
	}
	without, with := &writers[0], &writers[1]
	dialect := db.Dialect().String()
	r.bench("Projection/op=rows/database="+dialect, len(rows), with.took,
		metric{with.best, "rows/s"}, metric{without.best, "bare-rows/s"},
		metric{without.took.Seconds() / with.took.Seconds(), "x-bare-overall"})
	r.judge(projectionRate(dialect), with.best/without.best).
		beside("bare %.4g rows/s", without.best)
	return nil
}

// openBare opens the comparator of a database: of SQLite, "", or of a PostgreSQL server. It has a
// table of its own.
func (r *Run) openBare(ctx context.Context, databaseURL string) (*store.Bare, error) {
	if databaseURL == "" {
		return store.OpenBareInsert(ctx, filepath.Join(r.o.Dir, "bare-sqlite"))
	}
	return store.OpenBareCopy(ctx, databaseURL)
}

// stepOver projects the next batch, which must have the given number of fills: otherwise the turn
// would have written other rows than the bare one.
func stepOver(ctx context.Context, p *projection.Projection, fills int) error {
	n, err := p.Step(ctx)
	if err == nil && n != fills {
		err = fmt.Errorf("a step over %d fills, want %d", n, fills)
	}
	return err
}

// writer is one of the two that write the same rows in turns.
type writer struct {
	write func([]store.Trade) error
	// took is the time of all turns.
	took time.Duration
	// best is the rows a second of the best turn.
	best float64
}

// turn writes rows in batches. The last turn may be shorter than a whole one; it counts for the
// best only if there is no other.
func (w *writer) turn(rows []store.Trade) error {
	start := time.Now()
	for part := range slices.Chunk(rows, batchRows) {
		if err := w.write(part); err != nil {
			return err
		}
	}
	took := time.Since(start)
	w.took += took
	if len(rows) == turnRows || w.best == 0 {
		w.best = max(w.best, float64(len(rows))/took.Seconds())
	}
	return nil
}
