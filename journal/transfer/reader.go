package transfer

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

// ErrNotWhole reports a stream that is not a whole, undamaged transfer. Another attempt may
// succeed.
var ErrNotWhole = errors.New("transfer is not whole")

// Reader reads the stream of a transfer and hashes it. Every error names the offset in bytes. An
// error of the stream's content is an ErrNotWhole; an error of what it is read from is not.
type Reader struct {
	from *bufio.Reader
	sum  hash.Hash
	// Bytes read of the stream, for messages.
	at   int64
	seen uint64
	head [FrameBytes]byte
	buf  bytes.Buffer // the last body
}

// NewReader returns a Reader of the stream that from gives. It reads ahead by at most ChunkBytes.
func NewReader(from io.Reader) *Reader {
	return &Reader{from: bufio.NewReaderSize(from, ChunkBytes), sum: sha256.New()}
}

// Bad is an error of the stream's content: an ErrNotWhole at the offset where the Reader is.
func (r *Reader) Bad(format string, args ...any) error {
	return fmt.Errorf("journal: receive offset=%d: %w: %w", r.at, ErrNotWhole,
		fmt.Errorf(format, args...))
}

// broken is an error of reading; a stream that ends is not whole.
func (r *Reader) broken(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return r.Bad("%w", io.ErrUnexpectedEOF)
	}
	return fmt.Errorf("journal: receive offset=%d: %w", r.at, err)
}

// fixed reads exactly b, and hashes it.
func (r *Reader) fixed(b []byte) error {
	n, err := io.ReadFull(r.from, b)
	r.sum.Write(b[:n])
	r.at += int64(n)
	if err != nil {
		return r.broken(err)
	}
	return nil
}

// Begin reads the stream's header, first. A section goes on from a commit, which its frame KindBase
// names. A stream of another version is an ErrNotWhole.
func (r *Reader) Begin() (section bool, err error) {
	if err := r.fixed(r.head[:headerBytes]); err != nil {
		return false, err
	}
	version := binary.LittleEndian.Uint32(r.head[8:])
	switch {
	case string(r.head[:8]) != magic:
		return false, r.Bad("starts with %q", r.head[:8])
	case version != versionWhole && version != versionSection ||
		binary.LittleEndian.Uint32(r.head[12:]) != 0:
		return false, r.Bad("version %d, want %d or %d", version, versionWhole, versionSection)
	}
	return version == versionSection, nil
}

// Next reads the header of a frame: its kind, and the length of its body in bytes. The length is
// what the stream says: Body bounds it, and Copy reads it piece by piece. The body must be read
// before the next frame.
func (r *Reader) Next() (kind byte, length uint64, err error) {
	if err := r.fixed(r.head[:]); err != nil {
		return 0, 0, err
	}
	r.seen++
	if low := binary.LittleEndian.Uint64(r.head[:]); low > 0xff {
		return 0, 0, r.Bad("frame header %x", r.head)
	}
	return r.head[0], binary.LittleEndian.Uint64(r.head[8:]), nil
}

// Body reads a body of at most limit bytes, valid until the next one.
func (r *Reader) Body(length, limit uint64) ([]byte, error) {
	if length > limit {
		return nil, r.Bad("frame %q of %d bytes, at most %d", r.head[0], length, limit)
	}
	r.buf.Reset()
	if err := r.Copy(&r.buf, length); err != nil {
		return nil, err
	}
	return r.buf.Bytes(), nil
}

// Copy gives a body to w and returns w's errors as they are. It holds at most half of ChunkBytes; w
// may keep nothing of what it gets.
func (r *Reader) Copy(w io.Writer, length uint64) error {
	for length > 0 {
		n := min(length, ChunkBytes/2) // no more than the reader can hold
		b, err := r.from.Peek(int(n))
		if err != nil {
			r.at += int64(len(b))
			return r.broken(err)
		}
		r.sum.Write(b)
		r.at += int64(n)
		length -= n
		if _, err := w.Write(b); err != nil {
			return err
		}
		if _, err := r.from.Discard(int(n)); err != nil {
			return r.broken(err)
		}
	}
	return nil
}

// Expect reads a whole frame of one kind, of at most limit bytes. The body is valid until the next
// one.
func (r *Reader) Expect(kind byte, limit uint64) ([]byte, error) {
	got, length, err := r.Next()
	if err != nil {
		return nil, err
	}
	if got != kind {
		return nil, r.Bad("frame %q, want %q", got, kind)
	}
	return r.Body(length, limit)
}

// End reads the body of the last frame and the end of the stream. The caller has just read that
// frame's header, KindEnd. The hash covers everything before it, also the frame's header and
// number.
func (r *Reader) End(length uint64) error {
	if length != endBytes {
		return r.Bad("end of %d bytes, want %d", length, endBytes)
	}
	var b [endBytes]byte
	if err := r.fixed(b[:8]); err != nil {
		return err
	}
	sum := r.sum.Sum(nil)
	if err := r.fixed(b[8:]); err != nil {
		return err
	}
	count := binary.LittleEndian.Uint64(b[:])
	switch {
	case count != r.seen-1:
		return r.Bad("%d frames, want %d", r.seen-1, count)
	case string(sum) != string(b[8:]):
		return r.Bad("sha256 %x, want %x", sum, b[8:])
	}
	return r.nothingFollows()
}

// nothingFollows wants the stream to end here.
func (r *Reader) nothingFollows() error {
	switch _, err := r.from.ReadByte(); {
	case err == nil:
		return r.Bad("goes on behind its end")
	case !errors.Is(err, io.EOF):
		return r.broken(err)
	}
	return nil
}
