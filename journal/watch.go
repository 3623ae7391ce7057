package journal

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// watchedFS stands between the store and the file system and ends the journal at the first
// operation that fails to change the disk, before the store learns of it: the store answers some
// such errors with a retry, a panic or a success. In production the Fatal hook does not return. In
// tests it does; then the call is unwound to guard, or, on a goroutine of the store's own, stops
// there for good. The latch releases the callers that wait for a commit.
type watchedFS struct {
	vfs.FS
	latch *latch
}

// watch wraps a store's file system. Reads go through as they are: a read that fails is for its
// caller to judge.
func watch(fs vfs.FS, l *latch) vfs.FS { return &watchedFS{fs, l} }

// failed ends the journal for err, unless it is nil or says that a file is not there, or is there
// already. It does not return to the store with any other error.
func (w *watchedFS) failed(verb, name string, err error) error {
	if err == nil || notExist(err) || errors.Is(err, os.ErrExist) {
		return err
	}
	err = w.latch.Poison(fmt.Errorf("journal: %s file=%s: %w", verb, name, err))
	if guarded() {
		panic(unwinding{err})
	}
	select {}
}

// Create syncs the directory before it makes a marker file in it. A marker names the manifest that
// counts; after a power cut it must not be there without the manifest.
func (w *watchedFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if strings.HasPrefix(w.PathBase(name), "marker.") {
		if err := w.failed("sync", w.PathDir(name), syncDir(w.FS, w.PathDir(name))); err != nil {
			return nil, err
		}
	}
	f, err := w.FS.Create(name, category)
	return w.file(f, name), w.failed("create", name, err)
}

func (w *watchedFS) Link(from, to string) error {
	return w.failed("link", to, w.FS.Link(from, to))
}

func (w *watchedFS) OpenReadWrite(name string, category vfs.DiskWriteCategory,
	opts ...vfs.OpenOption) (vfs.File, error) {
	f, err := w.FS.OpenReadWrite(name, category, opts...)
	return w.file(f, name), w.failed("open", name, err)
}

func (w *watchedFS) OpenDir(name string) (vfs.File, error) {
	f, err := w.FS.OpenDir(name)
	return w.file(f, name), w.failed("open", name, err)
}

func (w *watchedFS) Remove(name string) error {
	return w.failed("remove", name, erase(w.FS, name))
}

func (w *watchedFS) RemoveAll(name string) error {
	return w.failed("remove", name, w.FS.RemoveAll(name))
}

func (w *watchedFS) Rename(from, to string) error {
	return w.failed("rename", to, w.FS.Rename(from, to))
}

func (w *watchedFS) ReuseForWrite(from, to string,
	category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := w.FS.ReuseForWrite(from, to, category)
	return w.file(f, to), w.failed("reuse", to, err)
}

func (w *watchedFS) MkdirAll(dir string, perm os.FileMode) error {
	return w.failed("make", dir, w.FS.MkdirAll(dir, perm))
}

// Lock returns its errors to the caller: a lock of another process is no failure of the disk.
func (w *watchedFS) Lock(name string) (io.Closer, error) { return w.FS.Lock(name) }

// Unwrap returns the file system below.
func (w *watchedFS) Unwrap() vfs.FS { return w.FS }

// file watches an open file; nil for none, so that a failed opening gives no file.
func (w *watchedFS) file(f vfs.File, name string) vfs.File {
	if f == nil {
		return nil
	}
	return &watchedFile{f, w, name}
}

// watchedFile is a file that may be written, or a directory that may be synced.
type watchedFile struct {
	vfs.File
	fs   *watchedFS
	name string
}

func (f *watchedFile) Write(p []byte) (int, error) {
	n, err := f.File.Write(p)
	if err == nil && n < len(p) {
		err = io.ErrShortWrite
	}
	return n, f.fs.failed("write", f.name, err)
}

func (f *watchedFile) WriteAt(p []byte, offset int64) (int, error) {
	n, err := f.File.WriteAt(p, offset)
	return n, f.fs.failed("write", f.name, err)
}

func (f *watchedFile) Sync() error { return f.fs.failed("sync", f.name, f.File.Sync()) }

func (f *watchedFile) SyncData() error { return f.fs.failed("sync", f.name, f.File.SyncData()) }

func (f *watchedFile) SyncTo(length int64) (bool, error) {
	full, err := f.File.SyncTo(length)
	return full, f.fs.failed("sync", f.name, err)
}

func (f *watchedFile) Close() error { return f.fs.failed("close", f.name, f.File.Close()) }
