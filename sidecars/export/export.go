package export

import (
	"io"

	"github.com/parquet-go/parquet-go"
)

// Format is how a table is written.
//
// The zero Format is none.
type Format uint8

// The formats.
const (
	CSV Format = iota + 1
	Parquet
)

// ParseFormat reads the word of a format.
//
// The case must match.
func ParseFormat(word string) (f Format, ok bool) {
	for f := range words {
		if f > 0 && words[f] == word {
			return Format(f), true
		}
	}
	return 0, false
}

var words = [...]string{CSV: "csv", Parquet: "parquet"}

// String returns the word of the format, which is also the ending of a file's name.
func (f Format) String() string { return words[f] }

// MediaType is the content type of the format.
func (f Format) MediaType() string {
	if f == Parquet {
		return "application/vnd.apache.parquet"
	}
	return "text/csv; charset=utf-8"
}

// Writer writes the rows of one table. After an error it must not be used.
//
// rows counts what was passed to Write, also rows that are still in the buffer.
type Writer[R any] struct {
	write func(rows []R) error
	close func() error
	rows  uint64
}

// Write writes rows. They may be used again afterwards.
//
// It may pass nothing on yet. Errors are those of the destination.
func (w *Writer[R]) Write(rows []R) error {
	w.rows += uint64(len(rows))
	return w.write(rows)
}

// Rows is how many rows were written.
func (w *Writer[R]) Rows() uint64 { return w.rows }

// Close ends the table. It does not close what the Writer writes to.
//
// What is still in memory is written here, for Parquet with the footer. It is called once, after
// the last Write that succeeded; a table with an error is left without its end.
func (w *Writer[R]) Close() error { return w.close() }

// table is how the rows R look. P is a row of Parquet: its fields are the columns.
//
// line and parquet write the same columns in the same order.
type table[R, P any] struct {
	header  string // of CSV
	line    func(c *cells, r *R)
	parquet func(p *P, r *R)
}

// open begins a table.
func open[R, P any](f Format, to io.Writer, t table[R, P]) *Writer[R] {
	if f == Parquet {
		return openParquet(to, t)
	}
	return openCSV(to, t)
}

const (
	// csvBuffer is how many bytes of CSV are written at once.
	csvBuffer = 64 << 10
	// groupRows is how many rows a row group of Parquet has. A group is kept in memory until it is
	// whole; a file's footer says something of each.
	groupRows = 64 << 10
)

// openCSV keeps the lines of one buffer. The header leaves with the first of them, or with Close
// for a table without rows.
func openCSV[R, P any](to io.Writer, t table[R, P]) *Writer[R] {
	c := &cells{text: append(make([]byte, 0, csvBuffer+4<<10), t.header...)}
	flush := func() error {
		_, err := to.Write(c.text)
		c.text = c.text[:0]
		return err
	}
	return &Writer[R]{close: flush, write: func(rows []R) error {
		for i := range rows {
			t.line(c, &rows[i])
			c.endLine()
			if len(c.text) >= csvBuffer {
				if err := flush(); err != nil {
					return err
				}
			}
		}
		return nil
	}}
}

// openParquet converts a thousand rows at a time into rows of columns P, which the library groups
// and compresses with Snappy.
func openParquet[R, P any](to io.Writer, t table[R, P]) *Writer[R] {
	w := parquet.NewGenericWriter[P](to, parquet.Compression(&parquet.Snappy),
		parquet.MaxRowsPerRowGroup(groupRows), parquet.CreatedBy("posttrade", "1", ""))
	page := make([]P, 1<<10)
	return &Writer[R]{close: w.Close, write: func(rows []R) error {
		for len(rows) > 0 {
			n := min(len(rows), len(page))
			for i := range n {
				t.parquet(&page[i], &rows[i])
			}
			if _, err := w.Write(page[:n]); err != nil {
				return err
			}
			rows = rows[n:]
		}
		return nil
	}}
}
