package perf

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"posttrade/journal"
	"posttrade/journal/backup"
	"posttrade/matcher"
	"posttrade/perf/load"
)

// What the row asks for.
var besideBackups = atMost("P13", besideLimit,
	"p99 of orders while backups are made without a pause, against without")

// measureBackup is orders beside backups that follow each other without a pause, on the same
// machine: one polite thread reads the journal, another verifies and writes.
//
// The orders are the load of row P13: single ones, at a tenth of saturation, in mode fsync. The
// journal has the orders that made the positions of the cut's universe, and those of the phases
// before. There is no database, so no tables are backed up. Backups go to the disk of the journal.
func measureBackup(r *Run) (err error) {
	accounts, securities := max(r.scale(cutAccounts)&^1, 2*flowAccounts),
		max(r.scale(cutSecurities), 4)
	e, err := r.open(engineOptions{folder: "backup", durability: "fsync",
		genesis: cutGenesis(accounts, securities)})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.close()) }()
	wanted := accounts * securities
	if err := submitAll(e, wanted, func(i int) matcher.Command {
		return positionOrder(i, accounts)
	}); err != nil {
		return err
	}
	if err := e.snapshot(); err != nil {
		return err
	}
	clock := load.NewBusyClock()
	c := beside{name: "backup", target: newEngineTarget(e, clock), clock: clock,
		alone: r.duration(besideTurn)}
	c.work = func(int) error { return r.backups(e.Journal, c.alone) }
	if err := c.saturation(r, besideRate); err != nil {
		return err
	}
	p, err := r.besideWork(c)
	if err != nil {
		return err
	}
	r.judgeBeside(besideBackups, p)
	return nil
}

// backups makes whole backups, one after the other, for about d, and at least one. It states how
// many there were and the MiB a second of the journal's part.
func (r *Run) backups(j *journal.Journal, d time.Duration) (err error) {
	times, bytes := 0, int64(0)
	begun := time.Now()
	for times == 0 || time.Since(begun) < d {
		dir := filepath.Join(r.o.Dir, fmt.Sprintf("night-%d", times))
		err := journal.Politely(journal.Bulk, func() error {
			m, err := backup.Write(context.Background(), dir, journalSource{j},
				backup.Options{Now: time.Now})
			if err == nil {
				bytes += m.Files[0].Bytes
			}
			return err
		})
		if err := errors.Join(err, r.leave(dir)); err != nil {
			return err
		}
		times++
	}
	took := time.Since(begun)
	r.bench("Backup/op=write", times, took, metric{float64(bytes) / took.Seconds() / (1 << 20),
		"MiB/s"})
	return nil
}

// journalSource gives backups a journal as the admin listener does, on a polite thread of its own.
// It has no tables; a word in their place says why.
type journalSource struct{ j *journal.Journal }

// Journal streams the journal after a point through a pipe. An error of the reading thread is the
// error of the reader's next Read; the reader must be closed, or the thread stays in a write.
func (s journalSource) Journal(_ context.Context, _ string,
	after journal.Point) (io.ReadCloser, error) {
	t, err := s.j.TransferAfter(after)
	if err != nil {
		return nil, err
	}
	r, w := io.Pipe()
	go func() {
		w.CloseWithError(journal.Politely(journal.Bulk, func() error {
			_, err := io.CopyBuffer(w, t, make([]byte, 256<<10))
			return errors.Join(err, t.Close())
		}))
	}()
	return r, nil
}

// Tables has none: a backup of an engine without a database says so in the tables' place.
func (journalSource) Tables(context.Context) (io.ReadCloser, string, error) {
	return nil, "an engine alone", nil
}
