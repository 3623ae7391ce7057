package journal

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"strings"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
)

const (
	// The file's name in the journal's directory. While it is being made it has the suffix ".new".
	tailName  = "tail"
	tailMagic = 0x4c494154454e4c50 // "PLNETAIL"
	// The version says how the segments are written: bare frames in mode "os", writes that hold frames
	// in mode "fsync". A build that does not know a version takes the header for unreadable, and
	// refuses.
	tailVersion = 1
	tailLogged  = 2
	// Where in a header slot the checksum of what is before it lies. The marks are behind it: they
	// change without it.
	tailCRC = 188
)

// tailShape is the size of a tail. A segment holds some ten thousand commands, and the ring some
// tens of milliseconds of a flood: much more than the store is behind.
type tailShape struct{ segments, bytes int }

// defaultTail has twice the segments for a log: a segment is free there when the store's own log
// has been synced, in "os" mode already when the store has been given its commands.
func defaultTail(logged bool) tailShape {
	if logged { // a segment is free when the store's own log has been synced
		return tailShape{segments: 8, bytes: 2 << 20}
	}
	return tailShape{segments: 4, bytes: 2 << 20}
}

// size is the size of the file.
func (s tailShape) size() int { return tailSlots*tailHeader + s.segments*s.bytes }

// tailMap is the first bytes of a file as memory, all of them in "os" mode: what is stored into
// Bytes outlives the process, and after Sync also the machine.
//
// An access to Bytes may fault: when the file is truncated below it, or a page cannot be read. The
// recorder and the log's writers turn the fault into a failure of the disk (onFault).
type tailMap interface {
	Bytes() []byte
	// WriteAt puts p, which consists of whole sectors and lies as they do, on stable storage. Two
	// goroutines may write at the same time. "fsync" mode only
	WriteAt(p []byte, at int64) (int, error)
	// Populate makes every page writable without a fault, until the system writes the page back
	Populate() error
	Sync() error
	Close() error
}

// tailHead is a header slot: it says where this run of the tail begins, and which journal and which
// run of the operating system it belongs to.
type tailHead struct {
	tailShape
	version uint32
	run     uint64
	// The store's head when the run began, on stable storage. A store without that commit is shorter
	// than the tail knows, or another.
	base point
	// The hash of the genesis: a tail of another journal is refused by it.
	seed [chainBytes]byte
	// The operating system's boot id. A mark in "os" mode is a promise only under the boot that wrote
	// it: a power cut may take what it promises, and leave the mark.
	boot string
	// The farthest mark that is readable.
	mark uint64
}

// put writes the slot into b with both its marks at the base, so that a slot is never without a
// readable mark. b has at least tailHeader bytes.
func (h *tailHead) put(b []byte) {
	clear(b[:tailHeader])
	binary.LittleEndian.PutUint64(b[0:], tailMagic)
	binary.LittleEndian.PutUint32(b[8:], h.version)
	binary.LittleEndian.PutUint32(b[12:], uint32(h.segments))
	binary.LittleEndian.PutUint64(b[16:], uint64(h.bytes))
	binary.LittleEndian.PutUint64(b[24:], h.run)
	binary.LittleEndian.PutUint64(b[32:], h.base.inputSeq)
	binary.LittleEndian.PutUint64(b[40:], h.base.tradeSeq)
	copy(b[48:80], h.base.chain[:])
	copy(b[80:112], h.seed[:])
	copy(b[112:112+bootBytes], h.boot)
	binary.LittleEndian.PutUint32(b[tailCRC:], crc32.Checksum(b[:tailCRC], castagnoli))
	for i := range tailMarks {
		m := b[tailMarksAt+i*tailMarkGap:]
		binary.LittleEndian.PutUint64(m[0:], h.base.inputSeq)
		binary.LittleEndian.PutUint64(m[8:], markCheck(h.base.inputSeq, h.run))
	}
}

// parseTailHead reads a slot; ok is false when it is not whole, when it has a version that this
// build does not know, or when neither of its marks holds. It does not check the shape against the
// file (parseTail).
func parseTailHead(b []byte) (h tailHead, ok bool) {
	if len(b) < tailHeader || binary.LittleEndian.Uint64(b[0:]) != tailMagic ||
		binary.LittleEndian.Uint32(b[tailCRC:]) != crc32.Checksum(b[:tailCRC], castagnoli) {
		return h, false
	}
	h.version = binary.LittleEndian.Uint32(b[8:])
	if h.version != tailVersion && h.version != tailLogged {
		return h, false
	}
	h.segments, h.bytes = int(binary.LittleEndian.Uint32(b[12:])),
		int(binary.LittleEndian.Uint64(b[16:]))
	h.run = binary.LittleEndian.Uint64(b[24:])
	h.base.inputSeq, h.base.tradeSeq = binary.LittleEndian.Uint64(b[32:]),
		binary.LittleEndian.Uint64(b[40:])
	copy(h.base.chain[:], b[48:80])
	copy(h.seed[:], b[80:112])
	h.boot = strings.TrimRight(string(b[112:112+bootBytes]), "\x00")
	for i := range tailMarks {
		m := b[tailMarksAt+i*tailMarkGap:]
		at := binary.LittleEndian.Uint64(m[0:])
		if binary.LittleEndian.Uint64(m[8:]) == markCheck(at, h.run) {
			h.mark, ok = max(h.mark, at), true
		}
	}
	return h, ok
}

