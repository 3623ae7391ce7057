package bundle

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"posttrade/journal/evidence/verify"
	"posttrade/matcher"
)

// RecordWriter writes records in the order of the small tree: a command, then its fills. The
// builder gives a command's record last.
//
// Each record stands behind its length, a u16, big endian. One goroutine uses it.
type RecordWriter struct {
	w *bufio.Writer
	// fills are those of the command under way, with their lengths: they wait for its record.
	fills []byte
	// err is the first error of the writer; See has no way to return it.
	err error
}

// NewRecordWriter returns a RecordWriter. The caller calls Flush at the end.
func NewRecordWriter(w io.Writer) *RecordWriter {
	return &RecordWriter{w: bufio.NewWriterSize(w, 1<<16)}
}

// See is the Seen of a builder. It copies or writes the record before it returns.
func (r *RecordWriter) See(_, _ uint64, _ [verify.SaltBytes]byte, record []byte) {
	if record[0] == verify.KindFill {
		r.fills = append(binary.BigEndian.AppendUint16(r.fills, uint16(len(record))), record...)
		return
	}
	var length [2]byte
	binary.BigEndian.PutUint16(length[:], uint16(len(record)))
	_, a := r.w.Write(length[:])
	_, b := r.w.Write(record)
	_, c := r.w.Write(r.fills)
	r.fills = r.fills[:0]
	r.err = errors.Join(r.err, a, b, c)
}

// Flush writes what is left, and returns what has failed.
func (r *RecordWriter) Flush() error { return errors.Join(r.err, r.w.Flush()) }

// command is one command of a bundle, as it stands there: unproven until the engine has decided it.
type command struct {
	matcher.Command
	id []byte
	// record is what the log says of the command, id the client order id in it.
	record []byte
	fills  []byte // with their lengths
}

// raises reports that the command may raise a capacity.
func (c *command) raises() bool {
	return c.TemplateID == matcher.TemplateCommand && c.Type == matcher.CapacityControl
}

// recordReader reads what a RecordWriter has written, a command with its fills at a time.
//
// Sequences must ascend without a hole. One goroutine uses it.
type recordReader struct {
	r    *bufio.Reader
	next []byte // the record that has been read ahead; nil at the end
	at   uint64 // the last command read
}

// newRecordReader reads the first record. behind is the sequence before it.
func newRecordReader(r io.Reader, behind uint64) (*recordReader, error) {
	rr := &recordReader{r: bufio.NewReaderSize(r, 1<<16), at: behind}
	return rr, rr.advance()
}

// advance reads the next record. The end of the file between two records is the end; within one it
// is an error.
func (r *recordReader) advance() error {
	r.next = nil
	var length [2]byte
	switch _, err := io.ReadFull(r.r, length[:]); {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return r.broken(err)
	}
	n := binary.BigEndian.Uint16(length[:])
	if n == 0 || n > maxRecordsLen {
		return r.broken(fmt.Errorf("a record of %d bytes", n))
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(r.r, b); err != nil {
		return r.broken(err)
	}
	r.next = b
	return nil
}

// broken is a refusal that says how far the records could be read.
func (r *recordReader) broken(err error) error {
	return refuse(fmt.Sprintf("%s behind sequence %d", RecordsName, r.at), "%v", err)
}

// command reads the next command and its fills; false at the end. More fills than most are a
// refusal: they are held in memory, and a stranger may have written any number of them.
func (r *recordReader) command(most int) (c command, more bool, err error) {
	if r.next == nil {
		return c, false, nil
	}
	where := fmt.Sprintf("sequence %d", r.at+1)
	if _, err := verify.Decoded(r.next); err != nil || r.next[0] != verify.KindCommand {
		return c, false, refuse(where, "its record is not that of a command")
	}
	c.record = r.next
	if c.Command, err = matcher.Decode(r.next[1 : 1+matcher.CommandBytes]); err != nil {
		return c, false, refuse(where, "%v", err)
	}
	if c.InputSeq != r.at+1 {
		return c, false, refuse(where, "the record there is of sequence %d", c.InputSeq)
	}
	c.id = r.next[len(verify.AppendCommand(nil, c.Bytes(), verify.Outcome{}, nil)):]
	r.at++
	for n := 0; ; n++ {
		if err := r.advance(); err != nil {
			return c, false, err
		}
		if r.next == nil || r.next[0] != verify.KindFill {
			return c, true, nil
		}
		if n == most {
			return c, false, refuse(where, "it has more than %d fills, the most that its engine can execute",
				most)
		}
		c.fills = append(binary.BigEndian.AppendUint16(c.fills, uint16(len(r.next))), r.next...)
	}
}

// Edges are the hashes of the records that share a leaf with the range and are not in it. With them
// the first and the last leaf can be computed.
type Edges struct{ Before, After []verify.Hash }

// Text is the file of the edges: twice a number, u32 big endian, and as many hashes.
func (e *Edges) Text() []byte {
	var b []byte
	for _, list := range [][]verify.Hash{e.Before, e.After} {
		b = binary.BigEndian.AppendUint32(b, uint32(len(list)))
		for i := range list {
			b = append(b, list[i][:]...)
		}
	}
	return b
}

// parseEdges reads Text. Sizes are compared with the bytes that there are before anything is made.
func parseEdges(b []byte) (e Edges, err error) {
	for _, list := range []*[]verify.Hash{&e.Before, &e.After} {
		if len(b) < 4 {
			return e, refuse(EdgesName, "it is cut short")
		}
		n := int(binary.BigEndian.Uint32(b))
		b = b[4:]
		if n > len(b)/verify.HashBytes {
			return e, refuse(EdgesName, "it is cut short")
		}
		for range n {
			*list = append(*list, verify.Hash(b[:verify.HashBytes]))
			b = b[verify.HashBytes:]
		}
	}
	if len(b) > 0 {
		return e, refuse(EdgesName, "%d bytes follow it", len(b))
	}
	return e, nil
}

// recordBuffer holds records with their lengths.
type recordBuffer []byte

func (b *recordBuffer) add(record []byte) {
	*b = append(binary.BigEndian.AppendUint16(*b, uint16(len(record))), record...)
}
