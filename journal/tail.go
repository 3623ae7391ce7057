//perf:hot

package journal

import (
	"encoding/binary"
	"hash/crc32"
	"sync/atomic"
	"unsafe"
)

// tail is what answers wait for when Options.Tail is set: a ring of segments in a file, into which
// the appender copies what its block has gained. FORMAT.md, section 7, has the bytes.
//
// In "os" mode the file is mapped. Memory that is shared with a file survives the process, as a
// write(2) does, without a system call and without another goroutine taking part. In "fsync" mode
// mem is a copy of the file's segments, and writers bring it to the disk (taillog.go).
//
// The store gets the same commands as without a tail, some hundreds of microseconds later. A
// segment is written again only when the store has everything in it.
//
// Invariants: next and nextTrade follow the last sequence that was copied; every command between
// the store's head and next lies in a segment that is in use. Appender only.
//
// The file:
//
//	header slot | header slot | segment 0 | segment 1 | ...
//
//	segment, "os":     frame frame frame ... what a lap ago has left
//	segment, "fsync":  head frame frame, up to 4 KiB | head frame, up to 4 KiB | ...
type tail struct {
	// The mapped part of the file: all of it in "os" mode, the two header slots in "fsync" mode.
	file tailMap
	// What frames are copied into, with the offsets of the file: the mapping itself in "os" mode, Go
	// memory in "fsync" mode.
	mem []byte
	// The mapped memory in which the marks are, in both modes.
	head []byte
	// The writers of "fsync" mode; nil in "os" mode. With a log, its mu guards at, limit, number and
	// lasts, because a writer that takes a write moves at to the next sector.
	log *tailLog

	// Bytes of a segment.
	bytes int
	// Bytes of a segment, or of a write, that come before its first frame: tailWrite with a log, else
	// 0.
	lead int
	// This opening's number, in every frame. A reader passes over frames of an earlier run, so a new
	// run need not clear what an old one has left.
	run uint64
	// The turn of the segment being written, counted from 0 without end: its place in the file is
	// number modulo the number of segments. Frames carry the turn, so a reader tells them from what
	// the segment held a lap ago.
	number uint64
	// Where in mem the next frame goes; limit is the end of its segment.
	at    int
	limit int
	// For each segment of the file the last inputSeq copied into it; 0 for a segment that holds
	// nothing of this run. It may be begun again when the store has that command.
	lasts []uint64

	// The inputSeq and the tradeSeq that the next frame begins with.
	next, nextTrade uint64

	// Where in head this run's marks are, and which of them is written next. With a log answering
	// guards turn.
	marks [tailMarks]int
	turn  int
}

const (
	// The file begins with tailSlots header slots of a page each. A run uses the slot run % tailSlots,
	// so the header of the run before it stays whole while its own is being written.
	tailHeader = 4096
	tailSlots  = 2
	// A slot holds tailMarks marks. They are written in turn: a process that dies inside of one leaves
	// the other whole.
	tailMarks   = 2
	tailMarksAt = 1024 // in a header slot
	tailMarkGap = 64
	// Bytes of a frame's head, and what every frame's offset is a multiple of.
	tailFrame     = 64
	tailFrameSign = 0x52465450 // "PTFR"
	// What one write of "fsync" mode begins and ends at: a write past the system's memory takes whole
	// sectors only.
	tailSector = 4096
	// Bytes of a write's head.
	tailWrite     = 64
	tailWriteSign = 0x52575450 // "PTWR"
	// Spreads the bits of a mark's check, so that zeroed memory is no mark.
	tailMarkSalt = 0x9e3779b97f4a7c15
)

// tailResult is the result of an attempt to append.
type tailResult int

const (
	tailTaken tailResult = iota // it lies in the tail
	tailFull                    // there is no room: the store has to answer
	tailGap                     // it does not continue the history; nothing was written
)

