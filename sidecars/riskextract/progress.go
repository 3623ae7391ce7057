package riskextract

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"posttrade/ring/disk"
	"posttrade/sidecars/store"
)

// progress is how far Run has dealt with the markers. Run and the callers of Wait share it.
//
// A marker is in one of three places: at or above next (not looked at), in open (tried or to be
// tried), or neither (announced).
type progress struct {
	nudge chan struct{} // has room for one value: a caller of Wait is waiting

	mu      sync.Mutex    // guards the fields below; only Run changes next and open
	changed chan struct{} // closed, and replaced, at every change
	// next: every marker before it is known: done, or in open; 0: nothing is known yet
	next uint64
	open []*attempt // by ascending sequence
}

// attempt is a marker that has not been announced yet.
//
// Its fields are guarded by progress.mu. refusals tells a caller of Wait whether a new try was
// made.
type attempt struct {
	Marker
	refusals int
	err      error     // the last refusal
	due      time.Time // when to try again
}

// newProgress knows nothing yet: next is 0.
func newProgress() progress {
	return progress{changed: make(chan struct{}), nudge: make(chan struct{}, 1)}
}

// change runs f under the lock and wakes the callers of Wait.
func (p *progress) change(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
	close(p.changed)
	p.changed = make(chan struct{})
}

// wake makes the callers of Wait look again.
func (p *progress) wake() { p.change(func() {}) }

// find returns the open attempt of a sequence, nil for none. The caller holds the lock.
func (p *progress) find(seq uint64) *attempt {
	i, found := slices.BinarySearchFunc(p.open, seq,
		func(a *attempt, seq uint64) int { return cmp.Compare(a.Seq, seq) })
	if !found {
		return nil
	}
	return p.open[i]
}

// passed is the highest sequence that the cursor may have. The caller holds the lock.
func (p *progress) passed() uint64 {
	if len(p.open) > 0 {
		return p.open[0].Seq - 1
	}
	return max(p.next, 1) - 1
}

// openBefore reports whether a marker before a sequence is open.
func (p *progress) openBefore(seq uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.open) > 0 && p.open[0].Seq < seq
}

// due returns the first attempt above a sequence that is due.
//
// It returns a copy: Run makes the extract without the lock.
func (p *progress) due(after uint64, now time.Time) (a Marker, found bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, a := range p.open {
		if a.Seq > after && !a.due.After(now) {
			return a.Marker, true
		}
	}
	return Marker{}, false
}

// drop removes the open attempts of a range: they are announced. It wakes no goroutine.
func (p *progress) drop(from, to uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open = slices.DeleteFunc(p.open, func(a *attempt) bool { return from <= a.Seq && a.Seq <= to })
}

// cursor stores the sequence up to which every marker is announced.
//
// save replaces the value. A value that is too low only repeats announcements; one that is too high
// would lose some, so it is saved after them.
type cursor interface {
	load(ctx context.Context) (uint64, error)
	save(ctx context.Context, seq uint64) error
}

// cursorName is the cursor's name in the table, and the name of the file.
const cursorName = "riskextract"

// sqlCursor is a cursor in the database. All members share it.
//
// A new leader so continues where the last one ended.
type sqlCursor struct{ db *store.DB }

func (c sqlCursor) load(ctx context.Context) (seq uint64, err error) {
	err = c.db.Read(ctx, func(tx *store.Tx) error {
		seq, err = tx.Cursor(cursorName)
		return err
	})
	return seq, err
}

func (c sqlCursor) save(ctx context.Context, seq uint64) error {
	return c.db.Write(ctx, func(tx *store.Tx) error { return tx.SetCursor(cursorName, seq) })
}

// fileCursor is a cursor in a directory, for a member without a database.
//
// The file riskextract.cursor holds the sequence in decimal. It is replaced by a rename.
type fileCursor struct{ dir string }

func (c fileCursor) load(context.Context) (uint64, error) {
	text, err := os.ReadFile(c.path())
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("riskextract: cursor: %w", err)
	}
	seq, err := strconv.ParseUint(string(text), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("riskextract: cursor file=%s holds %q", c.path(), text)
	}
	return seq, nil
}

func (c fileCursor) save(_ context.Context, seq uint64) error {
	if err := disk.MakeDir(c.dir, 0o755); err != nil {
		return fmt.Errorf("riskextract: cursor: %w", err)
	}
	err := disk.ReplaceText(c.path(), 0o644, strconv.AppendUint(nil, seq, 10))
	if err != nil {
		return fmt.Errorf("riskextract: cursor: %w", err)
	}
	return nil
}

func (c fileCursor) path() string { return filepath.Join(c.dir, cursorName+".cursor") }
