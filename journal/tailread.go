package journal

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"

	"posttrade/matcher"
)

// ErrTailDamaged: the tail cannot be read, and what it held may have been acknowledged.
// AcceptHistory sets such a tail aside; nothing else does.
var ErrTailDamaged = errors.New("tail damaged")

// tailImage is what a tail's file holds: the header that counts, and the frames of that run, in the
// order in which they were written.
type tailImage struct {
	tailHead
	// The file's path, for messages.
	name string
	// In the order of their turns and, within a segment, of the file. Frames may be missing between
	// two of them.
	frames []piece
	// The frames that the store does not have and that go on from its head without a hole: a part of
	// frames. Set by compare.
	beyond []piece

	// How far the commands were on stable storage when the newest readable write began; version 2,
	// otherwise 0.
	promised uint64
}

// piece is a frame: what was copied into the tail at one time. Its slices belong to the image.
type piece struct {
	// Where it lies in the file, for messages.
	offset, end int
	// The run and the turn of the segment, as the frame states them.
	run, number uint64
	// The inputSeq of its first command, and the tradeSeq that its first fill has or would have.
	first, link uint64
	records     []byte
	fills       []byte
	// The client ids. Their first is the sequence from which distances count; it may be before the
	// frame, because the distances of a block go on from one of its frames to the next.
	ids     ClientIDs
	idCount uint32
}

func (f *piece) commands() uint64  { return uint64(len(f.records) / recordBytes) }
func (f *piece) last() uint64      { return f.first + f.commands() - 1 }
func (f *piece) lastTrade() uint64 { return f.link + uint64(len(f.fills)/recordBytes) - 1 }

// readTail reads the tail in dir; nil when there is none. Bytes that are no frame of its run mark
// the end of a segment and are never an error. ErrTailDamaged: no header can be read, or something
// was written in a later run than the header's.
//
// A server may be writing. So the promises of a log are read before its frames: in one reading, a
// promise from the end of the file could be newer than frames that were missing further ahead.
// Cost: the whole file in memory, twice one after the other for a log.
func readTail(fs vfs.FS, dir string) (*tailImage, error) {
	before, err := readTailOnce(fs, dir)
	if err != nil || before == nil || before.version != tailLogged {
		return before, err
	}
	t, err := readTailOnce(fs, dir)
	if err == nil && t != nil && t.run == before.run {
		t.promised, t.mark = before.promised, before.mark
	}
	return t, err
}

// readTailOnce reads the file from its start to its end. At most maxTail bytes are read, and one
// more that shows a file to be too long.
func readTailOnce(fs vfs.FS, dir string) (*tailImage, error) {
	name := fs.PathJoin(dir, tailName)
	f, err := fs.Open(name, vfs.SequentialReadsOption)
	if notExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("journal: open file=%s: %w", name, err)
	}
	b, err := io.ReadAll(io.LimitReader(f, maxTail+1))
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("journal: read file=%s: %w", name, err)
	}
	return parseTail(b, name)
}

// maxTail bounds a file that the journal has not written.
const maxTail = 1 << 30

// parseTail takes a whole file apart. The frames keep slices of b. A segment counts by what it
// holds, not by its place alone: the turn of its frames must belong to that place.
func parseTail(b []byte, name string) (*tailImage, error) {
	head, ok := newestHead(b)
	if !ok {
		return nil, fmt.Errorf("journal: read file=%s: no readable header: %w", name, ErrTailDamaged)
	}
	if head.segments < 2 || head.bytes < tailFrame || head.bytes > maxTail ||
		head.segments > maxTail ||
		uint64(len(b)) != uint64(tailSlots*tailHeader)+uint64(head.segments)*uint64(head.bytes) {
		return nil, fmt.Errorf("journal: read file=%s: %d bytes for %d segments of %d: %w",
			name, len(b), head.segments, head.bytes, ErrTailDamaged)
	}
	t := &tailImage{tailHead: head, name: name}
	for segment := range head.segments {
		from := tailSlots*tailHeader + segment*head.bytes
		if head.version == tailLogged {
			if err := t.readWrites(b[from:from+head.bytes], from, segment); err != nil {
				return nil, err
			}
			continue
		}
		list := readSegment(b[from:from+head.bytes], from)
		if len(list) == 0 || list[0].run < head.run ||
			list[0].number%uint64(head.segments) != uint64(segment) {
			continue // of an earlier run, or never written
		}
		if list[0].run > head.run {
			return nil, t.laterRun(from, list[0].run)
		}
		t.frames = append(t.frames, list...)
	}
	slices.SortStableFunc(t.frames, func(a, b piece) int { return cmp.Compare(a.number, b.number) })
	return t, nil
}

