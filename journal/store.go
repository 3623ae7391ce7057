package journal

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"
)

const (
	storeName = "store" // in the journal's directory

	// memTableBytes bounds a memtable; the store starts at 256 KiB and doubles as it fills.
	memTableBytes = 32 << 20
	// How many memtables may wait for the disk before the store stops taking writes.
	memTables = 4
	// The store's cache of table blocks.
	cacheBytes = 8 << 20
	tableBytes = 64 << 20 // a memtable gives one table for each prefix, and stays that
	// A compaction takes the tables beside the one it was picked for when all of them together have
	// less than 25 times this, the size of a table that it writes. Tables of a few full memtables
	// have more, so each is moved to its level alone, as it is; small ones of many starts are merged.
	mergedBytes = 1 << 20
)

// ErrPoisoned reports that an earlier error ended the journal: nothing is
// acknowledged any more. The error that carries it also carries the cause.
var ErrPoisoned = errors.New("journal poisoned")

// errStore replaces a fatal message of the store.
var errStore = errors.New("store failed")

// latch keeps the first failure for ever, and runs its consequences once. Any goroutine may poison
// and read it.
type latch struct {
	// Set once, before dead is closed.
	cause  atomic.Pointer[error]
	dead   chan struct{}               // closed with the first failure
	onFail atomic.Pointer[func(error)] // answers waiting callers, before fatal
	fatal  func(error)                 // ends the process in production
}

func newLatch(fatal func(error)) *latch {
	return &latch{dead: make(chan struct{}), fatal: fatal}
}

// Err is nil until the first failure.
func (l *latch) Err() error {
	if p := l.cause.Load(); p != nil {
		return *p
	}
	return nil
}

// Poison latches cause and returns the latched error, which may be an earlier one. The first call
// closes dead, answers the waiting callers and runs fatal, all on the caller's goroutine; later
// calls only return the error. In production fatal ends the process.
func (l *latch) Poison(cause error) error {
	err := fmt.Errorf("%w: %w", ErrPoisoned, cause)
	if errors.Is(cause, ErrPoisoned) {
		err = cause // met again on its way up
	}
	if l.cause.CompareAndSwap(nil, &err) {
		close(l.dead)
		if f := l.onFail.Load(); f != nil {
			(*f)(err)
		}
		l.fatal(err)
	}
	return l.Err()
}

// Logger receives one line per notable event. *slog.Logger fits through a method value; the journal
// never logs a command.
type Logger interface {
	Infof(format string, args ...any)
	Errorf(format string, args ...any)
}

// discardLogger drops everything.
type discardLogger struct{}

func (discardLogger) Infof(string, ...any)  {}
func (discardLogger) Errorf(string, ...any) {}

// exit is the Fatal hook of a process that has not set one.
func exit(err error) {
	_, _ = fmt.Fprintln(os.Stderr, "posttrade: "+err.Error())
	os.Exit(1)
}

// storeLog is the store's logger. Its Fatalf never reports success to the
// store: it poisons, which ends the process; where the hook returns (tests) it
// unwinds to guard, or stops the store's own goroutine for good.
type storeLog struct {
	Logger
	latch *latch
}

// Infof drops the store's informational messages.
func (s storeLog) Infof(string, ...any) {}

func (s storeLog) Fatalf(format string, args ...any) {
	err := s.latch.Poison(fmt.Errorf("journal: %w: %s", errStore, fmt.Sprintf(format, args...)))
	if guarded() {
		panic(unwinding{err})
	}
	select {}
}

// unwinding carries a latched error through the store's frames to guard. It is panicked only where
// guard is on the stack.
type unwinding struct{ err error }

// guard runs a call into the store and turns a fatal message on this goroutine into an error. Calls
// that make the store write, or read its files, go through it. Any other panic goes on.
func guard(call func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			u, ours := r.(unwinding)
			if !ours {
				panic(r)
			}
			err = u.err
		}
	}()
	return plain(call())
}

// guarded reports whether guard is on this goroutine's stack. Cold: only after a fatal error.
func guarded() bool {
	pcs := make([]uintptr, 128)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	for {
		f, more := frames.Next()
		if strings.HasSuffix(f.Function, "/journal.guard") {
			return true
		}
		if !more {
			return false
		}
	}
}

// spans keeps each prefix in tables of its own, so that tables of successive flushes never overlap
// and a compaction of one of them alone need not rewrite it (mergedBytes). The store asks for the
// policy of the span that begins at start; a span here is a first byte.
func spans(start []byte) (pebble.SpanPolicy, []byte, error) {
	if len(start) == 0 {
		return pebble.SpanPolicy{}, nil, nil
	}
	return pebble.SpanPolicy{ValueStoragePolicy: pebble.ValueStorageLowReadLatency},
		[]byte{start[0] + 1}, nil
}

