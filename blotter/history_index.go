package blotter

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"sync/atomic"
	"unsafe"

	"posttrade/matcher"
)

const (
	// indexBlock is how many fills share a checksum. A reader reads at least one block.
	indexBlock      = 1024
	indexBlockBytes = indexBlock * matcher.FillBytes
	// indexWrite is how many blocks are written at a time.
	indexWrite = 16
)

// errWhole stops a source that has more fills than the index needs.
var errWhole = errors.New("index is whole")

// indexFile has the methods of a file that an index uses.
type indexFile interface {
	io.Writer
	io.ReaderAt
	io.Closer
}

// createIndexFile creates the file or empties it: what an earlier process left is of no use.
func createIndexFile(path string) (indexFile, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err // not f: an interface of a nil pointer is not nil
	}
	return f, nil
}

// index is one file of fills, complete and never changed. It is read by pread and not through a
// mapping. A disk that cannot read a page then causes an error in one reader and not a fatal signal
// to the process that matches orders.
type index struct {
	inputSeq uint64 // every fill of a command up to there is in it

	f     indexFile
	path  string
	count uint64
	sums  []uint32 // CRC-32C of every block

	// users are the readers and, until drop, the History; the last closes f.
	users atomic.Int64
}

// drop removes the file and ends the History's own use of it. Readers go on: an open file without a
// name stays readable.
func (ix *index) drop() error {
	return errors.Join(os.Remove(ix.path), ix.leave())
}

// leave ends one use.
func (ix *index) leave() error {
	if ix.users.Add(-1) == 0 {
		return ix.f.Close()
	}
	return nil
}

// each reads [from, to], which lies in the index, block by block. It checks each block in full
// before it passes any fill of it to fn.
func (ix *index) each(from, to uint64, fn func([]matcher.Fill) error) error {
	if from > to {
		return nil
	}
	room := make([]matcher.Fill, min(indexBlock, ix.count))
	for from <= to {
		block := (from - 1) / indexBlock
		first := block*indexBlock + 1
		fills := room[:min(indexBlock, ix.count-first+1)]
		if err := ix.read(block, first, fills); err != nil {
			return err
		}
		part := fills[from-first : min(to-first+1, uint64(len(fills)))]
		from += uint64(len(part))
		if err := fn(part); err != nil {
			return err
		}
	}
	return nil
}

// read fills in one block. first is the trade sequence of its first fill, for the error. A short
// read and a wrong checksum are ErrDamaged.
func (ix *index) read(block, first uint64, fills []matcher.Fill) error {
	raw := bytesOf(fills)
	if n, err := ix.f.ReadAt(raw, int64(block*indexBlockBytes)); n < len(raw) {
		return fmt.Errorf("blotter: read file=%s tradeSeq=%d: %d of %d bytes: %w: %w",
			ix.path, first, n, len(raw), ErrDamaged, err)
	}
	if sum := crc32.Checksum(raw, castagnoli); sum != ix.sums[block] {
		return fmt.Errorf("blotter: read file=%s tradeSeq=%d: crc %08x, want %08x: %w",
			ix.path, first, sum, ix.sums[block], ErrDamaged)
	}
	return nil
}

// bytesOf is the memory of the fills, not a copy.
func bytesOf(f []matcher.Fill) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(f))), len(f)*matcher.FillBytes)
}

// indexWriter writes an index of exactly last fills.
//
// The file is not synced: no process reads it after a power cut, and the checksums find data that
// the system could not write.
type indexWriter struct {
	f     indexFile
	last  uint64
	next  uint64 // trade sequence of the next fill
	sums  []uint32
	batch []matcher.Fill
}

// newIndexWriter writes to an empty file. It holds one batch of 1 MiB, and a checksum a block.
func newIndexWriter(f indexFile, last uint64) *indexWriter {
	return &indexWriter{
		f: f, last: last, next: 1,
		sums: make([]uint32, 0, last/indexBlock+1), batch: make([]matcher.Fill, 0, indexWrite*indexBlock),
	}
}

// append takes the next fills. It returns errWhole once it has the last one, and ErrSource for a
// fill that is not the next.
func (w *indexWriter) append(fills []matcher.Fill) error {
	for i := range fills {
		if w.next > w.last {
			return errWhole
		}
		if fills[i].TradeSeq != w.next {
			return fmt.Errorf("got tradeSeq=%d, want %d: %w", fills[i].TradeSeq, w.next, ErrSource)
		}
		w.batch = append(w.batch, fills[i])
		w.next++
		if len(w.batch) == cap(w.batch) {
			if err := w.flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

// flush writes the batch. It consists of whole blocks, except the last batch of the file.
func (w *indexWriter) flush() error {
	raw := bytesOf(w.batch)
	for rest := raw; len(rest) > 0; {
		block := rest[:min(indexBlockBytes, len(rest))]
		w.sums = append(w.sums, crc32.Checksum(block, castagnoli))
		rest = rest[len(block):]
	}
	w.batch = w.batch[:0]
	_, err := w.f.Write(raw)
	return err
}

// finish writes the remaining fills. The new index has one user, its History.
func (w *indexWriter) finish() (*index, error) {
	if w.next != w.last+1 {
		return nil, fmt.Errorf("source ends at tradeSeq=%d, head is %d: %w", w.next-1, w.last, ErrSource)
	}
	if err := w.flush(); err != nil {
		return nil, err
	}
	ix := &index{f: w.f, count: w.last, sums: w.sums}
	ix.users.Store(1)
	return ix, nil
}
