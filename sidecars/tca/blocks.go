package tca

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"sync/atomic"
)

// A block, little endian:
//
//	0   u32  CRC-32C of everything behind it, begun with the block's number
//	4   u16  level: 0 a leaf, else how far above the leaves
//	6   u16  entries
//	8   u32  owner: the security of samples, 0 for arrivals
//	12  u32  0
//	16  u64  the number of its first entry among the owner's of that level
//	24  entries, then zeros
//
// Each block begins at a multiple of blockBytes, so its number gives its place in the file.
const (
	blockBytes = 4096
	headBytes  = 24
)

// cachedBlocks is how many blocks of a file stay in memory: 4 MiB.
//
// Each number has one slot; a block that is read takes the place of the one before it there.
const cachedBlocks = 1024

// block is one block in memory, immutable once it has been read or written.
//
// entries and ordinal are those of the head; the words of an entry depend on the kind of block.
type block struct {
	number uint64
	bytes  [blockBytes]byte
}

func (b *block) level() int      { return int(binary.LittleEndian.Uint16(b.bytes[4:])) }
func (b *block) entries() int    { return int(binary.LittleEndian.Uint16(b.bytes[6:])) }
func (b *block) owner() uint32   { return binary.LittleEndian.Uint32(b.bytes[8:]) }
func (b *block) ordinal() uint64 { return binary.LittleEndian.Uint64(b.bytes[16:]) }

// word is the 64-bit word number at after the head.
func (b *block) word(at int) uint64 {
	return binary.LittleEndian.Uint64(b.bytes[headBytes+8*at:])
}

func (b *block) setWord(at int, v uint64) {
	binary.LittleEndian.PutUint64(b.bytes[headBytes+8*at:], v)
}

// begin clears the block and writes its head.
func (b *block) begin(level, entries int, owner uint32, ordinal uint64) {
	clear(b.bytes[:])
	binary.LittleEndian.PutUint16(b.bytes[4:], uint16(level))
	binary.LittleEndian.PutUint16(b.bytes[6:], uint16(entries))
	binary.LittleEndian.PutUint32(b.bytes[8:], owner)
	binary.LittleEndian.PutUint64(b.bytes[16:], ordinal)
}

// checksum begins with the number, so that a block at another block's place counts as damaged.
//
// The four bytes of the checksum itself are left out.
func (b *block) checksum(table *crc32.Table) uint32 {
	var number [8]byte
	binary.LittleEndian.PutUint64(number[:], b.number)
	return crc32.Update(crc32.Checksum(number[:], table), table, b.bytes[4:])
}

// blockFile is a file of whole blocks that only grows. One goroutine appends, and any number read
// appended blocks; TCA.mu orders them.
//
// The file may be longer than blocks: blocks behind the checkpoint were appended before a crash,
// and cut drops them.
type blockFile struct {
	f     *os.File
	name  string
	table *crc32.Table
	// blocks is how many are valid. append raises it, cut sets it; TCA.mu guards it.
	blocks uint64
	spare  block // used by append
	// cache is filled by readers, several at once. A slot holds nil or a whole block.
	cache [cachedBlocks]atomic.Pointer[block]
}

// openBlocks opens or makes a file. It counts no block as valid until cut says how many are.
func openBlocks(name string) (*blockFile, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("tca: open blocks: %w", err)
	}
	return &blockFile{f: f, name: name, table: crc32.MakeTable(crc32.Castagnoli)}, nil
}

// cut truncates the file to that many blocks and drops the cache. The file must have at least that
// many.
//
// errCheckpoint when it is shorter: the checkpoint cannot be used then.
func (f *blockFile) cut(blocks uint64) error {
	info, err := f.f.Stat()
	if err != nil {
		return fmt.Errorf("tca: stat file=%s: %w", f.name, err)
	}
	if blocks > uint64(info.Size())/blockBytes {
		return fmt.Errorf("tca: file=%s has %d bytes, the checkpoint counts on %d blocks: %w",
			f.name, info.Size(), blocks, errCheckpoint)
	}
	for i := range f.cache {
		f.cache[i].Store(nil)
	}
	f.blocks = blocks
	if err := f.f.Truncate(int64(blocks * blockBytes)); err != nil {
		return fmt.Errorf("tca: truncate file=%s: %w", f.name, err)
	}
	return nil
}

// append writes f.spare as the next block and returns its number.
//
// It does not sync: save does, before a checkpoint counts on the block. After an error the block
// counts as not written, and the next append writes to the same place.
func (f *blockFile) append() (uint64, error) {
	f.spare.number = f.blocks
	binary.LittleEndian.PutUint32(f.spare.bytes[:], f.spare.checksum(f.table))
	if _, err := f.f.WriteAt(f.spare.bytes[:], int64(f.blocks*blockBytes)); err != nil {
		return 0, fmt.Errorf("tca: write file=%s block=%d: %w", f.name, f.blocks, err)
	}
	f.blocks++
	return f.spare.number, nil
}

// read returns one appended block. The block is shared and must not be changed.
//
// Errors: ErrDamaged when the file does not hold what was written. Cost: nothing from the cache;
// else a read and a checksum of 4 KiB.
func (f *blockFile) read(number uint64) (*block, error) {
	slot := &f.cache[number%cachedBlocks]
	if b := slot.Load(); b != nil && b.number == number {
		return b, nil
	}
	if number >= f.blocks {
		return nil, fmt.Errorf("tca: file=%s block=%d of %d: %w", f.name, number, f.blocks, ErrDamaged)
	}
	b := &block{number: number}
	if _, err := f.f.ReadAt(b.bytes[:], int64(number*blockBytes)); errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("tca: file=%s block=%d is cut off: %w", f.name, number, ErrDamaged)
	} else if err != nil {
		return nil, fmt.Errorf("tca: read file=%s block=%d: %w", f.name, number, err)
	}
	if got, want := binary.LittleEndian.Uint32(b.bytes[:]), b.checksum(f.table); got != want {
		return nil, fmt.Errorf("tca: file=%s block=%d: crc %08x, want %08x: %w", f.name, number, got,
			want, ErrDamaged)
	}
	slot.Store(b)
	return b, nil
}

// sync makes every appended block durable.
func (f *blockFile) sync() error {
	if err := f.f.Sync(); err != nil {
		return fmt.Errorf("tca: sync file=%s: %w", f.name, err)
	}
	return nil
}
