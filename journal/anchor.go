package journal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// The anchor is a file of four checksummed slots, each on a page of its own:
// two cold ones that alternate and are synced, two hot ones that alternate and
// are only written (they live in the operating system's memory and so survive
// the process). FORMAT.md has the bytes.
//
// The slots, each at the beginning of its page:
//
//	page 0, 1   cold   Sync, in turn: written, then the file is synced
//	page 2, 3   hot    Hot, in turn: written only
const (
	anchorName    = "anchor"
	anchorMagic   = 0x524f48434e415450 // "PTANCHOR"
	anchorVersion = 2
	// Where slots lie: a torn write of one leaves the others whole.
	anchorPage  = 4096
	anchorSlots = 4
	slotBytes   = 152
	slotRun     = 140
	slotCRC     = 148
	bootBytes   = 36

	// Version 1, of builds whose anchor does not know of a tail, ends before the run.
	anchorBare  = 1
	slotBareCRC = 140
)

// What a slot promises.
const (
	slotSynced uint32 = 0 // written after the history up to it was on disk
	slotCalled uint32 = 1 // the history up to it had been handed to the operating system
)

// writeCategory labels our own files in the file system's statistics.
const writeCategory vfs.DiskWriteCategory = "posttrade-journal"

// Errors of the anchor.
var (
	// ErrAnchorMissing: the store holds history, but nothing says how far it reached.
	ErrAnchorMissing = errors.New("anchor missing")
	// ErrAnchorDamaged: no slot of the anchor can be read.
	ErrAnchorDamaged = errors.New("anchor damaged")
	// ErrShortened: the history ends before the point that the anchor has seen.
	ErrShortened = errors.New("history is shorter than the anchor")
	// ErrDiverged: the history at the anchor's sequence is not the one it has seen.
	ErrDiverged = errors.New("history is not the anchor's")
)

// point is a place in the history, at the end of a commit. The place before the first commit has
// zero sequences and the genesis hash as its chain.
type point struct {
	inputSeq uint64
	tradeSeq uint64
	chain    [chainBytes]byte
}

// anchor writes points. Hot is called by the committer, Sync by the ticker, at
// opening and at closing; they use different slots and a mutex each.
type anchor struct {
	// Constant after opening, down to mode.
	file vfs.File
	name string
	seed [chainBytes]byte
	boot string
	mode uint32 // of hot slots
	last uint64 // in hot slots: the latest run of the tail that was known at opening; 0: none

	// hotMu guards the generation and the buffer of the hot slots, coldMu those of the cold ones. A
	// generation counts the writes since opening; its lowest bit says which slot of the two is next.
	hotMu   sync.Mutex
	hotGen  uint64
	hotBuf  [slotBytes]byte
	coldMu  sync.Mutex
	coldGen uint64
	coldBuf [slotBytes]byte
	run     uint64        // of the tail that must be beside the journal, in cold slots; 0: none must
	synced  atomic.Uint64 // writer: Sync. The input sequence that the last Sync made durable
}

// BootID names this run of the operating system; empty when it has no name, or hides it. In mode
// "os" a start without it cannot tell what the last process had acknowledged.
func BootID() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// createAnchor makes the file with four slots at p, synced, and its directory synced. An anchor of
// that name is replaced, in one rename: at every moment there is a whole one. last is the latest
// run of the tail that is known, 0 for none.
func createAnchor(fs vfs.FS, dir string, seed [chainBytes]byte, boot string, mode uint32,
	p point, last uint64) (*anchor, error) {
	name := fs.PathJoin(dir, anchorName)
	temp := name + ".new"
	f, err := fs.Create(temp, writeCategory)
	if err != nil {
		return nil, fmt.Errorf("journal: create file=%s: %w", temp, err)
	}
	if _, err := f.Write(make([]byte, anchorPage*anchorSlots)); err != nil {
		return nil, errors.Join(fmt.Errorf("journal: write file=%s: %w", temp, err), f.Close())
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return nil, fmt.Errorf("journal: sync file=%s: %w", temp, err)
	}
	if f, err = fs.OpenReadWrite(temp, writeCategory); err != nil {
		return nil, fmt.Errorf("journal: open file=%s: %w", temp, err)
	}
	a := &anchor{file: f, name: name, seed: seed, boot: boot, mode: mode, last: last}
	if err := a.reset(p); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if err := f.Close(); err != nil {
		return nil, fmt.Errorf("journal: close file=%s: %w", temp, err)
	}
	if err := fs.Rename(temp, name); err != nil {
		return nil, fmt.Errorf("journal: rename file=%s: %w", temp, err)
	}
	if err := syncDir(fs, dir); err != nil {
		return nil, err
	}
	if a.file, err = fs.OpenReadWrite(name, writeCategory); err != nil {
		return nil, fmt.Errorf("journal: open file=%s: %w", name, err)
	}
	return a, nil
}