// laterRun words the refusal of bytes of a later run than the newest readable header: the header of
// that run was synced before them, so it has been lost.
func (t *tailImage) laterRun(offset int, run uint64) error {
	return fmt.Errorf(
		"journal: read file=%s offset=%d: written in run %d, the header is of run %d: %w", t.name, offset,
		run, t.run, ErrTailDamaged)
}

// readSegment returns the frames from the start of a segment of version 1 to the first bytes that
// are none of the same turn. from is the segment's offset in the file. Behind them may lie frames
// of an earlier lap: their turn ends the list.
func readSegment(b []byte, from int) (list []piece) {
	for at := 0; at < len(b); { // a forged header may let a frame pass the segment's end
		f, size, ok := readFrame(b[at:])
		if !ok || len(list) > 0 && (f.run != list[0].run || f.number != list[0].number ||
			f.first <= list[len(list)-1].last()) {
			return list
		}
		f.offset, f.end = from+at, from+at+size
		list = append(list, f)
		at += size
	}
	return list
}

// readWrites adds the frames in a segment of a log. Any write may be missing, in full or in part: a
// power cut takes any sectors of writes that had not ended. So every sector is looked at, and a
// damaged write hides nothing that comes after it.
func (t *tailImage) readWrites(b []byte, from, segment int) error {
	for at := 0; at < len(b); {
		w, ok := readWriteHead(b[at:])
		if ok && w.run > t.run {
			return t.laterRun(from+at, w.run)
		}
		if !ok || w.run < t.run || w.segment%uint64(t.segments) != uint64(segment) {
			at += tailSector
			continue
		}
		t.promised = max(t.promised, w.promised)
		for p := at + tailWrite; p < at+w.bytes; {
			f, size, ok := readFrame(b[p : at+w.bytes])
			if !ok || f.run != w.run || f.number != w.segment {
				break
			}
			f.offset, f.end = from+p, from+p+size
			t.frames = append(t.frames, f)
			p += size
		}
		at += (w.bytes + tailSector - 1) &^ (tailSector - 1)
	}
	return nil
}

// writeHead is the head of a write.
type writeHead struct {
	run, segment uint64 // segment is its turn
	promised     uint64 // the last command that was on stable storage when the write began
	// With the head, without what follows the last frame up to the end of the sector.
	bytes int
}

// readWriteHead reads the head at the start of b; ok is false when there is none that holds, or
// when the write would not fit into b. The head's checksum covers the head alone: frames have their
// own, so a write that is there in part still gives those that are whole.
func readWriteHead(b []byte) (w writeHead, ok bool) {
	if len(b) < tailWrite || binary.LittleEndian.Uint32(b[0:]) != tailWriteSign ||
		binary.LittleEndian.Uint32(b[4:]) != crc32.Checksum(b[8:tailWrite], castagnoli) {
		return w, false
	}
	w.run, w.segment = binary.LittleEndian.Uint64(b[8:]), binary.LittleEndian.Uint64(b[16:])
	w.promised = binary.LittleEndian.Uint64(b[24:])
	size := binary.LittleEndian.Uint64(b[32:])
	w.bytes = int(min(size, maxTail))
	return w, w.bytes > tailWrite && w.bytes <= len(b)
}

// readFrame reads the frame at the start of b; ok is false when there is none that holds. size is
// its length in the file. Any bytes may be given: lengths are compared in 64 bits with what is
// there before anything is sliced.
func readFrame(b []byte) (f piece, size int, ok bool) {
	if len(b) < tailFrame || binary.LittleEndian.Uint32(b[0:]) != tailFrameSign {
		return f, 0, false
	}
	records, fills := uint64(binary.LittleEndian.Uint32(b[40:]))*recordBytes,
		uint64(binary.LittleEndian.Uint32(b[44:]))*recordBytes
	ids := uint64(binary.LittleEndian.Uint32(b[52:]))
	end := tailFrame + records + fills + ids
	if end > uint64(len(b)) || binary.LittleEndian.Uint32(b[4:]) != crc32.Checksum(b[8:end],
		castagnoli) {
		return f, 0, false
	}
	f = piece{
		run: binary.LittleEndian.Uint64(b[8:]), number: binary.LittleEndian.Uint64(b[16:]),
		first: binary.LittleEndian.Uint64(b[24:]), link: binary.LittleEndian.Uint64(b[32:]),
		records: b[tailFrame:][:records], fills: b[tailFrame+records:][:fills],
		ids: ClientIDs{first: binary.LittleEndian.Uint64(b[56:]),
			raw: b[tailFrame+records+fills:][:ids]},
		idCount: binary.LittleEndian.Uint32(b[48:]),
	}
	return f, frameSize(int(records), int(fills), int(ids)), f.holds()
}

