package journal

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// replacedSuffix names the journal that has been set aside.
const replacedSuffix = ".replaced"

// ErrReplace: the directories are not in a state that Replace leaves behind.
var ErrReplace = errors.New("journal cannot be replaced")

// Replace makes the journal that was received into incoming the one in dir, and removes the journal
// that dir held before. A nil fs is the disk's.
//
//  1. dir is renamed to dir.replaced, and its parent synced.
//  2. incoming is renamed to dir, and the parents synced, dir's first.
//  3. dir.replaced is removed, and its parent synced.
//
// After a crash at any moment the caller calls Replace again, before Open: it continues where it
// stopped, so a start always calls it. The directories show how far it came:
//
//	dir there, incoming whole: step 1 is next, after removing a dir.replaced that is in the way
//	dir gone, incoming whole: step 2 is next
//	dir there, incoming not: step 3, if there is a dir.replaced; otherwise there is nothing to do
//
// An incoming that was not received in full (ErrUnfinished to Open) counts as not there, and is
// left for the next Receive.
//
//   - Errors: ErrLocked when either journal is in use. ErrReplace when one directory lies in the
//     other, or only dir.replaced is left, which no crash leaves behind.
//   - Both directories must be on one file system.
func Replace(dir, incoming string, fs vfs.FS) error {
	if fs == nil {
		fs = vfs.Default
	}
	r := replacement{fs: fs, dir: dir, aside: dir + replacedSuffix, incoming: incoming}
	if r.nested() {
		return fmt.Errorf("journal: replace dir=%s incoming=%s: one lies in the other: %w", dir, incoming,
			ErrReplace)
	}
	return r.run()
}

// replacement is one Replace.
type replacement struct {
	fs       vfs.FS
	dir      string
	aside    string
	incoming string
}

// nested reports whether a path lies in another, or is the same.
func (r *replacement) nested() bool {
	within := func(a, b string) bool {
		rel, err := filepath.Rel(a, b)
		return err != nil || rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
	}
	return within(r.dir, r.incoming) || within(r.incoming, r.dir) || within(r.aside, r.incoming) ||
		within(r.incoming, r.aside)
}

func (r *replacement) run() (err error) {
	there, err := r.exists(r.dir)
	if err != nil {
		return err
	}
	ready, err := r.ready()
	if err != nil {
		return err
	}
	set, err := r.exists(r.aside)
	if err != nil {
		return err
	}
	switch {
	case !there && !ready && set:
		return fmt.Errorf("journal: replace dir=%s: only dir=%s is left: %w", r.dir, r.aside, ErrReplace)
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
		if err := r.move(r.dir, r.aside); err != nil {
			return err
		}
	}
	if err := r.move(r.incoming, r.dir); err != nil {
		return err
	}
	return r.remove()
}

// exists reports whether there is something under name.
func (r *replacement) exists(name string) (bool, error) {
	_, err := r.fs.Stat(name)
	if err == nil || notExist(err) {
		return err == nil, nil
	}
	return false, fmt.Errorf("journal: stat dir=%s: %w", name, err)
}

// ready reports whether incoming holds a whole journal: Receive writes the
// anchor last, and then removes its mark.
func (r *replacement) ready() (bool, error) {
	anchored, err := r.exists(r.fs.PathJoin(r.incoming, anchorName))
	if err != nil || !anchored {
		return false, err
	}
	err = whole(r.fs, r.incoming)
	if errors.Is(err, ErrUnfinished) {
		return false, nil
	}
	return err == nil, err
}

// lock locks the journals that exist.
func (r *replacement) lock(there, ready bool) (unlock func() error, err error) {
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
	}{{r.dir, there}, {r.incoming, ready}} {
		if !journal.there {
			continue
		}
		l, err := lockDir(r.fs, journal.dir)
		if err != nil {
			return nil, errors.Join(err, unlock())
		}
		held = append(held, l)
	}
	return unlock, nil
}

// move renames a directory, durably: at every moment it has one of the two names.
func (r *replacement) move(from, to string) error {
	if err := r.fs.Rename(from, to); err != nil {
		return fmt.Errorf("journal: rename dir=%s to=%s: %w", from, to, err)
	}
	parent, other := r.fs.PathDir(to), r.fs.PathDir(from)
	if err := syncDir(r.fs, parent); err != nil || parent == other {
		return err
	}
	return syncDir(r.fs, other)
}

// remove removes what was set aside.
func (r *replacement) remove() error {
	if err := r.fs.RemoveAll(r.aside); err != nil {
		return fmt.Errorf("journal: remove dir=%s: %w", r.aside, err)
	}
	return syncDir(r.fs, r.fs.PathDir(r.aside))
}
