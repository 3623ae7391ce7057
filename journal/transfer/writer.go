package transfer

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
)

// Writer makes the bytes of a stream in memory: Begin, frames, End. Its caller takes them away with
// Take as often as it likes.
type Writer struct {
	buf    []byte    // made, and not taken
	sum    hash.Hash // of all that was taken
	made   int64     // bytes that were taken
	frames uint64
}

// Begin makes the stream's header. A section goes on from a commit, which its frame KindBase names.
func (w *Writer) Begin(section bool) {
	version := uint32(versionWhole)
	if section {
		version = versionSection
	}
	w.sum = sha256.New()
	w.buf = append(w.buf, magic...)
	w.buf = binary.LittleEndian.AppendUint32(w.buf, version)
	w.buf = append(w.buf, 0, 0, 0, 0)
}

// Frame makes a whole frame.
func (w *Writer) Frame(kind byte, body []byte) {
	w.Open(kind, int64(len(body)))
	w.buf = append(w.buf, body...)
}

// Open makes the header of a frame; the caller owes that many bytes of body, by Body.
func (w *Writer) Open(kind byte, length int64) {
	w.buf = append(w.buf, kind, 0, 0, 0, 0, 0, 0, 0)
	w.buf = binary.LittleEndian.AppendUint64(w.buf, uint64(length))
	w.frames++
}

// Body makes room for n bytes of the open frame's body, which the caller fills before its next
// call.
func (w *Writer) Body(n int64) []byte {
	at := len(w.buf)
	w.buf = append(w.buf, make([]byte, n)...)
	return w.buf[at:]
}

// End makes the last frame. Nothing is made after it but a Take.
func (w *Writer) End() {
	frames := w.frames
	w.Open(KindEnd, endBytes)
	w.buf = binary.LittleEndian.AppendUint64(w.buf, frames)
	w.sum.Write(w.buf)
	w.buf = w.sum.Sum(w.buf)
}

// Len is the number of bytes that Take would give.
func (w *Writer) Len() int { return len(w.buf) }

// Take gives the bytes that were made since the last Take, valid until the next call. They are
// hashed here, or by End.
func (w *Writer) Take() []byte {
	out := w.buf
	w.sum.Write(out)
	w.made += int64(len(out))
	w.buf = w.buf[:0]
	return out
}

// Made is the number of bytes that were taken.
func (w *Writer) Made() int64 { return w.made }
