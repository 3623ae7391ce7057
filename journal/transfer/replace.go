package transfer

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// ReplacedSuffix names the directory that has been set aside.
const ReplacedSuffix = ".replaced"

// ErrReplace: the directories are not in a state that a Replacement leaves behind.
var ErrReplace = errors.New("journal cannot be replaced")

// Replacement makes the journal in Incoming the one in Dir, and removes the journal that Dir held
// before.
//
//  1. Dir is renamed to Dir.replaced, and its parent synced.
//  2. Incoming is renamed to Dir, and the parents synced, Dir's first.
//  3. Dir.replaced is removed, and its parent synced.
//
// After a crash at any moment the caller runs it again, before it opens the journal: it continues
// where it stopped, so a start always runs it. The directories show how far it came:
//
//	Dir there, Incoming whole: step 1 is next, after removing a Dir.replaced that is in the way
//	Dir gone, Incoming whole: step 2 is next
//	Dir there, Incoming not: step 3, if there is a Dir.replaced; otherwise there is nothing to do
//
// An Incoming that is not whole counts as not there, and is left as it is. Both directories must be
// on one file system.
type Replacement struct {
	// The directories' file system. Dir and Incoming are paths on it, neither of which lies in the
	// other.
	FS       vfs.FS
	Dir      string
	Incoming string

	// Whole reports that a directory holds a complete journal; false also if there is none.
	Whole func(dir string) (bool, error)
	// Lock takes the lock of a journal. Its errors come back as they are.
	Lock func(dir string) (io.Closer, error)
	// Sync makes the names in a directory durable.
	Sync func(dir string) error
}

// Run does the steps that are left. It returns ErrReplace when one directory lies in the other, or
// only Dir.replaced is left, which no crash leaves behind. Other errors are those of the file
// system and of Whole, Lock and Sync; after them another Run goes on. It blocks for the removal of
// a whole journal. One at a time.
func (r *Replacement) Run() error {
	if r.nested() {
		return fmt.Errorf("journal: replace dir=%s incoming=%s: one lies in the other: %w", r.Dir,
			r.Incoming, ErrReplace)
	}
	return r.steps()
}

// aside is where Dir's journal waits for its removal.
func (r *Replacement) aside() string { return r.Dir + ReplacedSuffix }

// nested reports whether a path lies in another, or is the same.
func (r *Replacement) nested() bool {
	within := func(a, b string) bool {
		rel, err := filepath.Rel(a, b)
		return err != nil || rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
	}
	return within(r.Dir, r.Incoming) || within(r.Incoming, r.Dir) || within(r.aside(), r.Incoming) ||
		within(r.Incoming, r.aside())
}

// steps finds out which step is next and does the rest. With nothing to do it takes no lock.
func (r *Replacement) steps() (err error) {
	there, err := r.exists(r.Dir)
	if err != nil {
		return err
	}
	ready, err := r.Whole(r.Incoming)
	if err != nil {
		return err
	}
	set, err := r.exists(r.aside())
	if err != nil {
		return err
	}
	switch {
	case !there && !ready && set:
		return fmt.Errorf("journal: replace dir=%s: only dir=%s is left: %w", r.Dir, r.aside(),
			ErrReplace)
	case !ready && !set:
		return nil
	}
	unlock, err := r.lock(there, ready)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	if there && set {
		if err := r.remove(); err != nil {
			return err
		}
	}
	if !ready {
		return nil
	}
	if there {
		if err := r.move(r.Dir, r.aside()); err != nil {
			return err
		}
	}
	if err := r.move(r.Incoming, r.Dir); err != nil {
		return err
	}
	return r.remove()
}

// exists reports whether there is something under name.
func (r *Replacement) exists(name string) (bool, error) {
	_, err := r.FS.Stat(name)
	if err == nil || oserror.IsNotExist(err) {
		return err == nil, nil
	}
	return false, fmt.Errorf("journal: stat dir=%s: %w", name, err)
}

// lock locks the journals that exist: neither may be in use while it is moved. After an error
// nothing is locked.
func (r *Replacement) lock(there, ready bool) (unlock func() error, err error) {
	var held []io.Closer
	unlock = func() error {
		var err error
		for _, l := range held {
			err = errors.Join(err, l.Close())
		}
		return err
	}
	for _, journal := range []struct {
		dir   string
		there bool
	}{{r.Dir, there}, {r.Incoming, ready}} {
		if !journal.there {
			continue
		}
		l, err := r.Lock(journal.dir)
		if err != nil {
			return nil, errors.Join(err, unlock())
		}
		held = append(held, l)
	}
	return unlock, nil
}

// move renames a directory, durably: at every moment it has one of the two names.
func (r *Replacement) move(from, to string) error {
	if err := r.FS.Rename(from, to); err != nil {
		return fmt.Errorf("journal: rename dir=%s to=%s: %w", from, to, err)
	}
	parent, other := r.FS.PathDir(to), r.FS.PathDir(from)
	if err := r.Sync(parent); err != nil || parent == other {
		return err
	}
	return r.Sync(other)
}

// remove removes what was set aside. Cut short, it is done again by the next Run.
func (r *Replacement) remove() error {
	if err := r.FS.RemoveAll(r.aside()); err != nil {
		return fmt.Errorf("journal: remove dir=%s: %w", r.aside(), err)
	}
	return r.Sync(r.FS.PathDir(r.aside()))
}
