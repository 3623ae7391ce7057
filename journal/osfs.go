package journal

import (
	"encoding/binary"
	"hash/crc32"
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// lazyFS is the file system of "os" mode. Log files of the store are written as always, so a commit
// that "syncs" has been handed to the operating system, but the sync itself reaches the disk only
// in Flush, which a ticker calls. All other files (tables, manifests) sync at once.
//
// The store writes into every log chunk how far the log was synced, and takes an unreadable chunk
// below such an offset for corruption. lazyFS replaces that offset with the one that was really
// synced. So after a power cut an unreadable end counts as the end of the log, and damage before it
// counts as damage.
type lazyFS struct {
	vfs.FS
	mu   sync.Mutex // guards the two below
	logs map[*lazyFile]struct{}
	// The first sync that failed, of a log that may be closed already. It is never cleared.
	failed error
	// How fast tables may be written beside the logs.
	tables tablePace
}

// newLazyFS wraps fs. Tables do not wait until the journal has begun.
func newLazyFS(fs vfs.FS) *lazyFS {
	l := &lazyFS{FS: fs, logs: map[*lazyFile]struct{}{}}
	l.tables.off.Store(true)
	return l
}

func isLog(name string) bool { return strings.HasSuffix(name, ".log") }

// Create wraps log files, whose syncs it keeps back, and tables, whose writes it paces.
func (l *lazyFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := l.FS.Create(name, category)
	switch {
	case err != nil:
	case isLog(name):
		return l.wrap(f), nil
	case isTable(name):
		return l.tables.file(f), nil
	}
	return f, err
}

// ReuseForWrite wraps log files.
func (l *lazyFS) ReuseForWrite(from, to string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := l.FS.ReuseForWrite(from, to, category)
	if err != nil || !isLog(to) {
		return f, err
	}
	return l.wrap(f), nil
}

// Unwrap returns the file system below.
func (l *lazyFS) Unwrap() vfs.FS { return l.FS }

// wrap keeps back the syncs of a log, and makes Flush do them.
func (l *lazyFS) wrap(f vfs.File) vfs.File {
	file := &lazyFile{File: f, fs: l}
	l.mu.Lock()
	l.logs[file] = struct{}{}
	l.mu.Unlock()
	return file
}

// Flush syncs every log that has unsynced bytes. After a sync of any log has failed, Flush returns
// an error for ever: the system may have dropped what it could not write. What was written before
// the call is on the disk when it returns nil. It blocks for the disk, while the store goes on
// writing.
func (l *lazyFS) Flush() error {
	l.mu.Lock()
	files := make([]*lazyFile, 0, len(l.logs))
	for f := range l.logs {
		files = append(files, f)
	}
	l.mu.Unlock()
	for _, f := range files {
		if err := f.flush(); err != nil {
			return err
		}
	}
	return l.failure(nil)
}

// failure remembers err, if it is the first one, and returns the first one.
func (l *lazyFS) failure(err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failed == nil {
		l.failed = err
	}
	return l.failed
}

// lazyFile is one log. Only the store's log writer writes it. ending is taken before mu.
type lazyFile struct {
	vfs.File
	fs *lazyFS

	ending sync.Mutex // held across a sync and across the closing, which must not overlap
	closed bool       // guarded by ending

	// Guards written and synced: bytes that the system has, and bytes of them on the disk.
	mu      sync.Mutex
	written int64
	synced  int64
	// The disk has been given what is before it: a later sync finds less to do. The log writer's own.
	begun int64
}

// Write writes p, in which it has replaced the synced offsets, and has the disk begin with what has
// come together. The store gives whole chunks.
func (f *lazyFile) Write(p []byte) (int, error) {
	f.mu.Lock()
	written, synced := f.written, f.synced
	f.mu.Unlock()
	restampChunks(p, written, synced)
	n, err := f.File.Write(p)
	f.mu.Lock()
	f.written += int64(n)
	f.mu.Unlock()
	f.fs.tables.logged.Add(int64(n))
	if unbegun := written + int64(n) - f.begun; unbegun >= beginBytes {
		beginWriting(f.File.Fd(), f.begun, unbegun)
		f.begun += unbegun
	}
	return n, err
}

// Sync, and the two below it, do nothing: Flush and Close sync.
func (f *lazyFile) Sync() error { return nil }

func (f *lazyFile) SyncData() error { return nil }

func (f *lazyFile) SyncTo(int64) (bool, error) { return false, nil }

// Fd hides the descriptor: nothing may sync or preallocate behind the wrapper.
func (f *lazyFile) Fd() uintptr { return vfs.InvalidFd }

// Close syncs the rest: the next log must never be on disk without the end of this one.
func (f *lazyFile) Close() error {
	f.ending.Lock()
	defer f.ending.Unlock()
	err := f.sync()
	f.closed = true
	f.fs.mu.Lock()
	delete(f.fs.logs, f)
	f.fs.mu.Unlock()
	if closeErr := f.File.Close(); err == nil {
		err = closeErr
	}
	return err
}

// flush syncs the file. It does nothing if the file has been closed meanwhile, because Close syncs.
func (f *lazyFile) flush() error {
	f.ending.Lock()
	defer f.ending.Unlock()
	if f.closed {
		return nil
	}
	return f.sync()
}

// sync brings what had been written at its beginning to the disk. The caller holds ending. A
// failure is remembered for every later Flush.
func (f *lazyFile) sync() error {
	f.mu.Lock()
	target, due := f.written, f.written > f.synced
	f.mu.Unlock()
	if !due {
		return nil
	}
	if err := f.File.SyncData(); err != nil {
		return f.fs.failure(err)
	}
	f.mu.Lock()
	f.synced = target
	f.mu.Unlock()
	return nil
}

// The store's log format, as far as restampChunks needs it: 32 KiB blocks of
// chunks; a chunk of the synced kinds is crc u32, length u16, kind u8, log
// number u32, synced offset u64, payload. The CRC-32C over everything behind
// the length is stored masked.
const (
	walBlock     = 32 << 10
	walHeader    = 19
	walKindFirst = 9
	walKindLast  = 12
	walMask      = 0xa282ead8
)

// restampChunks replaces the synced offsets in p, which starts at a chunk boundary at offset at of
// the log. Other bytes stay as they are. An offset is only ever lowered, and the chunk's checksum
// made anew. It stops at the first bytes that are no chunk of the synced kinds.
func restampChunks(p []byte, at, synced int64) {
	for i := 0; i+walHeader <= len(p); {
		room := walBlock - int(at+int64(i))%walBlock
		if room < walHeader {
			i += room
			continue
		}
		c := p[i:]
		n := walHeader + int(binary.LittleEndian.Uint16(c[4:]))
		if c[6] < walKindFirst || c[6] > walKindLast || n > room || n > len(c) {
			return
		}
		if claimed := int64(binary.LittleEndian.Uint64(c[11:])); claimed > synced {
			binary.LittleEndian.PutUint64(c[11:], uint64(synced))
			crc := crc32.Checksum(c[6:n], castagnoli)
			binary.LittleEndian.PutUint32(c, (crc>>15|crc<<17)+walMask)
		}
		i += n
	}
}

// zeros reads as zero bytes.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
