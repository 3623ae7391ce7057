package stats

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"posttrade/ring"
)

// The file data.dir/stats holds the counters of the serving process, for programs
// beside it that want to look without asking: `posttrade top`.
//
// It is a mapped file of statsBytes. Everything is a 64-bit word in the machine's
// byte order. The header comes first and never changes in a file's life:
//
//	word 0  statsMagic
//	word 1  statsVersion: what the blocks are; another one is refused
//	word 2  generation: when the process began to serve, Unix time in ns
//	word 3  process id
//
// Then the blocks of statsImage, in the order of statsImage.blocks, each from the
// next multiple of statsAlign on: one word that is the block's ring.SeqLock, then
// the words of the struct. A reader copies a block and looks at the lock again; a
// copy that was changed meanwhile is thrown away, so no reader ever holds up the
// writer and no torn block is shown.
//
// The writer holds a lock on the whole file as long as it lives. The kernel drops
// it with the process, however that ends: who finds the file unlocked looks at the
// last figures of a process that is gone. A start makes a new file beside it and
// renames it over the old one, so a name always leads to a whole header.
//
// It is a view and not a record: it is not synced, and nobody reads it back.
const (
	Magic   = 0x3153544154535450 // "PTSTATS1"
	Version = 2
	bytes   = 16 << 10
	align   = 128
	mode    = 0o600
)

// What is wrong with a stats file; test by errors.Is.
var (
	errStatsAbsent  = errors.New("no server has written its figures there")
	errStatsForeign = errors.New("not a stats file")
	errStatsVersion = errors.New("stats file of another version")
	errStatsTorn    = errors.New("stats file is being rewritten all the time, or was left half written")
	ErrStatsFault   = errors.New("stats file was cut short")
)

// Header is what identifies a file.
type Header struct {
	Magic, Version uint64
	Generation     uint64
	PID            uint64
}

// Image is one reading of everything. Every field of a block is a uint64, so
// that a block is a row of words.
type Image struct {
	Header  Header
	Clock   Clock
	Path    Path
	Commits Commits
	Answers Answers
	Runtime Runtime
	Feeds   Feeds
	Lags    Lags
	Cluster Cluster

	Sessions Sessions
}

// blocks are the image's blocks in the file's order.
func (s *Image) blocks() [9][]uint64 {
	return [...][]uint64{
		wordsOf(&s.Clock), wordsOf(&s.Path), wordsOf(&s.Commits), wordsOf(&s.Answers),
		wordsOf(&s.Runtime), wordsOf(&s.Feeds), wordsOf(&s.Lags), wordsOf(&s.Cluster), wordsOf(&s.Sessions),
	}
}

// wordsOf is a struct of words as a slice over the same memory.
func wordsOf[T any](block *T) []uint64 {
	return unsafe.Slice((*uint64)(unsafe.Pointer(block)), unsafe.Sizeof(*block)/8)
}

// file is a stats file that is mapped, to be written or to be read.
type file struct {
	region *ring.Region
	words  []uint64
}

// createStats makes the file at path for a process that begins to serve now.
// Nothing is at path, or what was there before, until the file is complete.
func createStats(path string, begun time.Time) (*file, error) {
	f, err := prepareStats(path+".new", begun)
	if err != nil {
		return nil, fmt.Errorf("stats: create file=%s: %w", path, err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return nil, errors.Join(fmt.Errorf("stats: create file=%s: %w", path, err), f.Close(), os.Remove(path+".new"))
	}
	return f, nil
}

// prepareStats writes zeros before it maps, so that the blocks of the disk are
// there: a store into a hole of a full disk would be a fault.
func prepareStats(path string, begun time.Time) (*file, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	if err := os.WriteFile(path, make([]byte, bytes), mode); err != nil {
		return nil, err
	}
	region, err := ring.File(path, bytes)
	if err != nil {
		return nil, err
	}
	f := over(region)
	lock := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart}
	if err := unix.FcntlFlock(uintptr(region.Fd()), unix.F_OFD_SETLK, &lock); err != nil {
		return nil, errors.Join(fmt.Errorf("lock: %w", err), f.Close())
	}
	header := Header{
		Magic: Magic, Version: Version, Generation: uint64(begun.UnixNano()), PID: uint64(os.Getpid()),
	}
	ring.CopyIn(f.words, wordsOf(&header)) // nobody else knows the file yet
	return f, nil
}