// openTail begins a run of the tail behind base, which is on stable storage in the store. found is
// what the file held, nil when there is none; the store must already have all of it. A file of
// another shape or version is made anew: no header of an earlier run is left in it. Runs only rise,
// also where the tail is made anew: an older copy of it must not pass for the anchor's.
//
// The header is synced before openTail returns, so before the first frame: a frame of a run later
// than every readable header is therefore damage. The anchor vouches for the run after that, so a
// file that is lost later, or replaced by an older copy, is noticed. It costs a write of the whole
// file the first time, a sync each time.
func (j *Journal) openTail(found *tailImage, base point) (err error) {
	name := j.o.FS.PathJoin(j.dir, tailName)
	head := tailHead{tailShape: j.o.tailShape, version: tailVersion, run: j.anchor.last + 1,
		base: base, seed: j.seed, boot: j.o.boot}
	if j.logs() {
		head.version = tailLogged
	}
	if found != nil {
		head.run = max(head.run, found.run+1)
	}
	if found != nil && (found.tailShape != head.tailShape || found.version != head.version) {
		if err := j.forgetTail(base); err != nil {
			return err
		}
		found = nil
	}
	if found != nil {
		// The header must not be written over found's: half of it would leave none.
		if head.run%tailSlots == found.run%tailSlots {
			head.run++
		}
	} else if err := createTail(j.o.FS, j.dir, &head); err != nil {
		return err
	}
	file, err := j.o.mapTail(j.o.FS, name, head.size(), j.logs())
	if err != nil {
		return err
	}
	slot := int(head.run%tailSlots) * tailHeader
	head.put(file.Bytes()[slot:])
	if err := file.Sync(); err != nil {
		return errors.Join(fmt.Errorf("journal: sync file=%s: %w", name, err), file.Close())
	}
	// behind the header, before the first frame
	if err := j.anchor.follow(head.run, base); err != nil {
		return errors.Join(err, file.Close())
	}
	// after the sync, because a sync makes the next write to each page fault
	if err := file.Populate(); err != nil {
		return errors.Join(fmt.Errorf("journal: map file=%s: %w", name, err), file.Close())
	}
	t := &tail{
		file: file, mem: file.Bytes(), head: file.Bytes(), bytes: head.bytes, run: head.run,
		lasts: make([]uint64, head.segments),
		at:    tailSlots * tailHeader, limit: tailSlots*tailHeader + head.bytes,
	}
	t.skip(&base)
	for i := range t.marks {
		t.marks[i] = slot + tailMarksAt + i*tailMarkGap
	}
	if j.logs() {
		j.startLog(t, head.size())
	}
	j.tail = t
	return nil
}

// roomForTail is ENOSPC when this opening has to make a tail and the disk has no room for it.
func (j *Journal) roomForTail(found *tailImage) error {
	head := tailHead{tailShape: j.o.tailShape}
	size := uint64(head.size())
	if !j.o.Tail || found != nil {
		return nil
	}
	free, err := diskUsage(j.o.FS, j.dir)
	if err != nil || free >= size {
		return nil // a disk that does not say it shows it at the writing
	}
	return fmt.Errorf("journal: file=%s: it takes %d bytes, the disk has %d: %w",
		j.o.FS.PathJoin(j.dir, tailName), size, free, syscall.ENOSPC)
}

// createTail makes the file, writes every byte of it with one header, and syncs it before it gets
// its name. So no later write needs a new block of the disk, and a file with the name is never in
// part.
func createTail(fs vfs.FS, dir string, head *tailHead) error {
	name := fs.PathJoin(dir, tailName)
	if err := replace(fs, name+".new", name, head.fill); err != nil {
		return err
	}
	return syncDir(fs, dir)
}

// fill writes a whole file: this header, and zeros.
func (h *tailHead) fill(w io.Writer) error {
	first := make([]byte, tailSlots*tailHeader)
	h.put(first[int(h.run%tailSlots)*tailHeader:])
	if _, err := w.Write(first); err != nil {
		return err
	}
	_, err := io.CopyN(w, zeros{}, int64(h.size()-len(first)))
	return err
}

// removeTail removes the file, durably. What it held is in the store, or given up.
func removeTail(fs vfs.FS, dir string) error {
	name := fs.PathJoin(dir, tailName)
	if err := fs.Remove(name); err != nil {
		return fmt.Errorf("journal: remove file=%s: %w", name, err)
	}
	return syncDir(fs, dir)
}

// newestHead is the header that counts: the readable one of the latest run. A crash while a run
// begins leaves the header of the run before, whose frames are in the store by then.
func newestHead(b []byte) (tailHead, bool) {
	var heads []tailHead
	for slot := range tailSlots {
		if at := slot * tailHeader; len(b) >= at+tailHeader {
			if h, ok := parseTailHead(b[at:]); ok {
				heads = append(heads, h)
			}
		}
	}
	if len(heads) == 0 {
		return tailHead{}, false
	}
	return slices.MaxFunc(heads, func(a, b tailHead) int { return cmp.Compare(a.run, b.run) }), true
}