// holds checks that the frame is one that a tail writes, so that the code that takes it apart need
// not check again: 1 to MaxBlockCommands commands, contiguous sequences, client ids of its own
// commands. The bound of 1<<62 keeps sums of sequences and counts from overflowing.
func (f *piece) holds() bool {
	if len(f.records) == 0 || f.commands() > MaxBlockCommands || f.first == 0 || f.first > 1<<62 ||
		f.link == 0 || f.link > 1<<62 {
		return false
	}
	for i := 0; i < len(f.records); i += recordBytes {
		if binary.LittleEndian.Uint64(f.records[i+8:]) != f.first+uint64(i/recordBytes) {
			return false
		}
	}
	for i := 0; i < len(f.fills); i += recordBytes {
		if binary.LittleEndian.Uint64(f.fills[i:]) != f.link+uint64(i/recordBytes) {
			return false
		}
	}
	if f.idCount == 0 {
		return len(f.ids.raw) == 0
	}
	if f.ids.first > f.first && f.ids.first > f.last() {
		return false
	}
	return f.ids.check(f.last(), f.idCount) == nil && f.firstID() >= f.first
}

// firstID is the sequence of the first client id.
func (f *piece) firstID() uint64 {
	ids := f.ids
	at, _, _ := ids.Next()
	return at
}

// compare compares the tail with the store, whose history ends at head, and finds what only the
// tail has (beyond). boot is this run of the operating system.
//
// Frames that do not continue from the head are passed over: a power cut may leave any of them. But
// the store must have the commit behind which the run began, and the same commands where both have
// them. If the tail was written under this run of the system, it must also reach as far as its mark
// says.
//
// ErrDiverged: the history is another. ErrShortened: commands that were answered are missing. Any
// other error is one of reading the store. Nothing is changed.
func (t *tailImage) compare(db *blockStore, seed [chainBytes]byte, head point, boot string) error {
	if t.seed != seed {
		return fmt.Errorf("journal: file=%s: genesis hash %x, store has %x: %w", t.name, t.seed, seed,
			ErrDiverged)
	}
	if head.inputSeq < t.base.inputSeq {
		return fmt.Errorf("journal: history ends at inputSeq=%d, file=%s has seen inputSeq=%d: %w",
			head.inputSeq, t.name, t.base.inputSeq, ErrShortened)
	}
	if err := t.begun(db, seed); err != nil {
		return err
	}
	known, err := t.reach(head, boot)
	if err != nil {
		return err
	}
	return t.agree(db, seed, known)
}

// reach finds the frames that continue from head, and returns those that end at it or before. A
// frame that reaches over the head is refused: a commit of the store never ends inside of a frame.
func (t *tailImage) reach(head point, boot string) ([]piece, error) {
	end, trade, known := head.inputSeq, head.tradeSeq, 0
	offset := tailSlots * tailHeader // behind what has been found
	for i := range t.frames {
		f := &t.frames[i]
		if f.last() <= head.inputSeq && len(t.beyond) == 0 {
			known, offset = i+1, f.end
			continue
		}
		if f.first <= head.inputSeq || f.first == end+1 && f.link != trade+1 {
			return nil, t.differs(f, head)
		}
		if f.first != end+1 {
			break
		}
		end, trade, offset = f.last(), f.lastTrade(), f.end
		t.beyond = t.frames[known : i+1]
	}
	if want := t.acknowledged(boot); end < want {
		return nil, fmt.Errorf(
			"journal: file=%s offset=%d: commands up to inputSeq=%d were acknowledged, store and file "+
				"have them up to %d: %w",
			t.name, offset, want, end, ErrShortened)
	}
	return t.frames[:known], nil
}

// continues reports whether the tail has every command from behind a sequence to a point, at which
// a frame must end, with the same fills.
func (t *tailImage) continues(from uint64, to *point) bool {
	for i := range t.frames {
		f := &t.frames[i]
		if f.last() <= from {
			continue
		}
		if f.first != from+1 || f.last() > to.inputSeq {
			return false
		}
		if from = f.last(); from == to.inputSeq {
			return f.lastTrade() == to.tradeSeq
		}
	}
	return false
}

// acknowledged is how far the history must reach. What a log says was on stable storage before it
// was said; what is only in memory until the system writes it back counts under the same boot id.
// 0: the tail promises nothing.
func (t *tailImage) acknowledged(boot string) uint64 {
	switch {
	case t.version == tailLogged:
		return max(t.promised, t.mark)
	case t.boot == boot && boot != "":
		return t.mark
	}
	return 0
}

// differs words the refusal of a frame that does not fit behind head.
func (t *tailImage) differs(f *piece, head point) error {
	return fmt.Errorf(
		"journal: file=%s offset=%d: inputSeq=%d..%d tradeSeq from %d, store ends at inputSeq=%d "+
			"tradeSeq=%d: %w",
		t.name, f.offset, f.first, f.last(), f.link, head.inputSeq, head.tradeSeq, ErrDiverged)
}