func over(region *ring.Region) *file {
	return &file{region, unsafe.Slice((*uint64)(unsafe.Pointer(&region.Bytes()[0])), bytes/8)}
}

// store makes the image's blocks the file's. One goroutine only.
func (f *file) store(image *Image) error {
	return withoutFaults(func() {
		at := first
		for _, block := range image.blocks() {
			lock := f.lockAt(at)
			lock.Begin()
			ring.CopyIn(f.words[at+1:], block)
			lock.End()
			at = nextBlock(at, block)
		}
	})
}

// The first block's lock, in words, and where the one after a block is.
const first = align / 8

func nextBlock(at int, block []uint64) int {
	end := at + 1 + len(block)
	return (end + first - 1) / first * first
}

func (f *file) lockAt(at int) *ring.SeqLock {
	return (*ring.SeqLock)(unsafe.Pointer(&f.words[at]))
}

func (f *file) Close() error { return f.region.Close() }

// OpenStats maps the file at path to be read, after a look at its header.
func OpenStats(path string) (*file, error) {
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return nil, errStatsAbsent
	}
	region, err := ring.FileReadOnly(path, bytes)
	if errors.Is(err, ring.ErrSize) {
		return nil, fmt.Errorf("%w: %w", errStatsForeign, err)
	} else if err != nil {
		return nil, err
	}
	f := over(region)
	var header Header
	err = withoutFaults(func() { ring.CopyOut(wordsOf(&header), f.words) })
	switch {
	case err != nil:
	case header.Magic != Magic:
		err = fmt.Errorf("%w: magic %016x, want %016x", errStatsForeign, header.Magic, uint64(Magic))
	case header.Version != Version:
		err = fmt.Errorf("%w: %d, this program reads %d", errStatsVersion, header.Version, Version)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// How a reader waits for a block that changes: a writer needs some hundred
// nanoseconds every 100 ms, unless the machine takes the processor from it just then.
const (
	spins = 100
	tries = spins + 1000
	pause = time.Millisecond
)

// Load copies every block, each whole.
func (f *file) Load(image *Image) error {
	torn := false
	err := withoutFaults(func() {
		ring.CopyOut(wordsOf(&image.Header), f.words)
		at := first
		for _, block := range image.blocks() {
			if !f.loadBlock(at, block) {
				torn = true
				return
			}
			at = nextBlock(at, block)
		}
	})
	if err == nil && torn {
		err = errStatsTorn
	}
	return err
}

func (f *file) loadBlock(at int, block []uint64) bool {
	lock := f.lockAt(at)
	for try := range tries {
		if stamp, ok := lock.Read(); ok {
			ring.CopyOut(block, f.words[at+1:])
			if !lock.Retry(stamp) {
				return true
			}
		}
		if try < spins {
			runtime.Gosched()
		} else {
			time.Sleep(pause)
		}
	}
	return false
}

// Alive reports whether the process that writes the file is still there.
func (f *file) Alive() (bool, error) {
	lock := unix.Flock_t{Type: unix.F_RDLCK, Whence: io.SeekStart}
	if err := unix.FcntlFlock(uintptr(f.region.Fd()), unix.F_OFD_GETLK, &lock); err != nil {
		return false, fmt.Errorf("stats: ask for the lock: %w", err)
	}
	return lock.Type != unix.F_UNLCK, nil
}

// withoutFaults runs access, which touches mapped memory. The file may be cut
// short by somebody, or its disk may fail: that must cost the figures and not the
// process that matches orders, so the fault becomes an error.
func withoutFaults(access func()) (err error) {
	old := debug.SetPanicOnFault(true)
	defer debug.SetPanicOnFault(old)
	defer func() {
		if r := recover(); r != nil {
			if _, fault := r.(interface{ Addr() uintptr }); !fault {
				panic(r)
			}
			err = ErrStatsFault
		}
	}()
	access()
	return nil
}

// Every is how often the serving process writes its figures.
const Every = 100 * time.Millisecond
