package tca

import (
	"bufio"
	"encoding/binary"
	"hash"
)

// wordWriter writes words and keeps the first error.
//
// sum is the SHA-256 of everything written so far.
type wordWriter struct {
	w   *bufio.Writer
	sum hash.Hash
	err error
}

func (w *wordWriter) bytes(b []byte) {
	if w.err == nil {
		w.sum.Write(b)
		_, w.err = w.w.Write(b)
	}
}

func (w *wordWriter) words(words ...uint64) {
	var b [8]byte
	for _, word := range words {
		binary.LittleEndian.PutUint64(b[:], word)
		w.bytes(b[:])
	}
}

// wordReader reads words of a checkpoint with a valid checksum. It still checks the counts: a count
// that is larger than the rest of the text makes the checkpoint bad.
//
// After the first bad read every read returns 0, so the callers look at bad once, at the end.
type wordReader struct {
	b   []byte
	bad bool
}

func (r *wordReader) word() uint64 {
	if len(r.b) < 8 {
		r.bad, r.b = true, nil
		return 0
	}
	word := binary.LittleEndian.Uint64(r.b)
	r.b = r.b[8:]
	return word
}

// count reads how many entries of that many words follow, at most most.
//
// words is the fewest words that an entry has. So a count never leads to more memory than the text
// has.
func (r *wordReader) count(words int, most uint64) int {
	n := r.word()
	if n > most || n > uint64(len(r.b)/(8*words)) {
		r.bad, r.b = true, nil
		return 0
	}
	return int(n)
}
