package journal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// view is the file system of a journal that is read without the right to write to it and without
// its lock. It shows the store's files as they were at one moment, by their open files, also when
// their names are gone. Everything else is read from the disk, and nothing can be changed through a
// view.
//
// How one moment is caught while a server writes: the manifest that counts is copied first, then
// every log is copied and every table opened. The attempt is valid only if the manifest has not
// grown meanwhile. All that the manifest names is then there: the store deletes or reuses a log or
// a table only after it has written to the manifest that it does not need it any more. Anchor and
// tail are read before: they are behind the store, never ahead.
type view struct {
	vfs.FS
	// The store's directory: only files directly in it are pinned.
	store string
	// By name. A name that is not here does not exist for the store.
	files map[string]*pinned
}

// pinned is one file of the store: its bytes, or, for a table, which never changes, its open file.
// info is its state when it was pinned.
type pinned struct {
	name string
	text []byte
	file vfs.File // nil: text is all
	info vfs.FileInfo
}

// errView: a write through a view.
var errView = fmt.Errorf("a view cannot be written to: %w", os.ErrPermission)

// errMoving: the store's files changed while they were being opened.
var errMoving = errors.New("the store changes faster than it can be looked at")

// pinAttempts bounds how often a view is tried: a server writes to its manifest some
// times a second at most, and a view takes some milliseconds.
const pinAttempts = 64

// pin catches a moment of the store. errMoving after pinAttempts: a server writes faster than the
// files can be opened.
func pin(fs vfs.FS, store string) (*view, error) {
	for range pinAttempts {
		v, err := tryPin(fs, store)
		if err == nil || !errors.Is(err, errMoving) {
			return v, err
		}
	}
	return nil, fmt.Errorf("journal: open store=%s: %w", store, errMoving)
}

// tryPin is one attempt: manifest, everything else, and the manifest once more. It holds an open
// file for each table, and a copy of every other file in memory.
func tryPin(fs vfs.FS, store string) (_ *view, err error) {
	v := &view{FS: fs, store: store, files: map[string]*pinned{}}
	defer func() {
		if err != nil {
			v.close()
		}
	}()
	if err := v.take(isManifest); err != nil {
		return nil, err
	}
	if err := v.take(func(name string) bool { return !isManifest(name) }); err != nil {
		return nil, err
	}
	again := &view{FS: fs, store: store, files: map[string]*pinned{}}
	defer again.close()
	if err := again.take(isManifest); err != nil {
		return nil, err
	}
	for name, p := range v.files {
		if q := again.files[name]; isManifest(name) && (q == nil || !bytes.Equal(p.text, q.text)) {
			return nil, errMoving
		}
	}
	return v, nil
}

// isManifest reports a file that says which other files count.
func isManifest(name string) bool {
	return strings.HasPrefix(name, "MANIFEST-") || strings.HasPrefix(name, "marker.")
}

// isTable reports a file that is written once.
func isTable(name string) bool { return strings.HasSuffix(name, ".sst") }

// take opens the files with names of a kind. If one is gone by now, it returns errMoving: the names
// and the files are then of different moments.
func (v *view) take(kind func(name string) bool) error {
	names, err := v.FS.List(v.store)
	if err != nil {
		return fmt.Errorf("journal: open store=%s: %w", v.store, err)
	}
	for _, name := range names {
		if !kind(name) {
			continue
		}
		p, err := v.pin(name)
		if notExist(err) {
			err = errMoving
		}
		if err != nil {
			return err
		}
		if p != nil {
			v.files[name] = p
		}
	}
	return nil
}

// pin opens one file of the store: a table stays open, any other file is copied. nil for a
// directory.
func (v *view) pin(name string) (*pinned, error) {
	path := v.FS.PathJoin(v.store, name)
	f, err := v.FS.Open(path)
	if err != nil {
		return nil, fmt.Errorf("journal: open file=%s: %w", path, err)
	}
	p := &pinned{name: name, file: f}
	p.info, err = f.Stat()
	if err == nil && p.info.IsDir() {
		return nil, f.Close()
	}
	if err == nil && !isTable(name) {
		p.text = make([]byte, p.info.Size())
		p.file = nil
		var n int
		if n, err = f.ReadAt(p.text, 0); errors.Is(err, io.EOF) {
			p.text, err = p.text[:n], nil // it has become shorter
		}
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return nil, fmt.Errorf("journal: read file=%s: %w", path, err)
	}
	return p, nil
}

// close closes the files. The view and what was opened through it must not be used afterwards.
func (v *view) close() {
	for _, p := range v.files {
		if p.file != nil {
			_ = p.file.Close() // only read: nothing to lose
		}
	}
}

// pinnedAs finds the file of the store behind a path; ours is false for any other path, p nil for a
// name that was not there at that moment.
func (v *view) pinnedAs(path string) (p *pinned, ours bool) {
	if v.FS.PathDir(path) != v.store {
		return nil, false
	}
	return v.files[v.FS.PathBase(path)], true
}

// Open opens a file for reading.
func (v *view) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	p, ours := v.pinnedAs(name)
	switch {
	case !ours:
		return v.FS.Open(name, opts...)
	case p == nil:
		return nil, &os.PathError{Op: "open", Path: name, Err: os.ErrNotExist}
	}
	return &viewFile{pinned: p}, nil
}

// Stat is the state of the file when it was pinned.
func (v *view) Stat(name string) (vfs.FileInfo, error) {
	p, ours := v.pinnedAs(name)
	switch {
	case !ours:
		return v.FS.Stat(name)
	case p == nil:
		return nil, &os.PathError{Op: "stat", Path: name, Err: os.ErrNotExist}
	}
	return p.info, nil
}

// List returns the names at that moment.
func (v *view) List(dir string) ([]string, error) {
	if dir != v.store {
		return v.FS.List(dir)
	}
	var names []string
	for name := range v.files {
		names = append(names, name)
	}
	return names, nil
}

// Lock locks nothing: a view has one user, and the lock's file may belong to a server.
func (v *view) Lock(string) (io.Closer, error) { return noLock{}, nil }

type noLock struct{}

func (noLock) Close() error { return nil }

// Unwrap returns the file system below.
func (v *view) Unwrap() vfs.FS { return v.FS }

// Every operation that would change something is refused.
func (v *view) Create(string, vfs.DiskWriteCategory) (vfs.File, error) { return nil, errView }
func (v *view) Link(string, string) error                              { return errView }
func (v *view) OpenReadWrite(string, vfs.DiskWriteCategory, ...vfs.OpenOption) (vfs.File, error) {
	return nil, errView
}
func (v *view) Remove(string) error         { return errView }
func (v *view) RemoveAll(string) error      { return errView }
func (v *view) Rename(string, string) error { return errView }
func (v *view) ReuseForWrite(string, string, vfs.DiskWriteCategory) (vfs.File, error) {
	return nil, errView
}
func (v *view) MkdirAll(string, os.FileMode) error { return errView }

// viewFile is another open of a pinned file, with a place of its own. Closing it leaves the pinned
// file open.
type viewFile struct {
	*pinned
	at int64
}

