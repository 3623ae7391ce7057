package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
)

// ErrForeign says that another history fills the database than that of this process's
// journal. It comes together with ErrUnavailable: nothing is read from it and nothing is
// written to it, and only a person can say which of the two is right.
var ErrForeign = errors.New("the database belongs to another history")

// History is by what a database knows whose journal fills it. Two journals with one genesis
// record differ in their first trade, and agree until each has one.
type History struct {
	Genesis string // GenesisMark of the genesis record
	Origin  uint64 // digest of trade 1, at most MaxInt64; 0 while the journal has none
}

// GenesisMark is what a History says of a genesis record.
func GenesisMark(record []byte) string {
	sum := sha256.Sum256(record)
	return hex.EncodeToString(sum[:])
}

// Belonging ties a DB to one history: see Bind.
type Belonging struct {
	// History is that of the journal beside, as it is now. It is called in every transaction.
	History func() (History, error)
	// Agrees looks whether the rows of a database without a mark can be those of that
	// history, and says in its error why not.
	Agrees func(*Tx) error
}

// Bind ties the database to a history, before anything uses it. From then on every
// transaction begins with a look at the database's mark, so that not one figure of another
// history is read and not one row written, whoever marks the database and whenever. A
// database without a mark gets this one when its rows agree.
func (d *DB) Bind(b Belonging) { d.belonging = &b }

// bound lets fn run in a transaction of a database that belongs to the bound history.
func (d *DB) bound(fn func(*Tx) error) func(*Tx) error {
	b := d.belonging
	if b == nil {
		return fn
	}
	return func(t *Tx) error {
		found, err := b.marked(t)
		if err == nil && !found {
			d.prepared.Store(false) // the mark was taken away: the next call looks at the rows again
			err = foreign("its mark was removed")
		}
		if err != nil {
			return err
		}
		return fn(t)
	}
}

// ours is the bound history.
func (b *Belonging) ours() (History, error) {
	h, err := b.History()
	if err != nil {
		err = fmt.Errorf("store: history of the journal: %w", err)
	}
	return h, err
}

// marked compares the mark of the database, if it has one, with the bound history.
func (b *Belonging) marked(t *Tx) (found bool, err error) {
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

// foreign is an ErrForeign that says by what it was told.
func foreign(format string, args ...any) error {
	return fmt.Errorf("store: %w: %w: "+format, append([]any{ErrUnavailable, ErrForeign}, args...)...)
}

// History returns the mark of the database; found is false when it has none.
func (t *Tx) History() (h History, found bool, err error) {
	err = t.Query("select genesis, origin from history where id = 1", func(r *Row) error {
		h, found = History{Genesis: r.Text(0), Origin: uint64(r.Int64(1))}, true
		return nil
	})
	return h, found, err
}

// MarkOrigin notes the digest of trade 1 in a mark that has none. Whoever writes the first
// row of a history does so in the same transaction: one of two journals with one genesis
// record comes first, and the other finds the mark.
func (t *Tx) MarkOrigin(origin uint64) error {
	n, err := t.Exec("update history set origin = $1 where id = 1 and origin in (0, $2)", origin, origin)
	if err != nil || n > 0 {
		return err
	}
	if _, found, err := t.History(); err != nil || !found {
		return err // whoever uses a database without a mark is not bound
	}
	return foreign("its trade 1 is not the journal's")
}

// ForgetHistory takes the mark away, for an operator that gives up what the rows know of
// another history. The next use marks the database again, when its rows agree.
func (t *Tx) ForgetHistory() error {
	_, err := t.Exec("delete from history")
	return err
}

// claim looks at the mark of the database. One without a mark is marked as the bound
// history's when its rows agree: of two that come at once one inserts, and the other finds
// what that has inserted.
func (d *DB) claim(ctx context.Context) error {
	b := d.belonging
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
func (d *DB) Foreign() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.found[reading].foreign || d.found[writing].foreign
}