// storeOptions are the settings of every opening of the store. Blocks come packed, so the store
// compresses nothing. Every failure to change the disk, also in its own background work, poisons l.
func storeOptions(fs vfs.FS, l *latch, log Logger) *pebble.Options {
	o := &pebble.Options{
		FS:                          watch(fs, l),
		FormatMajorVersion:          pebble.FormatNewest,
		Logger:                      storeLog{log, l},
		MemTableSize:                memTableBytes,
		MemTableStopWritesThreshold: memTables,
		BytesPerSync:                256 << 10,
		L0CompactionFileThreshold:   64,
		L0StopWritesThreshold:       1000,
		WALMinSyncInterval:          nil,
		DisableWAL:                  false,
	}
	o.TargetFileSizes[0] = tableBytes
	for i := range o.TargetFileSizes[1:] {
		o.TargetFileSizes[1+i] = mergedBytes
	}
	o.Experimental.SpanPolicyFunc = spans
	o.Experimental.ReadSamplingMultiplier = -1
	o.Experimental.FileCacheShards = 1
	for i := range o.Levels {
		o.Levels[i].BlockSize = 32 << 10
		o.Levels[i].Compression = func() *sstable.CompressionProfile { return sstable.NoCompression }
	}
	o.EventListener = &pebble.EventListener{
		BackgroundError: func(err error) {
			if errors.Is(err, pebble.ErrCancelledCompaction) {
				return
			}
			_ = l.Poison(fmt.Errorf("journal: store background: %w", plain(err)))
			if !guarded() {
				select {} // the hook has returned: no retry all the same
			}
		},
		DataCorruption: func(info pebble.DataCorruptionInfo) {
			log.Errorf("journal: store corruption file=%s: %v", info.Path, info.Details)
		},
	}
	return o
}

// openStore opens the store in dir and reads which archives belong to it. Its errors name files in
// full.
func openStore(dir string, o *pebble.Options, l *latch) (*blockStore, error) {
	opened := make(chan *pebble.DB, 1)
	o.Cache = pebble.NewCache(cacheBytes)
	err := l.orPoison(func() error {
		db, err := pebble.Open(dir, o)
		opened <- db
		return err
	})
	if err != nil {
		if l.Err() == nil { // else the opening may still be under way
			o.Cache.Unref()
		}
		return nil, fmt.Errorf("journal: open store=%s: %w", dir, inFull(err, o.FS, dir))
	}
	v := &blockStore{DB: <-opened, cache: o.Cache}
	if v.archives, err = readArchives(v); err != nil {
		return nil, errors.Join(err, closeStore(v, l))
	}
	return v, nil
}

// closeStore closes it, and the archives that were opened. After a failure it does not wait.
func closeStore(db *blockStore, l *latch) error {
	db.archives.close()
	if err := l.orPoison(db.Close); err != nil {
		return fmt.Errorf("journal: close store: %w", err)
	}
	db.cache.Unref()
	return nil
}

// orPoison runs a call that may wait for the store's own goroutines, and stops waiting when one of
// them has met the failure that ended the journal. The call runs at the usual priority, also for a
// polite caller: every commit behind a write under way waits for it.
func (l *latch) orPoison(call func() error) error {
	return l.await(func() error { return guard(call) })
}

// await is orPoison for a call that is not to be ended by a fatal message.
//
// A call that is no longer waited for may find the store closed, at which the store panics. After a
// failure that ends the call, not the process, which has a line to write and an exit code to give.
func (l *latch) await(call func() error) error {
	done := make(chan error, 1)
	go func() {
		defer func() {
			r := recover()
			err, _ := r.(error)
			if late := l.Err() != nil && errors.Is(err, pebble.ErrClosed); r != nil && !late {
				panic(r)
			}
		}()
		done <- call()
	}()
	select {
	case err := <-done:
		return err
	case <-l.dead:
		return l.Err()
	}
}

// write is orPoison for a call that changes the disk: its failure poisons the journal. After a
// failure nothing is tried. A call that reports success beside a failure counts as failed.
func (l *latch) write(f func() error) error {
	err := l.Err()
	if err == nil {
		err = l.orPoison(f)
	}
	if err == nil {
		err = l.Err()
	}
	if err != nil {
		return l.Poison(err)
	}
	return nil
}

// diskUsage is what a file system says about its space: the bytes that this process may still
// write.
func diskUsage(fs vfs.FS, dir string) (avail uint64, err error) {
	u, err := fs.GetDiskUsage(dir)
	if err != nil {
		return 0, fmt.Errorf("journal: disk usage dir=%s: %w", dir, err)
	}
	return u.AvailBytes, nil
}