// ReadAt reads as io.ReaderAt does: io.EOF with fewer bytes than asked for.
func (f *viewFile) ReadAt(b []byte, off int64) (int, error) {
	if f.file != nil {
		return f.file.ReadAt(b, off)
	}
	if off >= int64(len(f.text)) {
		return 0, io.EOF
	}
	n := copy(b, f.text[off:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

func (f *viewFile) Read(b []byte) (int, error) {
	n, err := f.ReadAt(b, f.at)
	f.at += int64(n)
	if n > 0 && errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}

func (f *viewFile) Stat() (vfs.FileInfo, error)           { return f.info, nil }
func (f *viewFile) Close() error                          { return nil }
func (f *viewFile) Write([]byte) (int, error)             { return 0, errView }
func (f *viewFile) WriteAt([]byte, int64) (int, error)    { return 0, errView }
func (f *viewFile) Preallocate(int64, int64) error        { return errView }
func (f *viewFile) Sync() error                           { return errView }
func (f *viewFile) SyncTo(int64) (fullSync bool, _ error) { return false, errView }
func (f *viewFile) SyncData() error                       { return errView }
func (f *viewFile) Prefetch(int64, int64) error           { return nil }
func (f *viewFile) Fd() uintptr                           { return vfs.InvalidFd }

// storeView is a journal that is open by a view. close ends it.
type storeView struct {
	view *view
	// Its own: nothing is written, so a failure is the call's error and ends no process.
	latch *latch
	db    *blockStore
	// Read before the store was pinned, so they are behind it or level with it.
	anchor  reading
	tail    *tailImage
	genesis []byte
}

// openView opens an existing journal by a view. It compares nothing yet: the caller decides what
// must hold. Errors: ErrNoGenesis, ErrUnfinished, ErrAnchorMissing, ErrAnchorDamaged,
// ErrTailDamaged, and what the store refuses. It fills o's defaults in.
func openView(dir string, o *VerifyOptions) (_ *storeView, err error) {
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if o.boot == "" {
		o.boot = BootID()
	}
	if err := existing(o.FS, dir); err != nil {
		return nil, err
	}
	if err := refuseUnfinished(o.FS, dir); err != nil {
		return nil, err
	}
	// nothing is written: a failure is the call's error
	s := &storeView{latch: newLatch(func(error) {})}
	if err := s.readMarks(o.FS, dir, o.boot); err != nil {
		return nil, err
	}
	if err := s.openStore(o.FS, dir); err != nil {
		return nil, err
	}
	s.db.archives.locate(o.FS, o.ArchiveDir)
	if s.genesis, err = anchoredGenesis(s.db, s.anchor, o.FS.PathJoin(dir, anchorName)); err != nil {
		return nil, errors.Join(s.explained(err), s.close())
	}
	s.anchor = s.anchor.settled(s.db, func() *tailImage { return s.tail })
	return s, nil
}

// readMarks reads anchor and tail. The anchor comes first: a later tail than it has seen is fine. A
// start that goes on without a tail says so in the anchor before it removes the tail, so a tail
// that is missing is one that is lost only if the anchor says the same again.
func (s *storeView) readMarks(fs vfs.FS, dir, boot string) (err error) {
	for range 2 {
		s.anchor, err = readAnchor(fs, dir, boot)
		if notExist(err) {
			return fmt.Errorf("%w: %w", err, ErrAnchorMissing)
		}
		if err != nil {
			return err
		}
		if s.tail, err = readTail(fs, dir); err != nil {
			return err
		}
		if err = s.anchor.has(s.tail, fs.PathJoin(dir, tailName)); err == nil {
			return nil
		}
	}
	return err
}

// openStore opens the store of the journal in dir by a view of it.
func (s *storeView) openStore(fs vfs.FS, dir string) (err error) {
	store := fs.PathJoin(dir, storeName)
	if s.view, err = pin(fs, store); err != nil {
		return err
	}
	o := storeOptions(s.view, s.latch, discardLogger{})
	o.ReadOnly, o.ErrorIfNotExists = true, true
	if s.db, err = openStore(store, o, s.latch); err != nil {
		s.view.close()
		return err
	}
	if err := checkTables(s.db, s.view, store, o); err != nil {
		return errors.Join(err, s.close())
	}
	return nil
}

// explained adds to a refusal what the store's folder shows about its cause.
func (s *storeView) explained(err error) error { return explained(err, s.db, s.view, s.view.store) }

// follows checks that the anchor is of this genesis.
func (s *storeView) follows(seed [chainBytes]byte) error {
	if seed != s.anchor.seed {
		return fmt.Errorf("journal: key=g: genesis hash %x, anchor has %x: %w",
			seed, s.anchor.seed, ErrDiverged)
	}
	return nil
}

func (s *storeView) close() error {
	err := closeStore(s.db, s.latch)
	s.view.close()
	return err
}
