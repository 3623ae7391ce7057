package stats

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"time"
	"unsafe"

	"posttrade/ring"
)

// The file data.dir/stats holds the counters of the serving process. Programs on the same machine,
// such as `posttrade top`, read it without a request to the server.
//
// It is a mapped file of a fixed size (bytes). Everything is a 64-bit word in the machine's byte
// order. The header comes first and never changes in a file's life:
//
//	word 0  Magic
//	word 1  Version: what the blocks are; another one is refused
//
//	word 2  generation: when the process began to serve, Unix time in ns
//	word 3  process id
//
// Then come the blocks of Image, in the order of Image.blocks. Each starts at the next multiple of
// align: one word that is the block's ring.SeqLock, then the words of the struct. A reader copies a
// block and then looks at the lock again. It discards a copy if the block changed meanwhile. So no
// reader ever holds up the writer, and no torn block is shown.
//
// The writer holds a lock on the whole file as long as it lives. The kernel drops the lock when the
// process ends, in whatever way it ends. A reader that finds the file unlocked sees the last
// figures of a process that is gone. A start makes a new file beside the old one and renames it
// over it, so the name always leads to a complete header.
//
// The file is a view and not a record: it is not synced, and no start reads it.
const (
	Magic   = 0x3153544154535450 // "PTSTATS1"
	Version = 3
	// The size of the file, more than the blocks need; another size is refused.
	bytes = 16 << 10
	// The distance that blocks keep, so that two blocks share no cache line.
	align = 128
	// Only the user that the server runs as may read the figures.
	mode = 0o600
)

// The errors of a stats file; test them with errors.Is.
var (
	errStatsAbsent  = errors.New("no server has written its figures there")
	errStatsForeign = errors.New("not a stats file")
	errStatsVersion = errors.New("stats file of another version")
	errStatsTorn    = errors.New(
		"stats file is being rewritten all the time, or was left half written")
	ErrStatsFault = errors.New("stats file was cut short")
)

// Header is what identifies a file.
//
// Two readings with equal Headers are of one life of one process.
type Header struct {
	Magic, Version uint64
	Generation     uint64
	PID            uint64
}

// Image is one reading of all figures. Every field of a block is a uint64, so that a block is a
// sequence of words.
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

// blocks are the image's blocks in the order of the file.
//
// Writer and reader both go through it, so they cannot disagree on places. A change of the order
// or of a block needs another Version.
func (s *Image) blocks() [9][]uint64 {
	return [...][]uint64{
		wordsOf(&s.Clock), wordsOf(&s.Path), wordsOf(&s.Commits), wordsOf(&s.Answers),
		wordsOf(&s.Runtime), wordsOf(&s.Feeds), wordsOf(&s.Lags), wordsOf(&s.Cluster),
		wordsOf(&s.Sessions),
	}
}

// wordsOf returns a struct of words as a slice over the same memory.
//
// T must have fields of uint64 alone. The slice is valid as long as block is.
func wordsOf[T any](block *T) []uint64 {
	return unsafe.Slice((*uint64)(unsafe.Pointer(block)), unsafe.Sizeof(*block)/8)
}

// file is a mapped stats file, for writing or for reading. One goroutine uses it. Close ends the
// mapping: no word may be touched afterwards.
type file struct {
	region *ring.Region
	// The same memory as words, from the header on.
	words []uint64
}

// createStats makes the file at path for a process that begins to serve now. Until the new file is
// complete, path has no file or the former one.
//
// path is replaced by a rename, so a reader that has the former file open keeps it, and finds it
// without a lock. Errors name the path.
func createStats(path string, begun time.Time) (*file, error) {
	f, err := prepareStats(path+".new", begun)
	if err != nil {
		return nil, fmt.Errorf("stats: create file=%s: %w", path, err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return nil, errors.Join(fmt.Errorf("stats: create file=%s: %w", path, err), f.Close(),
			os.Remove(path+".new"))
	}
	return f, nil
}

// prepareStats writes zeros before it maps the file, so that the disk has allocated its blocks: a
// store into a hole of a full disk would be a fault.
//
// It takes the lock before it writes the header: a file with a header and without a lock is that
// of a process that is gone.
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
	if err := lock(region); err != nil {
		return nil, errors.Join(fmt.Errorf("lock: %w", err), f.Close())
	}
	header := Header{
		Magic: Magic, Version: Version, Generation: uint64(begun.UnixNano()), PID: uint64(os.Getpid()),
	}
	ring.CopyIn(f.words, wordsOf(&header)) // no other goroutine or process has the file yet
	return f, nil
}

// over is a file on a region of at least bytes bytes.
func over(region *ring.Region) *file {
	return &file{region, unsafe.Slice((*uint64)(unsafe.Pointer(&region.Bytes()[0])), bytes/8)}
}

// store writes the image's blocks to the file. Only one goroutine may call it.
//
// A reader never blocks it. It copies some kilobytes and makes no system call. ErrStatsFault says
// that the file was cut short or its disk has failed.
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

// first is the position of the first block's lock, in words.
const first = align / 8

// nextBlock is the position of the lock behind a block that begins at at.
//
// It is a multiple of align.
func nextBlock(at int, block []uint64) int {
	end := at + 1 + len(block)
	return (end + first - 1) / first * first
}

// lockAt is the sequence lock in the word at a position.
func (f *file) lockAt(at int) *ring.SeqLock {
	return (*ring.SeqLock)(unsafe.Pointer(&f.words[at]))
}

// Close ends the mapping and, for the writer, the lock.
func (f *file) Close() error { return f.region.Close() }

// withoutFaults runs access, which touches mapped memory. Another process may cut the file short,
// or its disk may fail. That must cost the figures and not the process that matches orders, so the
// fault becomes an error.
//
// A panic of another kind goes on. The setting counts for this goroutine only.
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
//
// A reader that shows figures once a second always gets new ones.
const Every = 100 * time.Millisecond