// append copies what b has gained since the last call into one frame, and then counts it in
// b.inTail. stored is the sequence up to which the store's copy makes the tail's superfluous: the
// store's head, with a log the part of it that is on stable storage.
//
// The checksum is the last thing written. A process that dies in between leaves bytes that are no
// frame; the mark has not moved, so they are not missed.
//
//   - tailFull: a segment cannot hold the frame, or the next segment holds commands that the store
//     has not. Nothing has changed; the caller lets the store answer, then calls skip.
//   - tailGap: a bug of the engine. Nothing has changed.
//   - Cost: a copy and a CRC-32C of the frame. No system call, no allocation, no lock.
//   - Source: FORMAT.md, section 7.
func (t *tail) append(b *Block, stored uint64) tailResult {
	records, fills, ids := b.records[b.inTail.records:], b.fills[b.inTail.fills:], b.ids[b.inTail.ids:]
	if !t.continues(records, fills) {
		return tailGap
	}
	size := frameSize(len(records), len(fills), len(ids))
	if t.at+size > t.limit && !t.turnOver(size, stored) {
		return tailFull
	}
	f := t.mem[t.at : t.at+size : t.at+size]
	n := tailFrame
	n += copy(f[n:], records)
	n += copy(f[n:], fills)
	n += copy(f[n:], ids)
	binary.LittleEndian.PutUint32(f[0:], tailFrameSign)
	binary.LittleEndian.PutUint64(f[8:], t.run)
	binary.LittleEndian.PutUint64(f[16:], t.number)
	binary.LittleEndian.PutUint64(f[24:], t.next)
	binary.LittleEndian.PutUint64(f[32:], t.nextTrade)
	binary.LittleEndian.PutUint32(f[40:], uint32(len(records)/recordBytes))
	binary.LittleEndian.PutUint32(f[44:], uint32(len(fills)/recordBytes))
	binary.LittleEndian.PutUint32(f[48:], b.idCount-b.inTail.idCount)
	binary.LittleEndian.PutUint32(f[52:], uint32(len(ids)))
	binary.LittleEndian.PutUint64(f[56:], b.idSeq())
	binary.LittleEndian.PutUint32(f[4:], crc32.Update(0, castagnoli, f[8:n]))
	t.at += size
	t.nextTrade += uint64(len(fills) / recordBytes)
	t.next += uint64(len(records) / recordBytes)
	t.lasts[t.number%uint64(len(t.lasts))] = t.next - 1
	if t.log == nil {
		t.mark(t.next - 1)
	}
	b.inTail = tailCopied{len(b.records), len(b.fills), len(b.ids), b.idCount, b.lastIDSeq}
	return tailTaken
}

// frameSize is a frame's length in the file, in bytes: its head and its three parts, up to the next
// multiple of tailFrame.
func frameSize(records, fills, ids int) int {
	return (tailFrame + records + fills + ids + tailFrame - 1) &^ (tailFrame - 1)
}

// idSeq is the sequence from which the distance of the block's next uncopied client id counts. A
// frame records it, because the distances of a block run through all frames that it is copied in.
func (b *Block) idSeq() uint64 {
	if b.inTail.idCount == 0 {
		return b.first
	}
	return b.inTail.idSeq
}

// continues checks that records and fills follow what has been copied before. Append checks the
// same, but the recorder releases the answers before it cuts the block.
func (t *tail) continues(records, fills []byte) bool {
	for i := 0; i < len(records); i += recordBytes {
		if binary.LittleEndian.Uint64(records[i+8:]) != t.next+uint64(i/recordBytes) {
			return false
		}
	}
	for i := 0; i < len(fills); i += recordBytes {
		if binary.LittleEndian.Uint64(fills[i:]) != t.nextTrade+uint64(i/recordBytes) {
			return false
		}
	}
	return true
}

// turnOver continues in the next segment, if a frame of size fits into one and the store has
// everything that is still in that segment. The rest of the segment before stays as it is: what
// follows the last frame there is no frame of this turn, which ends it for a reader.
func (t *tail) turnOver(size int, stored uint64) bool {
	next := (t.number + 1) % uint64(len(t.lasts))
	if t.lead+size > t.bytes || t.lasts[next] > stored {
		return false
	}
	t.number++
	t.lasts[next] = 0
	t.limit = tailSlots*tailHeader + int(next+1)*t.bytes
	t.at = t.limit - t.bytes + t.lead
	return true
}

// mark records, in two places in turn, how far answers may have been released: what is missing
// below that mark after the death of the process has been lost. mark comes before the answer.
//
// Both halves are stored whole, as aligned words, but the process may die between them. The check
// then does not hold, and a reader takes the other mark, which is one step older.
func (t *tail) mark(inputSeq uint64) {
	at := t.head[t.marks[t.turn]:]
	t.turn = (t.turn + 1) % tailMarks
	atomic.StoreUint64((*uint64)(unsafe.Pointer(&at[0])), inputSeq)
	atomic.StoreUint64((*uint64)(unsafe.Pointer(&at[8])), markCheck(inputSeq, t.run))
}

// markCheck is the second half of a mark. It holds the run, so a mark that an earlier run has left
// in the slot does not count.
func markCheck(inputSeq, run uint64) uint64 { return (inputSeq+1)*tailMarkSalt ^ ^run }

// skip continues behind end, which the store has answered, without a frame for what lies before.
// The appender calls it when the tail had no room, after the wait for the store.
func (t *tail) skip(end *point) { t.next, t.nextTrade = end.inputSeq+1, end.tradeSeq+1 }