// openAnchor opens the existing file for writing and sets all slots to p, where the history ends,
// as the caller has verified. It goes on to vouch for a run of the tail, and keeps the last one.
func openAnchor(fs vfs.FS, dir string, seed [chainBytes]byte, boot string, mode uint32,
	p point, run, last uint64) (*anchor, error) {
	name := fs.PathJoin(dir, anchorName)
	f, err := fs.OpenReadWrite(name, writeCategory)
	if err != nil {
		return nil, fmt.Errorf("journal: open file=%s: %w", name, err)
	}
	a := &anchor{file: f, name: name, seed: seed, boot: boot, mode: mode, run: run, last: last}
	if err := a.reset(p); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return a, nil
}

// reset puts p into every slot, one cold slot at a time so that a torn write leaves the other one.
// The second Sync also brings the hot slots to the disk. No Hot or Sync may be under way.
func (a *anchor) reset(p point) error {
	if err := a.Sync(p); err != nil {
		return err
	}
	for range 2 {
		if err := a.Hot(p); err != nil {
			return err
		}
	}
	return a.Sync(p)
}

// fill writes a slot's bytes into b (FORMAT.md, section 4).
func (a *anchor) fill(b *[slotBytes]byte, promise uint32, gen uint64, p *point, run uint64) {
	binary.LittleEndian.PutUint64(b[0:], anchorMagic)
	binary.LittleEndian.PutUint32(b[8:], anchorVersion)
	binary.LittleEndian.PutUint32(b[12:], promise)
	binary.LittleEndian.PutUint64(b[16:], gen)
	binary.LittleEndian.PutUint64(b[24:], p.inputSeq)
	binary.LittleEndian.PutUint64(b[32:], p.tradeSeq)
	copy(b[40:72], p.chain[:])
	copy(b[72:104], a.seed[:])
	clear(b[104:slotRun])
	copy(b[104:slotRun], a.boot)
	binary.LittleEndian.PutUint64(b[slotRun:], run)
	binary.LittleEndian.PutUint32(b[slotCRC:], crc32.Checksum(b[:slotCRC], castagnoli))
}

// Hot writes p without syncing: it survives the process, and the machine only when the system has
// written it back. Costs one pwrite. The order of calls is the order of the points, which only
// rise.
func (a *anchor) Hot(p point) error {
	a.hotMu.Lock()
	defer a.hotMu.Unlock()
	a.hotGen++
	a.fill(&a.hotBuf, a.mode, a.hotGen, &p, a.last)
	return a.write(&a.hotBuf, int64(2+a.hotGen&1)*anchorPage)
}

// Sync writes p, which must be on disk in the store, and syncs the file.
func (a *anchor) Sync(p point) error {
	a.coldMu.Lock()
	defer a.coldMu.Unlock()
	a.coldGen++
	a.fill(&a.coldBuf, slotSynced, a.coldGen, &p, a.run)
	if err := a.write(&a.coldBuf, int64(a.coldGen&1)*anchorPage); err != nil {
		return err
	}
	if err := a.file.SyncData(); err != nil {
		return fmt.Errorf("journal: sync file=%s inputSeq=%d: %w", a.name, p.inputSeq, err)
	}
	a.synced.Store(p.inputSeq)
	return nil
}

// follow is Sync, and from now on the anchor vouches for a run of the tail, 0 for none. Without
// that a tail that is lost would be taken for one that never was.
func (a *anchor) follow(run uint64, p point) error {
	a.coldMu.Lock()
	a.run = run
	a.coldMu.Unlock()
	return a.Sync(p)
}

// syncedSeq is the input sequence of the last Sync.
func (a *anchor) syncedSeq() uint64 { return a.synced.Load() }

// write writes a slot; the caller holds the mutex of its buffer.
func (a *anchor) write(b *[slotBytes]byte, offset int64) error {
	if n, err := a.file.WriteAt(b[:], offset); err != nil || n != slotBytes {
		if err == nil {
			err = io.ErrShortWrite
		}
		return fmt.Errorf("journal: write file=%s offset=%d: %w", a.name, offset, err)
	}
	return nil
}

// Close closes the file and leaves its slots as they are.
func (a *anchor) Close() error {
	if err := a.file.Close(); err != nil {
		return fmt.Errorf("journal: close file=%s: %w", a.name, err)
	}
	return nil
}

// reading is what an anchor file says.
type reading struct {
	slotPoint
	// The farthest point that was on disk when it was written: the same, or one before it.
	synced slotPoint
	seed   [chainBytes]byte
	slots  int // readable ones
	// The run of the tail that the newest cold slot vouches for; 0: no tail need be there.
	run uint64
	// The latest run of the tail that any slot knows; 0: none, or an older build has written them all.
	last uint64
}

// slotPoint is the point of a slot.
type slotPoint struct {
	point
	offset int64 // of the slot, for messages
}

