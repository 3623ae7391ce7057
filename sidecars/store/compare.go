package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Measured is one comparator's result: what the same machine and database do in the same
// run without idempotency, cursors and errors to report.
type Measured struct {
	Name    string
	Rows    int
	Seconds float64
	P50     time.Duration // of one batch, begin to committed
	P99     time.Duration
	Max     time.Duration
}

// PerSecond is the rate of rows.
func (m Measured) PerSecond() float64 { return float64(m.Rows) / m.Seconds }

// CompareBareInsert writes rows into a SQLite file in dir, which must hold none, with the
// bare insert: the table, the indexes, the pragmas and the statement of InsertTrades but for
// "on conflict do nothing", one transaction per batch rows.
func CompareBareInsert(ctx context.Context, dir string, rows []Trade, batch int) (m Measured, err error) {
	if _, err := os.Stat(filepath.Join(dir, sqliteFile)); err == nil {
		return m, fmt.Errorf("store: compare: %s holds a database", dir)
	}
	e, err := openSQLite(Options{Dir: dir, ReadConns: 1, BusyTimeout: time.Second})
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, e.close()) }()
	definition, err := tradesDefinition(SQLite)
	if err != nil {
		return m, err
	}
	err = e.with(ctx, e.writer, func(c *sqliteConn) error {
		if err := c.script(ctx, definition); err != nil {
			return err
		}
		name := fmt.Sprintf("sqlite bare insert, batches of %d", batch)
		m, err = Measure(name, rows, batch, func(part []Trade) error {
			if err := c.run("begin immediate"); err != nil {
				return err
			}
			s, err := c.prepare(bareInsert)
			if err != nil {
				return err
			}
			for i := range part {
				c.bindTrade(s, &part[i])
				if _, err := s.Step(); err != nil {
					return err
				}
				if err := s.Reset(); err != nil {
					return err
				}
			}
			return c.run("commit")
		})
		return err
	})
	return m, err
}

// bareSchema is where CompareBareCopy has its table, which goes when it is done.
const bareSchema = "posttrade_bare"

// CompareBareCopy writes rows into PostgreSQL with the bare COPY: the table and the indexes of
// InsertTrades, in a schema of their own, one COPY and one transaction per batch rows.
func CompareBareCopy(ctx context.Context, databaseURL string, rows []Trade, batch int) (m Measured, err error) {
	e, err := openPostgres(Options{URL: databaseURL, ReadConns: 1, BusyTimeout: 30 * time.Second})
	if err != nil {
		return m, err
	}
	definition, err := tradesDefinition(Postgres)
	if err != nil {
		return m, err
	}
	c, err := e.dial(ctx)
	if err != nil {
		return m, err
	}
	defer c.close()
	_, err = c.exec(ctx, "create schema "+bareSchema+"; set search_path = "+bareSchema+"; "+definition, nil)
	if err != nil {
		return m, fmt.Errorf("store: compare: %w", err)
	}
	defer func() {
		_, dropped := c.exec(context.WithoutCancel(ctx), "drop schema "+bareSchema+" cascade", nil)
		err = errors.Join(err, dropped)
	}()
	return Measure(fmt.Sprintf("postgres bare copy, batches of %d", batch), rows, batch, func(part []Trade) error {
		_, err := c.copier.run(ctx, c.raw.PgConn(), part)
		return c.mark(err)
	})
}

// tradesDefinition is the migration that makes the table.
func tradesDefinition(d Dialect) (string, error) {
	all, err := plan(migrationFiles, d)
	if err != nil {
		return "", err
	}
	return all[0].sql, nil
}

// Measure writes rows batch by batch with write and measures it, for a comparator and for
// what is compared with it.
func Measure(name string, rows []Trade, batch int, write func([]Trade) error) (Measured, error) {
	m := Measured{Name: name}
	took := make([]time.Duration, 0, len(rows)/max(batch, 1)+1)
	start := time.Now()
	for part := range slices.Chunk(rows, max(batch, 1)) {
		began := time.Now()
		if err := write(part); err != nil {
			return m, fmt.Errorf("store: measure %s: %w", name, err)
		}
		took = append(took, time.Since(began))
	}
	m.Rows, m.Seconds = len(rows), time.Since(start).Seconds()
	if len(took) > 0 {
		slices.Sort(took)
		m.P50, m.P99, m.Max = took[len(took)/2], took[len(took)*99/100], took[len(took)-1]
	}
	return m, nil
}
