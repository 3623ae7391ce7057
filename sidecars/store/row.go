package store

import (
	"bytes"
	"fmt"
)

// Row is one row of a query. Columns count from 0. When a column does not hold the requested type,
// the method returns the zero value, and the query ends with an error after its each has returned.
//
// So a caller may read all columns and look at nothing in between: a row with an unreadable column
// is never taken for one with zero values, because the query fails.
type Row struct {
	// cells is the engine's view of the current row; the Row is the same for all rows of a query.
	cells cells
	err   error // the first column that could not be read
}

// cells reads the columns of the current row. NULL reads as the zero value.
//
// A column that does not exist is errColumn.
type cells interface {
	null(i int) bool
	int64(i int) (int64, error)
	text(i int) (string, error)
	bool(i int) (bool, error)
	date(i int) (Date, error)
	bytes(i int) ([]byte, error)
	// scratch returns the bytes of a text column, valid until the next column is read.
	scratch(i int) ([]byte, error)
}

// Null says whether column i is NULL.
func (r *Row) Null(i int) bool { return r.cells.null(i) }

// Int64 returns the whole number in column i; 0 for NULL.
func (r *Row) Int64(i int) int64 {
	v, err := r.cells.int64(i)
	r.note(i, "a whole number", err)
	return v
}

// Text returns the text in column i; "" for NULL.
//
// It allocates a string. Word and Is do without.
func (r *Row) Text(i int) string {
	v, err := r.cells.text(i)
	r.note(i, "text", err)
	return v
}

// Word returns the text in column i, as Text does. Equal texts share one string: known holds the
// strings seen so far, and Word adds to it. It is for columns of few different values.
//
// When known is full, a new text is returned and not added, so a column of many values costs the
// strings and never the memory of all of them.
func (r *Row) Word(i int, known map[string]string) string {
	b, err := r.cells.scratch(i)
	r.note(i, "text", err)
	if s, ok := known[string(b)]; ok {
		return s
	}
	s := string(b)
	if len(known) < maxWords {
		known[s] = s
	}
	return s
}

// Is reports whether column i holds this text, without making a string. NULL counts as the empty
// text.
func (r *Row) Is(i int, text []byte) bool {
	b, err := r.cells.scratch(i)
	r.note(i, "text", err)
	return bytes.Equal(b, text)
}

// maxWords bounds how many strings are kept for one column.
const maxWords = 4096

// Bool returns the boolean in column i; false for NULL.
func (r *Row) Bool(i int) bool {
	v, err := r.cells.bool(i)
	r.note(i, "a boolean", err)
	return v
}

// Bytes returns a copy of the bytes in column i; nil for NULL.
func (r *Row) Bytes(i int) []byte {
	v, err := r.cells.bytes(i)
	r.note(i, "bytes", err)
	return v
}

// note keeps the error of the first column that could not be read.
func (r *Row) note(i int, what string, err error) {
	if err != nil && r.err == nil {
		r.err = fmt.Errorf("column %d is not %s: %w", i, what, err)
	}
}
