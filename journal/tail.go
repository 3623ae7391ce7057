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
type tail struct {
	file tailMap
	mem  []byte
	head []byte   // the header slots, mapped
	log  *tailLog // nil in "os" mode

	bytes  int // of a segment
	lead   int // bytes of it that come before its first frame
	run    uint64
	number uint64 // of the segment being written, counted from 0 without end
	at     int    // where in mem the next frame goes
	limit  int    // the end of the segment
	lasts  []uint64

	next, nextTrade uint64

	marks [tailMarks]int // where in mem the marks are
	turn  int
}

const (
	tailHeader    = 4096 // two pages: header slots with their marks
	tailSlots     = 2
	tailMarks     = 2
	tailMarksAt   = 1024 // in a header slot
	tailMarkGap   = 64
	tailFrame     = 64
	tailFrameSign = 0x52465450 // "PTFR"
	tailSector    = 4096       // what one write begins and ends at, in "fsync" mode
	tailWrite     = 64         // the head of a write
	tailWriteSign = 0x52575450 // "PTWR"
	tailMarkSalt  = 0x9e3779b97f4a7c15
)

// tailSaid is the result of an attempt to append.
type tailSaid int

const (
	tailTaken tailSaid = iota // it lies in the tail
	tailFull                  // there is no room: the store has to answer
	tailGap                   // it does not continue the history; nothing was written
)

// append copies what b has gained since the last call. stored is the store's head. Cost: a copy and
// a checksum.
func (t *tail) append(b *Block, stored uint64) tailSaid {
	records, fills, ids := b.records[b.told.records:], b.fills[b.told.fills:], b.ids[b.told.ids:]
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
	binary.LittleEndian.PutUint32(f[48:], b.idCount-b.told.idCount)
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
	b.told = told{len(b.records), len(b.fills), len(b.ids), b.idCount, b.lastIDSeq}
	return tailTaken
}

// frameSize is a frame's length: its parts, up to the next cache line.
func frameSize(records, fills, ids int) int {
	return (tailFrame + records + fills + ids + tailFrame - 1) &^ (tailFrame - 1)
}

// idSeq is the sequence from which the distance of the block's next uncopied client id counts.
func (b *Block) idSeq() uint64 {
	if b.told.idCount == 0 {
		return b.first
	}
	return b.told.idSeq
}

// continues checks that records and fills follow what has been copied before.
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
// everything that is still in that segment.
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
func (t *tail) mark(inputSeq uint64) {
	at := t.head[t.marks[t.turn]:]
	t.turn = (t.turn + 1) % tailMarks
	atomic.StoreUint64((*uint64)(unsafe.Pointer(&at[0])), inputSeq)
	atomic.StoreUint64((*uint64)(unsafe.Pointer(&at[8])), markCheck(inputSeq, t.run))
}

// markCheck is the second half of a mark.
func markCheck(inputSeq, run uint64) uint64 { return (inputSeq+1)*tailMarkSalt ^ ^run }

// skip continues behind end, which the store has answered.
func (t *tail) skip(end *point) { t.next, t.nextTrade = end.inputSeq+1, end.tradeSeq+1 }
