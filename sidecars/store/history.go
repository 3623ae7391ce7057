package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
)

// ErrForeign says that the database is filled from another history than that of this process's
// journal. It comes together with ErrUnavailable: the process reads nothing from the database and
// writes nothing to it. Only a person can decide which of the two is right.
var ErrForeign = errors.New("the database belongs to another history")

// History identifies the journal that fills a database. Two journals with the same genesis record
// differ in their first trade. Until each has a trade they cannot be told apart.
type History struct {
	// Genesis has 64 hexadecimal digits.
	Genesis string // GenesisMark of the genesis record
	Origin  uint64 // digest of trade 1, at most MaxInt64; 0 while the journal has none
}

// GenesisMark returns the text that a History holds for a genesis record.
func GenesisMark(record []byte) string {
	sum := sha256.Sum256(record)
	return hex.EncodeToString(sum[:])
}

// HistoryBinding ties a DB to one history: see Bind.
//
// The functions are called inside of a transaction, on the goroutine that uses the DB, so neither
// may call Read or Write of that DB.
type HistoryBinding struct {
	// History returns the history of this process's journal as it is now. Every transaction calls it.
	History func() (History, error)
	// Agrees checks whether the rows of a database without a mark can be those of the bound history.
	// Its error says why not.
	Agrees func(*Tx) error
}

// Bind ties the database to a history. The caller calls it before anything uses the DB. From then
// on every transaction checks the database's mark first, so that it neither reads nor writes a row
// of another history, at whatever time and by whatever process the database is marked. A database
// without a mark gets the mark of this history when its rows agree.
//
// The field has no lock: a Bind beside a running call is a race. A DB that is never bound, as that
// of a subcommand or of a test, may use any database.
func (d *DB) Bind(b HistoryBinding) { d.binding = &b }

// bound returns fn preceded by the check that the database belongs to the bound history.
//
// The check costs one read of a one-row table in each transaction. A check at the start alone would
// miss a database that is restored or marked by another process while this one runs.
func (d *DB) bound(fn func(*Tx) error) func(*Tx) error {
	b := d.binding
	if b == nil {
		return fn
	}
	return func(t *Tx) error {
		found, err := b.marked(t)
		if err == nil && !found {
			d.prepared.Store(false) // the mark is gone: the next call checks the rows again
			err = foreign("its mark was removed")
		}
		if err != nil {
			return err
		}
		return fn(t)
	}
}

// ours returns the bound history.
func (b *HistoryBinding) ours() (History, error) {
	h, err := b.History()
	if err != nil {
		err = fmt.Errorf("store: history of the journal: %w", err)
	}
	return h, err
}

// marked compares the mark of the database, if it has one, with the bound history.
//
// A mark with Origin 0 was written before the journal had a trade, and agrees with every journal of
// the same genesis record until MarkOrigin completes it.
func (b *HistoryBinding) marked(t *Tx) (found bool, err error) {
	ours, err := b.ours()
	if err != nil {
		return false, err
	}
	mark, found, err := t.History()
	switch {
	case err != nil || !found:
		return false, err
	case mark.Genesis != ours.Genesis:
		return true, foreign("genesis %.12s fills it, the journal has %.12s", mark.Genesis, ours.Genesis)
	case mark.Origin != 0 && ours.Origin == 0:
		return true, foreign("it holds trades, the journal has none")
	case mark.Origin != 0 && mark.Origin != ours.Origin:
		return true, foreign("its trade 1 is not the journal's")
	}
	return true, nil
}

// foreign returns an ErrForeign with the given details.
func foreign(format string, args ...any) error {
	return fmt.Errorf("store: %w: %w: "+format, append([]any{ErrUnavailable, ErrForeign}, args...)...)
}

// History returns the mark of the database; found is false when it has none.
//
// It reads what is stored, without a comparison: Bind does that.
func (t *Tx) History() (h History, found bool, err error) {
	err = t.Query("select genesis, origin from history where id = 1", func(r *Row) error {
		h, found = History{Genesis: r.Text(0), Origin: uint64(r.Int64(1))}, true
		return nil
	})
	return h, found, err
}

// MarkOrigin notes the digest of trade 1 in a mark that has none. The transaction that writes the
// first row of a history must call it: of two journals with the same genesis record, one commits
// first, and the other finds its mark.
//
// The statement waits for a concurrent one on the same row. ErrForeign means that the mark holds
// the origin of another journal; the caller's transaction must then be rolled back, which Write
// does with this error.
func (t *Tx) MarkOrigin(origin uint64) error {
	n, err := t.Exec("update history set origin = $1 where id = 1 and origin in (0, $2)",
		origin, origin)
	if err != nil || n > 0 {
		return err
	}
	if _, found, err := t.History(); err != nil || !found {
		return err // a process that uses a database without a mark is not bound
	}
	return foreign("its trade 1 is not the journal's")
}

// ForgetHistory deletes the mark, for an operator that gives up what the rows hold of another
// history. The next use marks the database again when its rows agree.
//
// Processes that are bound get ErrForeign from their next transaction on, and look at the rows
// again in the one after it.
func (t *Tx) ForgetHistory() error {
	_, err := t.Exec("delete from history")
	return err
}

// claim checks the mark of the database. A database without a mark gets that of the bound history
// when its rows agree. When two processes claim at once, one inserts the mark, and the other finds
// that mark.
//
// The read comes first, so that a start on a marked database takes no write lock. An error of
// Agrees that is not ErrUnavailable becomes ErrForeign: the rows are there and are not those of
// this journal.
func (d *DB) claim(ctx context.Context) error {
	b := d.binding
	if b == nil {
		return nil
	}
	marked := false
	err := d.engine.read(ctx, func(t *Tx) (err error) { marked, err = b.marked(t); return err })
	if err != nil || marked {
		return err
	}
	return d.engine.write(ctx, func(t *Tx) error {
		ours, err := b.ours()
		if err != nil {
			return err
		}
		if err := b.Agrees(t); err != nil {
			if errors.Is(err, ErrUnavailable) {
				return err
			}
			return foreign("%w", err)
		}
		added, err := t.Exec("insert into history (id, genesis, origin) values (1, $1, $2) "+
			"on conflict (id) do nothing", ours.Genesis, ours.Origin)
		if err == nil && added > 0 {
			d.log.Info("database is marked as this journal's", "genesis", ours.Genesis[:12])
		}
		return err
	})
}

// Foreign reports whether the last attempt to use the database found another history's. No I/O.
//
// It stays true until an attempt succeeds or fails for another reason.
func (d *DB) Foreign() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.found[reading].foreign || d.found[writing].foreign
}