// begun checks that the store has the commit behind which the run began, with the same sequences
// and the same chain.
func (t *tailImage) begun(db *blockStore, seed [chainBytes]byte) error {
	w := newWalker(db, seed)
	defer w.close()
	if t.base.inputSeq > 0 {
		if err := w.startAt(t.base.inputSeq + 1); err != nil {
			return err
		}
	}
	if w.at != t.base {
		return fmt.Errorf(
			"journal: key=%s ends at inputSeq=%d chain=%x, file=%s began behind inputSeq=%d chain=%x: %w",
			w.lastKey(), w.at.inputSeq, w.at.chain[:4], t.name, t.base.inputSeq, t.base.chain[:4],
			ErrDiverged)
	}
	return nil
}

// agree compares the commands that are in both the store and the tail, byte by byte. Fills and
// client ids are not compared. Cost: the blocks of those commands are read and unpacked.
func (t *tailImage) agree(db *blockStore, seed [chainBytes]byte, known []piece) error {
	if len(known) == 0 {
		return nil
	}
	w := newWalker(db, seed)
	defer w.close()
	w.bare = true
	if err := w.seek(known[0].first); err != nil {
		return err
	}
	return w.walk(known[len(known)-1].last(), func(b *decoded) error {
		stored := recordsOf(b.commands)
		for len(known) > 0 && known[0].first <= b.last() {
			f := &known[0]
			known = known[1:]
			at := int(f.first-b.first) * recordBytes
			if f.first < b.first || at+len(f.records) > len(stored) ||
				string(stored[at:at+len(f.records)]) != string(f.records) {
				return fmt.Errorf("journal: key=%s differs from file=%s offset=%d inputSeq=%d: %w",
					keyName(newKey(keyCommands, b.first)), t.name, f.offset, f.first, ErrDiverged)
			}
		}
		return nil
	})
}

// blocks gives the commands that only the tail has, as blocks of at most limit commands, or more
// when one frame has more. A frame is never divided. The block is valid only during the call; it is
// filled again afterwards.
func (t *tailImage) blocks(limit int, f func(*Block) error) error {
	var b Block
	for i := range t.beyond {
		g := &t.beyond[i]
		if b.Commands() > 0 && b.Commands()+int(g.commands()) > limit {
			if err := f(&b); err != nil {
				return err
			}
			b.Reset()
		}
		b.piece(g)
	}
	if b.Commands() == 0 {
		return nil
	}
	return f(&b)
}

// piece appends what a frame holds. Client ids are encoded again, because their distances count
// from another sequence in the block.
func (b *Block) piece(f *piece) {
	if len(b.records) == 0 {
		b.first, b.lastIDSeq = f.first, f.first
	}
	b.records = append(b.records, f.records...)
	b.fills = append(b.fills, f.fills...)
	b.fillCount += uint32(len(f.fills) / recordBytes)
	ids := f.ids
	for at, id, ok := ids.Next(); ok; at, id, ok = ids.Next() {
		b.ClientID(at, id)
	}
}

// decode returns the commit that the block would be, in memory of its own. link is the tradeSeq
// that its first fill has or would have. The envelope has no chain and no codec: the block is not
// in the store.
func (b *Block) decode(link uint64) *decoded {
	n := b.Commands()
	d := &decoded{commands: make([]matcher.Command, n), fills: make([]matcher.Fill, b.fillCount)}
	copy(recordsOf(d.commands), b.records)
	copy(fillBytesOf(d.fills), b.fills)
	d.ids = ClientIDs{first: b.first, raw: slices.Clone(b.ids)}
	first, last := b.timeSpan()
	d.envelope = envelope{
		kind: keyCommands, count: uint32(n), first: b.first, firstTime: first, lastTime: last,
		raw:   uint32(len(b.records)),
		fills: b.fillCount, ids: b.idCount, link: link,
	}
	return d
}

// commits gives the commands that only the tail has as if they were commits behind head. Without a
// tail it gives none. Where the store will divide them may differ.
func (t *tailImage) commits(head point, f func(*decoded) error) error {
	if t == nil {
		return nil
	}
	trade := head.tradeSeq
	return t.blocks(DefaultBlockCommands, func(b *Block) error {
		d := b.decode(trade + 1)
		trade = d.lastTrade()
		return f(d)
	})
}

// end is the end of the history, or head without a tail. It has no chain there.
func (t *tailImage) end(head uint64) uint64 {
	if t == nil || len(t.beyond) == 0 {
		return head
	}
	return t.beyond[len(t.beyond)-1].last()
}
