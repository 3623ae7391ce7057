package httpapi

import (
	"io"
	"sync"
)

// maxLongAnswer is the largest buffer that waits for another long answer.
const maxLongAnswer = 1 << 20

// longAnswer is the text of an answer longer than what the HTTP library keeps a buffer for. It is
// the body stream of its response: the library closes it when the text is written, and then the
// buffer serves the next long answer, of any connection.
//
// A buffer that grows from nothing to 50 KiB is copied seven times, and is then garbage.
type longAnswer struct {
	text []byte
	read int // how much of text Read has returned
	home *longAnswers
}

// longAnswers holds the buffers between two answers. The garbage collector empties it.
type longAnswers struct{ sync.Pool }

// begin takes a buffer for a long answer; sendLong gives it back. A handler that returns a problem
// meanwhile loses it.
func (p *longAnswers) begin() *longAnswer {
	if a, _ := p.Get().(*longAnswer); a != nil {
		return a
	}
	return &longAnswer{home: p}
}

// sendLong makes a the body of a JSON answer, and returns no problem, as send does. The caller must
// not use a afterwards.
func (v *serviceRequest) sendLong(status int, a *longAnswer) problem {
	v.ctx.Response.SetBodyStream(a, len(a.text))
	v.ctx.Response.SetStatusCode(status)
	v.ctx.Response.Header.SetContentType(contentJSON)
	return problem{}
}

// WriteTo writes what Read has not returned.
func (a *longAnswer) WriteTo(w io.Writer) (int64, error) {
	n, err := w.Write(a.text[a.read:])
	a.read += n
	return int64(n), err
}

// Read is for callers that want the text in pieces; the server's connections use WriteTo.
func (a *longAnswer) Read(b []byte) (int, error) {
	if a.read == len(a.text) {
		return 0, io.EOF
	}
	n := copy(b, a.text[a.read:])
	a.read += n
	return n, nil
}

// Close ends the answer, written or not. The library calls it once.
func (a *longAnswer) Close() error {
	if cap(a.text) > maxLongAnswer {
		a.text = nil
	}
	a.text, a.read = a.text[:0], 0
	a.home.Put(a)
	return nil
}
