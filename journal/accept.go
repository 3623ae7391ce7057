package journal

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// AcceptHistory is the operator's way out when the anchor refuses a history, or is lost. It
// verifies everything in the store but the anchor, and if that holds makes an anchor at the store's
// head. Commands that the old anchor had seen beyond that head are given up, and their sequences
// are used again: this is a decision, never a repair, and nothing in this module calls it by
// itself.
//
// AcceptHistory verifies without changing a byte. When everything holds, it first copies what it
// replaces, and what the next opening of the store will replace: Report.Copy.
//
// The new anchor takes the place of the old one in one rename, last. After a crash before that
// AcceptHistory can be called again.
//
//   - Errors: ErrLocked while a server has the journal, ErrNoGenesis, ErrArchived when a part of
//     the history cannot be read at o.ArchiveDir, and what Verify finds in the store and its
//     archives. Until the copy is made nothing has been changed.
//   - Cost: that of Verify, then a copy of the store's logs, and a sync of every file.
func AcceptHistory(ctx context.Context, dir string, o VerifyOptions) (r Report, err error) {
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if o.boot == "" {
		o.boot = BootID()
	}
	if err := existing(o.FS, dir); err != nil {
		return r, err
	}
	lock, err := lockDir(o.FS, dir)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	head, refused, err := acceptable(ctx, dir, &o, &r)
	if err != nil {
		return r, err
	}
	if r.Copy, err = copyReplaced(o.FS, dir); err != nil {
		return r, err
	}
	last := lastRun(o.FS, dir, o.boot)
	if refused {
		err = setTailAside(o.FS, dir)
	}
	if err == nil {
		// the anchor may vouch for synced history only
		err = syncFiles(o.FS, o.FS.PathJoin(dir, storeName))
	}
	if err != nil {
		return r, err
	}
	a, err := createAnchor(o.FS, dir, r.Seed, o.boot, slotSynced, head, last)
	if err != nil {
		return r, err
	}
	r.Anchored = head.inputSeq
	return r, a.Close()
}

// lastRun is the latest run of the tail that the anchor or the tail knows, 0 where neither can be
// read: the runs behind an accepted history go on from it.
func lastRun(fs vfs.FS, dir, boot string) (last uint64) {
	if r, err := readAnchor(fs, dir, boot); err == nil {
		last = r.last
	}
	if t, err := readTail(fs, dir); err == nil && t != nil {
		last = max(last, t.run)
	}
	return last
}

// acceptable verifies the store alone, by a view, and returns its head. refused reports a tail that
// does not continue the store's history, or that cannot be read. An error says that the store
// itself does not hold: there is nothing to accept then.
func acceptable(ctx context.Context, dir string, o *VerifyOptions,
	r *Report) (head point, refused bool, err error) {
	// nothing is written: a failure is this call's error
	s := &storeView{latch: newLatch(func(error) {})}
	if err := s.openStore(o.FS, dir); err != nil {
		return head, false, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	s.db.archives.locate(o.FS, o.ArchiveDir) // the whole history is read, also what was moved out
	genesis, err := readGenesis(s.db)
	if err != nil {
		return head, false, err
	}
	check, err := newFillCheck(genesis, o.Engine)
	if err != nil {
		return head, false, err
	}
	r.Seed, r.Replayed = hashOf(genesis), check != nil
	if head, err = readAll(ctx, s.db, r, check); err == nil {
		refused, err = contradicts(s.db, dir, o, r, head)
	}
	return head, refused, errors.Join(err, check.close())
}

// copyReplaced copies anchor, tail and the store's logs and lists of files into a folder of their
// own, synced, and returns its name: the first accepted-<n> that is free. Tables are not replaced.
func copyReplaced(fs vfs.FS, dir string) (to string, err error) {
	for n := 1; ; n++ {
		to = fs.PathJoin(dir, fmt.Sprintf("accepted-%d", n))
		if _, err := fs.Stat(to); notExist(err) {
			break
		} else if err != nil {
			return "", fmt.Errorf("journal: stat dir=%s: %w", to, err)
		}
	}
	store := fs.PathJoin(dir, storeName)
	if err := fs.MkdirAll(fs.PathJoin(to, storeName), 0o700); err != nil {
		return "", fmt.Errorf("journal: make dir=%s: %w", to, err)
	}
	names, err := fs.List(store)
	if err != nil {
		return "", fmt.Errorf("journal: list dir=%s: %w", store, err)
	}
	for _, name := range names {
		if !isTable(name) {
			err = errors.Join(err, copyFile(fs, fs.PathJoin(store, name), fs.PathJoin(to, storeName, name)))
		}
	}
	for _, name := range []string{anchorName, tailName} {
		err = errors.Join(err, copyFile(fs, fs.PathJoin(dir, name), fs.PathJoin(to, name)))
	}
	for _, made := range []string{fs.PathJoin(to, storeName), to, dir} {
		err = errors.Join(err, syncDir(fs, made))
	}
	return to, err
}

// copyFile copies a file, synced, if it is there. The name of the copy is durable when its
// directory has been synced.
func copyFile(fs vfs.FS, from, to string) error {
	in, err := fs.Open(from, vfs.SequentialReadsOption)
	if notExist(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("journal: copy file=%s: %w", from, err)
	}
	out, err := fs.Create(to, writeCategory)
	if err == nil {
		_, err = io.Copy(out, in)
		err = errors.Join(err, out.Sync(), out.Close())
	}
	if err = errors.Join(err, in.Close()); err != nil {
		return fmt.Errorf("journal: copy file=%s: %w", from, err)
	}
	return nil
}

// syncFiles syncs everything in a directory and then the names: what was read may have been in the
// system's memory only.
func syncFiles(fs vfs.FS, dir string) error {
	names, err := fs.List(dir)
	if err != nil {
		return fmt.Errorf("journal: list dir=%s: %w", dir, err)
	}
	for _, name := range names {
		path := fs.PathJoin(dir, name)
		f, err := fs.Open(path)
		if err == nil {
			err = errors.Join(f.Sync(), f.Close())
		}
		if err != nil {
			return fmt.Errorf("journal: sync file=%s: %w", path, err)
		}
	}
	return syncDir(fs, dir)
}

// readAll walks every commit, checks that nothing lies beyond the last, and returns the end. r is
// filled in as it goes.
func readAll(ctx context.Context, db *blockStore, r *Report, check *fillCheck) (point, error) {
	w := newWalker(db, r.Seed)
	defer w.close()
	err := w.walk(0, func(b *decoded) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		r.add(b)
		r.InputSeq, r.TradeSeq, r.Chain = w.at.inputSeq, w.at.tradeSeq, w.at.chain
		return check.commit(b)
	})
	if err == nil {
		err = checkStrays(db, w.at)
	}
	return w.at, err
}
