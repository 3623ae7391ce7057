package transfer

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"
	"testing/iotest"

	"posttrade/ring/must"
)

// sample is a stream with two frames, one of which is taken away in pieces.
func sample(section bool) []byte {
	var w Writer
	w.Begin(section)
	out := slices.Clone(w.Take())
	w.Frame('c', []byte("a block"))
	out = append(out, w.Take()...)
	w.Open(KindFile, 5)
	copy(w.Body(2), "fi")
	out = append(out, w.Take()...)
	copy(w.Body(3), "les")
	w.End()
	if w.Len() != EndBytes+3 || w.Made() != int64(len(out)) {
		panic("the writer counts wrong")
	}
	return append(out, w.Take()...)
}

// read reads what sample makes, to its end.
func read(from io.Reader) (section bool, err error) {
	r := NewReader(from)
	if section, err = r.Begin(); err != nil {
		return section, err
	}
	block, err := r.Expect('c', 7)
	if err != nil {
		return section, err
	}
	if string(block) != "a block" {
		return section, r.Bad("body %q", block)
	}
	kind, length, err := r.Next()
	if err != nil {
		return section, err
	}
	if kind != KindFile || length != 5 {
		return section, r.Bad("frame %q of %d", kind, length)
	}
	var file bytes.Buffer
	if err := r.Copy(&file, length); err != nil {
		return section, err
	}
	if file.String() != "files" {
		return section, r.Bad("file %q", &file)
	}
	if kind, length, err = r.Next(); err != nil {
		return section, err
	}
	if kind != KindEnd {
		return section, r.Bad("frame %q", kind)
	}
	return section, r.End(length)
}

func TestReaderReadsWhatAWriterMakes(t *testing.T) {
	for _, section := range []bool{false, true} {
		got, err := read(iotest.OneByteReader(bytes.NewReader(sample(section))))
		if err != nil || got != section {
			t.Errorf("a section %v, want %v: %v", got, section, err)
		}
	}
}

func TestEveryChangeOfAStreamIsFound(t *testing.T) {
	stream := sample(true)
	changed := [][]byte{append(slices.Clone(stream), 0)}
	for at := range stream {
		changed = append(changed, stream[:at])
		for bit := range 8 {
			flipped := slices.Clone(stream)
			flipped[at] ^= 1 << bit
			changed = append(changed, flipped)
		}
	}
	for i, c := range changed {
		if _, err := read(bytes.NewReader(c)); !errors.Is(err, ErrNotWhole) {
			t.Errorf("change %d, %d bytes: %v", i, len(c), err)
		}
	}
}

func TestReaderNamesWhatItDoesNotTake(t *testing.T) {
	for _, tt := range []struct {
		name  string
		limit uint64
		kind  byte
		want  string
	}{
		{"another kind", 7, 'f', `offset=32: transfer is not whole: frame 'c', want 'f'`},
		{"a body too long", 6, 'c', `offset=32: transfer is not whole: frame 'c' of 7 bytes, at most 6`},
	} {
		r := NewReader(bytes.NewReader(sample(false)))
		_, err := r.Begin()
		if err == nil {
			_, err = r.Expect(tt.kind, tt.limit)
		}
		if want := "journal: receive " + tt.want; fmt.Sprint(err) != want {
			t.Errorf("%s: %v, want %s", tt.name, err, want)
		}
	}
}

func TestReaderPassesErrorsOn(t *testing.T) {
	torn := errors.New("connection torn")
	stream := sample(false)
	for n := range stream {
		_, err := read(io.MultiReader(bytes.NewReader(stream[:n]), iotest.ErrReader(torn)))
		if !errors.Is(err, torn) || errors.Is(err, ErrNotWhole) {
			t.Errorf("after %d bytes: %v", n, err)
		}
	}
	full := errors.New("disk full")
	r := NewReader(bytes.NewReader(stream))
	must.Get(r.Begin())(t)
	_, length, err := r.Next()
	if err == nil {
		err = r.Copy(failing{full}, length)
	}
	if !errors.Is(err, full) || errors.Is(err, ErrNotWhole) {
		t.Errorf("a failed write gives %v", err)
	}
}

// failing fails every write.
type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }
