package recon

import (
	"context"
	"errors"
	"fmt"

	"posttrade/sidecars/store"
)

// bounds keep a chunk small: its transaction and the memory that it takes. A chunk ends after the
// page of entries that reaches one of them.
type bounds struct {
	page     uint64 // entries whose rows are read in one query
	rows     int    // compared rows
	findings int    // runs of absent entries, and mismatches
	rechecks int    // open ranges that one sweep checks again
	orphans  int    // orphans that one sweep checks again
	near     uint64 // open entries at most this far apart are checked as one range; at least 1
}

// defaultBounds: a page is about 4 MB of rows, a chunk about a quarter of a second.
var defaultBounds = bounds{
	page: 16384, rows: 131072, findings: 4096, rechecks: 1024, orphans: 4096, near: 64,
}

// walk is one way through the entries: the history it compares with, and the cursor it moves.
//
// A walk lives for one call of the function that makes it. Its functions are called with mu held,
// plan in the snapshot, moved and adds after it; plan runs again when the books were changed
// meanwhile, so it must set what it decides, not add to it.
type walk struct {
	name string
	// fills is how the history is read: from the blotter for entries that may be recent, from the
	// journal itself to verify it, from the index to find orphans. maxRows is how many compared rows
	// end a chunk.
	fills   reader
	maxRows int
	sweeps  bool // adds entries above the last swept one to the books

	// plan returns the entries to compare next, ascending and disjoint. None of them is below an entry
	// of an earlier plan's result. It is called in the snapshot.
	plan func(tx *store.Tx, b *books) ([]span, error)
	// moved records in the books that the entries up to done have been compared.
	moved func(b *books, done uint64)
	// rows and stray may be nil. rows receives the number of rows of a compared page, including rows
	// of entries above the last swept one. stray receives each row that no fill gives.
	rows  func(n int)
	stray func(t *store.Trade)
	// adds may be nil. It returns the function that adds to the transaction what follows from the
	// compared rows; nil for nothing.
	adds func() func(tx *store.Tx, b *books) error
}

// progress is the result of a chunk.
type progress struct {
	done uint64 // the last entry compared; 0: none
	all  bool   // all planned entries have been compared
	rows int
}

// chunk does one unit of work of a walk: it compares planned entries in one snapshot, and writes
// the result in one transaction.
//
// Nothing to change means no transaction. errMoved means that another transaction changed the books
// between the two: nothing is written, and the caller may run it again (again). Counters move only
// after the commit.
func (r *Recon) chunk(ctx context.Context, w *walk, c clock) (progress, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var (
		was   books
		found []verdict
		p     progress
	)
	err := r.o.DB.Read(ctx, func(tx *store.Tx) (err error) {
		if was, err = readBooks(tx); err != nil {
			return err
		}
		found, p, err = r.compare(ctx, tx, w, &was, c)
		return err
	})
	if err != nil {
		return p, fmt.Errorf("recon: %s read: %w", w.name, err)
	}
	r.publish(&was)
	is := was
	var sum change
	for i := range found {
		sum.add(found[i].change)
	}
	is.apply(sum)
	if p.done > 0 && w.moved != nil {
		w.moved(&is, p.done)
	}
	var add func(tx *store.Tx, b *books) error
	if w.adds != nil {
		add = w.adds()
	}
	if is == was && sum == (change{}) && !anyEdit(found) && add == nil {
		return p, nil
	}
	if err := r.commit(ctx, was, &is, func(tx *store.Tx, b *books) error {
		for i := range found {
			if err := writeExceptions(tx, found[i].was, found[i].is); err != nil {
				return err
			}
		}
		if add == nil {
			return nil
		}
		return add(tx, b)
	}); err != nil {
		return progress{}, fmt.Errorf("recon: %s write: %w", w.name, err)
	}
	r.counters.matched.Add(sum.nowMatched)
	r.counters.missing.Add(sum.nowMissing)
	r.counters.mismatch.Add(sum.nowDiffers)
	return p, nil
}

// commit replaces was by is, together with the writes of write, and shows the result to Metrics.
// write may change the books; it starts from is each time it runs.
//
// The caller holds mu. The write begins with claim, so the lock on the books is held while write
// runs.
func (r *Recon) commit(ctx context.Context, was books, is *books,
	write func(tx *store.Tx, b *books) error) error {
	var written books
	err := r.o.DB.Write(ctx, func(tx *store.Tx) error {
		if err := claim(tx, was); err != nil {
			return err
		}
		written = *is
		written.sweptMillis = ownTime(&r.lastSweep, written.sweptMillis)
		written.recheckedMillis = ownTime(&r.lastRound, written.recheckedMillis)
		if err := write(tx, &written); err != nil {
			return err
		}
		return writeBooks(tx, was, written)
	})
	if err != nil {
		return err
	}
	if written.orphans > was.orphans { // one transaction either adds orphans or closes some
		r.counters.orphan.Add(written.orphans - was.orphans)
	}
	*is = written
	r.publish(is)
	return nil
}

// again runs work, and once more when another transaction changed the books meanwhile.
//
// A second failure is returned: the task pauses and comes again.
func again(work func() (progress, error)) (progress, error) {
	p, err := work()
	if errors.Is(err, errMoved) {
		p, err = work()
	}
	return p, err
}

// verdict is the judgement of one span.
//
// was is what the books said of it, is what they will say.
type verdict struct {
	was, is exceptions
	change  change
}

// anyEdit reports whether a verdict changes any row of the tables of exceptions. Times may change
// without moving a tally.
func anyEdit(found []verdict) bool {
	for i := range found {
		oldGaps, newGaps := middle(found[i].was.gaps, found[i].is.gaps)
		oldOnes, newOnes := middle(found[i].was.mismatches, found[i].is.mismatches)
		if len(oldGaps)+len(newGaps)+len(oldOnes)+len(newOnes) > 0 {
			return true
		}
	}
	return false
}
