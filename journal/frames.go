package journal

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
)

// ErrTransfer reports a stream that is not a whole, undamaged transfer. Another
// attempt may fare better.
var ErrTransfer = errors.New("transfer is not whole")

// The longest body of a frame that is held in memory, by kind.
const (
	maxGenesis  = 64 << 20
	maxManifest = 64 << 10
	maxBlock    = envelopeBytes + maxBlockRaw
)

// frames reads the stream of a transfer and hashes it. Every error names the offset. An error of
// the stream's content is an ErrTransfer; an error of its reader is not.
type frames struct {
	r    *bufio.Reader
	sum  hash.Hash
	at   int64 // bytes read
	seen uint64
	head [frameHeader]byte
	buf  bytes.Buffer // the last body
}

func newFrames(r io.Reader) *frames {
	return &frames{r: bufio.NewReaderSize(r, transferChunk), sum: sha256.New()}
}

// bad is an error of the stream's content.
func (f *frames) bad(format string, args ...any) error {
	return fmt.Errorf("journal: receive offset=%d: %w: %w", f.at, ErrTransfer,
		fmt.Errorf(format, args...))
}

// broken is an error of reading; a stream that ends is not whole.
func (f *frames) broken(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return f.bad("%w", io.ErrUnexpectedEOF)
	}
	return fmt.Errorf("journal: receive offset=%d: %w", f.at, err)
}

// fixed reads exactly b.
func (f *frames) fixed(b []byte) error {
	n, err := io.ReadFull(f.r, b)
	f.sum.Write(b[:n])
	f.at += int64(n)
	if err != nil {
		return f.broken(err)
	}
	return nil
}

// begin reads the stream's header.
func (f *frames) begin() (version uint32, err error) {
	if err := f.fixed(f.head[:transferHeader]); err != nil {
		return 0, err
	}
	version = binary.LittleEndian.Uint32(f.head[8:])
	switch {
	case string(f.head[:8]) != transferMagic:
		return 0, f.bad("starts with %q", f.head[:8])
	case version != transferVersion && version != sectionVersion ||
		binary.LittleEndian.Uint32(f.head[12:]) != 0:
		return 0, f.bad("version %d, want %d or %d", version, transferVersion, sectionVersion)
	}
	return version, nil
}

// next reads the header of a frame.
func (f *frames) next() (kind byte, length uint64, err error) {
	if err := f.fixed(f.head[:]); err != nil {
		return 0, 0, err
	}
	f.seen++
	if low := binary.LittleEndian.Uint64(f.head[:]); low > 0xff {
		return 0, 0, f.bad("frame header %x", f.head)
	}
	return f.head[0], binary.LittleEndian.Uint64(f.head[8:]), nil
}

// body reads a body of at most limit bytes, valid until the next one. The buffer grows with the
// bytes that arrive, not with the announced length.
func (f *frames) body(length, limit uint64) ([]byte, error) {
	if length > limit {
		return nil, f.bad("frame %q of %d bytes, at most %d", f.head[0], length, limit)
	}
	f.buf.Reset()
	if err := f.copy(&f.buf, length); err != nil {
		return nil, err
	}
	return f.buf.Bytes(), nil
}

// copy gives a body to w and returns w's errors as they are.
func (f *frames) copy(w io.Writer, length uint64) error {
	for length > 0 {
		n := min(length, transferChunk/2) // no more than the reader can hold
		b, err := f.r.Peek(int(n))
		if err != nil {
			f.at += int64(len(b))
			return f.broken(err)
		}
		f.sum.Write(b)
		f.at += int64(n)
		length -= n
		if _, err := w.Write(b); err != nil {
			return err
		}
		if _, err := f.r.Discard(int(n)); err != nil {
			return f.broken(err)
		}
	}
	return nil
}

// expect reads a whole frame of one kind.
func (f *frames) expect(kind byte, limit uint64) ([]byte, error) {
	got, length, err := f.next()
	if err != nil {
		return nil, err
	}
	if got != kind {
		return nil, f.bad("frame %q, want %q", got, kind)
	}
	return f.body(length, limit)
}

// end reads the body of the last frame and the end of the stream. The caller has just read
// that frame's header.
func (f *frames) end(length uint64) error {
	if length != endBytes {
		return f.bad("end of %d bytes, want %d", length, endBytes)
	}
	var b [endBytes]byte
	if err := f.fixed(b[:8]); err != nil {
		return err
	}
	sum := f.sum.Sum(nil)
	if err := f.fixed(b[8:]); err != nil {
		return err
	}
	count := binary.LittleEndian.Uint64(b[:])
	switch {
	case count != f.seen-1:
		return f.bad("%d frames, want %d", f.seen-1, count)
	case string(sum) != string(b[8:]):
		return f.bad("sha256 %x, want %x", sum, b[8:])
	}
	switch _, err := f.r.ReadByte(); {
	case err == nil:
		return f.bad("goes on behind its end")
	case !errors.Is(err, io.EOF):
		return f.broken(err)
	}
	return nil
}
