package lines

import (
	"crypto/sha256"
	"hash"

	"posttrade/matcher"
)

// ChunkBytes is the most that a Printer hands over at a time. It is also what a Printer keeps in
// memory.
const ChunkBytes = 64 << 10

// Total counts the records of a report and hashes them.
type Total struct {
	Count  uint64            // records
	SHA256 [sha256.Size]byte // of all lines, newlines included
}

// Printer collects the lines of events on a page and hands full pages on. One goroutine uses it.
type Printer struct {
	renderer
	// sum is over everything that was handed on.
	sum   hash.Hash
	chunk func(records []byte, count int) error
	// page has whole lines that were not handed on yet; its capacity is ChunkBytes from the start
	page  []byte
	count int    // records on the page
	total uint64 // records that were handed on
}

// NewPrinter returns a Printer that gives whole lines to chunk, at most ChunkBytes at a time, with
// the number of records in them. chunk may use the bytes only until it returns, and its error ends
// the report.
func NewPrinter(chunk func(records []byte, count int) error) *Printer {
	return &Printer{sum: sha256.New(), chunk: chunk, page: make([]byte, 0, ChunkBytes)}
}

// Know reads the names of the securities that are registered before the first event; names is an
// engine that stands there.
func (p *Printer) Know(names Names) { p.securities.load(names) }

// Print prints the records of the events of whole commands, in order. It hands a page on as soon as
// the records of one more event might not fit. Its error is that of chunk.
func (p *Printer) Print(events []matcher.Event) error {
	for i := range events {
		if len(p.page) > ChunkBytes-maxRecords {
			if err := p.Flush(); err != nil {
				return err
			}
		}
		var n int
		p.page, n = p.render(p.page, &events[i])
		p.count += n
	}
	return nil
}

// Flush hands on what is left. The caller calls it behind the last event, else the end is missing.
func (p *Printer) Flush() error {
	if p.count == 0 {
		return nil
	}
	p.sum.Write(p.page)
	p.total += uint64(p.count)
	err := p.chunk(p.page, p.count)
	p.page, p.count = p.page[:0], 0
	return err
}

// Total is what was handed on: without what is still on the page, so it is whole after Flush.
func (p *Printer) Total() (total Total) {
	total.Count = p.total
	p.sum.Sum(total.SHA256[:0])
	return total
}