// readAnchor returns the farthest point that the file vouches for. A slot that was only handed to
// the operating system counts only if this is the same run of that system; boot is its name, "" for
// a run that is not known, under which no such slot counts.
//
// ErrAnchorDamaged when no cold slot can be read. A missing file is an error for which notExist is
// true.
func readAnchor(fs vfs.FS, dir, boot string) (reading, error) {
	name := fs.PathJoin(dir, anchorName)
	f, err := fs.Open(name)
	if err != nil {
		return reading{}, fmt.Errorf("journal: open file=%s: %w", name, err)
	}
	defer func() { _ = f.Close() }() // read only: nothing to lose
	var best reading
	cold, newest := 0, uint64(0)
	for slot := range int64(anchorSlots) {
		var b [slotBytes]byte
		n, err := f.ReadAt(b[:], slot*anchorPage)
		if err != nil && !errors.Is(err, io.EOF) {
			return reading{}, fmt.Errorf("journal: read file=%s offset=%d: %w", name, slot*anchorPage, err)
		}
		run, ok := slotHolds(&b, n)
		if !ok {
			continue
		}
		best.last = max(best.last, run)
		if slot < 2 {
			cold++
			if gen := binary.LittleEndian.Uint64(b[16:]); gen > newest {
				newest, best.run = gen, run
			}
		}
		promise := binary.LittleEndian.Uint32(b[12:])
		if promise == slotCalled {
			if boot == "" || strings.TrimRight(string(b[104:104+bootBytes]), "\x00") != boot {
				continue
			}
		}
		at := slotPoint{offset: slot * anchorPage}
		at.inputSeq = binary.LittleEndian.Uint64(b[24:])
		at.tradeSeq = binary.LittleEndian.Uint64(b[32:])
		copy(at.chain[:], b[40:72])
		if best.slots++; best.slots == 1 || at.inputSeq > best.inputSeq {
			best.slotPoint = at
			copy(best.seed[:], b[72:104])
		}
		if promise == slotSynced && at.inputSeq >= best.synced.inputSeq {
			best.synced = at
		}
	}
	if cold == 0 {
		// One cold slot is always whole, whatever moment the power went.
		return reading{}, fmt.Errorf("journal: read file=%s: no readable slot: %w", name,
			ErrAnchorDamaged)
	}
	return best, nil
}

// settled is what the store must hold: the reading, or the point that was synced, when the store
// ends before the farthest one and the tail has everything in between. A disk that could not write
// takes with it what the store had handed to the system, while the tail's own writes were answered.
//
// tail is asked for only then; nil is none. compare holds it against the store afterwards. A store
// of which the last block cannot be read counts as empty; the checks that follow find out more.
func (r reading) settled(db *blockStore, tail func() *tailImage) reading {
	end := uint64(0)
	if last, err := commandsAt(db, r.inputSeq); err == nil {
		end = last.last()
	}
	if end >= r.inputSeq {
		return r
	}
	if t := tail(); t != nil && t.continues(end, &r.point) {
		r.slotPoint = r.synced
	}
	return r
}

// slotHolds reports whether the first n bytes of b are a slot that was written whole, of either
// version, and returns its run.
func slotHolds(b *[slotBytes]byte, n int) (run uint64, ok bool) {
	at := slotCRC
	switch binary.LittleEndian.Uint32(b[8:]) {
	case anchorVersion:
		run = binary.LittleEndian.Uint64(b[slotRun:])
	case anchorBare:
		at = slotBareCRC
	default:
		return 0, false
	}
	return run, n >= at+4 && binary.LittleEndian.Uint64(b[0:]) == anchorMagic &&
		binary.LittleEndian.Uint32(b[at:]) == crc32.Checksum(b[:at], castagnoli)
}

// has checks that the tail which the anchor vouches for is there. A later run than the anchor's is
// one whose beginning was cut short. ErrTailDamaged: there is none, or it is an older one; what it
// held may have been acknowledged.
func (r *reading) has(t *tailImage, name string) error {
	switch {
	case r.run == 0:
		return nil
	case t == nil:
		return fmt.Errorf("journal: file=%s: missing, the anchor has seen run %d of it: %w", name, r.run,
			ErrTailDamaged)
	case t.run < r.run:
		return fmt.Errorf("journal: file=%s: of run %d, the anchor has seen run %d: %w", name, t.run,
			r.run, ErrTailDamaged)
	}
	return nil
}

// syncDir makes the names in dir durable: a file that was synced may still be without its name
// after a power cut.
func syncDir(fs vfs.FS, dir string) error {
	d, err := fs.OpenDir(dir)
	if err != nil {
		return fmt.Errorf("journal: open dir=%s: %w", dir, err)
	}
	if err := errors.Join(d.Sync(), d.Close()); err != nil {
		return fmt.Errorf("journal: sync dir=%s: %w", dir, err)
	}
	return nil
}
