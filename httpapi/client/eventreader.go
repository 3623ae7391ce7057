package client

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// eventReader reads a stream of server-sent events.
//
// It takes what the server sends: the fields id, event and data of server-sent events, lines that
// end with LF; it passes over comments and retry. Another field is an error: the stream would not
// be what this client was written for. One goroutine uses it.
type eventReader struct{ lines *bufio.Reader }

// newEventReader reads body through a buffer of 64 KiB; a longer line costs an allocation.
func newEventReader(body io.Reader) *eventReader {
	return &eventReader{bufio.NewReaderSize(body, 64<<10)}
}

// next returns the next event. One without data has its ID alone. What the stream ends in the
// middle of is no event.
//
// An event ends with an empty line. Several data lines become one text with newlines between them.
// Errors: io.EOF at the end of the stream, ErrAnswer for a line that is none of the format, and
// those of the body.
func (r *eventReader) next() (e Event, err error) {
	for {
		line, err := r.line()
		if err != nil {
			return Event{}, err
		}
		if len(line) == 0 {
			if e.Data == nil {
				e.Kind = ""
			}
			if e.Kind == "" && e.ID == "" {
				continue // a comment, or more than one empty line
			}
			return e, nil
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(name) {
		case "id":
			e.ID = string(value)
		case "event":
			e.Kind = string(value)
		case "data":
			if e.Data != nil {
				e.Data = append(e.Data, '\n')
			}
			e.Data = append(e.Data, value...)
		case "", "retry":
		default:
			return Event{}, fmt.Errorf("%w: line %.40q of a stream of events", ErrAnswer, line)
		}
	}
}

// line returns the next line without its end; it is valid until the next call. The caller copies
// what it keeps.
func (r *eventReader) line() ([]byte, error) {
	line, err := r.lines.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		whole := bytes.Clone(line)
		for errors.Is(err, bufio.ErrBufferFull) {
			line, err = r.lines.ReadSlice('\n')
			whole = append(whole, line...)
		}
		line = whole
	}
	if err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(line, []byte("\n")), nil
}
