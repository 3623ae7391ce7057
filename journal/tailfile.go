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

	"github.com/cockroachdb/pebble/v2/vfs"
)

const (
	tailName    = "tail"
	tailMagic   = 0x4c494154454e4c50 // "PLNETAIL"
	tailVersion = 1                  // mode "os"
	tailLogged  = 2                  // mode "fsync": the segments consist of writes
	tailCRC     = 188                // in a header slot, of what is before it
)

// tailShape is the size of a tail. A segment holds some ten thousand commands, and the ring some
// tens of milliseconds of a flood: much more than the store is behind.
type tailShape struct{ segments, bytes int }

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

// tailHead is a header slot: it says where this run of the tail begins.
type tailHead struct {
	tailShape
	version uint32
	run     uint64
	base    point // the store's head when the run began, on stable storage
	seed    [chainBytes]byte
	boot    string
	mark    uint64 // the farthest mark that is readable
}

// put writes the slot with both its marks at the base.
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

// parseTailHead reads a slot; ok is false when it or its marks are not whole.
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
// another shape or version is made anew: no header of an earlier run is left in it.
func (j *Journal) openTail(found *tailImage, base point) (err error) {
	name := j.o.FS.PathJoin(j.dir, tailName)
	head := tailHead{tailShape: j.o.tailShape, version: tailVersion, run: 1, base: base, seed: j.seed,
		boot: j.o.boot}
	if j.logs() {
		head.version = tailLogged
	}
	if found != nil && (found.tailShape != head.tailShape || found.version != head.version) {
		if err := removeTail(j.o.FS, j.dir); err != nil {
			return err
		}
		found = nil
	}
	if found != nil {
		head.run = found.run + 1
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

// createTail makes the file, writes every byte of it with one header, and syncs it before it gets
// its name.
func createTail(fs vfs.FS, dir string, head *tailHead) error {
	name := fs.PathJoin(dir, tailName)
	temp := name + ".new"
	f, err := fs.Create(temp, writeCategory)
	if err != nil {
		return fmt.Errorf("journal: create file=%s: %w", temp, err)
	}
	if err := head.fill(f); err != nil {
		return errors.Join(fmt.Errorf("journal: write file=%s: %w", temp, err), f.Close())
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("journal: sync file=%s: %w", temp, err)
	}
	if err := fs.Rename(temp, name); err != nil {
		return fmt.Errorf("journal: rename file=%s: %w", temp, err)
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

// newestHead is the header that counts: the readable one of the latest run.
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
