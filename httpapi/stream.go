package httpapi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/valyala/fasthttp"

	"posttrade/matcher/gate"
)

// problemChunks is the answer to a request for a streamed answer with an old version of HTTP.
var problemChunks = badQuery("the answer is sent in chunks, which HTTP/1.0 does not have")

// Why an answer ends early: its connection has closed, or its token was taken back.
var (
	errReaderGone = errors.New("httpapi: the answer's reader is gone")
	errWithdrawn  = errors.New("httpapi: the token of the answer was taken back")
)

// streamedAnswer writes one streamed answer into a pipe. run has a goroutine of its own, because it
// pushes the answer and the HTTP library pulls an answer's body.
//
//	run --> coding --> pipe --> bodyStream.Read --> fasthttp --> socket
//	goroutine of its own        the connection's goroutine
//
// A pipe has no buffer: run waits while the client does not read, so the memory of an answer does
// not depend on its length.
type streamedAnswer struct {
	what string // it makes, for the log
	// run writes the answer. It calls begin before it writes anything, and may return an error before
	// that: then the answer has a status code of its own.
	run    func(ctx context.Context, out io.Writer) error
	coding int // index among the codings; any other value: none
	// trailers are the names that the head announces; trailer sets their values, and is called by the
	// reading goroutine when run has ended without an error.
	trailers []string                           // known when the whole answer is written
	trailer  func(set func(name, value string)) // sets them

	// done is called once, when run has ended or was not called, on the goroutine of run; nil: nothing
	// is called.
	done func()

	// started gets one value: nil when bytes follow, or the error that prevents them. It has room for
	// it, so that run never waits for the handler. begun says that it was sent; only the goroutine of
	// run uses it.
	started chan error
	begun   bool
}

// The codings by their index among the offers of acceptedCoding.
const (
	codingZstd = iota
	codingGzip
	codingNone
)

var codings = [...]string{codingZstd: "zstd", codingGzip: "gzip"}

// acceptedCoding is the coding that a client prefers.
//
// A client that names none of them, or identity first, gets the answer as it is.
func acceptedCoding(head *fasthttp.RequestHeader) int {
	return prefer(head, "Accept-Encoding", "zstd", "gzip", "identity")
}

// begin says that bytes follow.
//
// From then on the status code is 200, whatever happens. Only the goroutine of run calls it.
func (p *streamedAnswer) begin() {
	if !p.begun {
		p.begun = true
		p.started <- nil
	}
}

// output is w behind the coding of the answer.
func (p *streamedAnswer) output(w io.Writer) (out io.WriteCloser, err error) {
	switch p.coding {
	case codingZstd:
		// One goroutine and a small window: they compress an answer well enough, and the memory must not
		// depend on its length.
		out, err = zstd.NewWriter(w, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(256<<10))
	case codingGzip:
		out = gzip.NewWriter(w)
	default:
		out = plain{w}
	}
	if err != nil {
		return nil, fmt.Errorf("httpapi: compress %s: %w", p.what, err)
	}
	return out, nil
}

// write writes the whole answer to w.
//
// An answer of no bytes begins here. Nothing is flushed after an error: a coding that is cut cannot
// look whole.
func (p *streamedAnswer) write(ctx context.Context, w io.Writer) error {
	out, err := p.output(w)
	if err != nil {
		return err
	}
	if err := p.run(ctx, out); err != nil {
		return err
	}
	p.begin()
	return out.Close()
}

// plain is a writer without compression.
type plain struct{ io.Writer }

// Close implements io.Closer.
func (plain) Close() error { return nil }

// sendStream makes what p writes the answer of v, of type kind. Before the first bytes it returns
// the error of p. After that an error can only end the connection, without the last chunk, so that
// the answer does not look whole.
//
// It waits until the first bytes are there. After an error the streamedAnswer has ended, and the
// response is untouched. An answer that a verified token has opened ends when that token is taken
// back.
func (s *service) sendStream(v *serviceRequest, p *streamedAnswer, kind string) error {
	p.started = make(chan error, 1)
	stream := s.stream(p, v.ctx)
	if v.claims.Subject != "" { // the token was verified
		stream.verifier = v.verifier
		stream.token = bytes.Clone(bearer(v.ctx.Request.Header.Peek("Authorization")))
	}
	if err := <-p.started; err != nil {
		return errors.Join(err, stream.Close())
	}
	response := &v.ctx.Response
	response.SetStatusCode(200)
	response.Header.SetContentType(kind)
	if p.coding == codingZstd || p.coding == codingGzip {
		response.Header.Set("Content-Encoding", codings[p.coding])
	}
	for _, name := range p.trailers {
		if err := response.Header.AddTrailer(name); err != nil {
			panic("httpapi: a trailer may not have this name: " + name)
		}
	}
	response.ImmediateHeaderFlush = true // a compressor may hold the first bytes back for long
	response.SetBodyStream(stream, -1)
	return nil
}

// bodyStream is the answer's body: the reading end of a streamedAnswer's pipe. The HTTP library
// reads and closes it on the connection's goroutine.
type bodyStream struct {
	*io.PipeReader
	answer *streamedAnswer
	ctx    *fasthttp.RequestCtx
	// conn gets a write deadline of its own for each piece. cancel ends the context of run, and ended
	// waits for its goroutine.
	conn   net.Conn
	cancel context.CancelFunc
	ended  sync.WaitGroup
	leave  func() // ends the request's use of the service
	// verifier judges the token that the answer depends on; nil: it depends on none.
	verifier *gate.Verifier
	token    []byte

	timeout time.Duration // of one write
}

// stream starts a streamedAnswer.
//
// The context ends with the service, with Close and, through the pipe, with the connection. A panic
// of run is the error of the answer. Close waits on ended: nothing of run is left when it returns.
func (s *service) stream(p *streamedAnswer, request *fasthttp.RequestCtx) *bodyStream {
	ctx, cancel := context.WithCancel(s.lasting)
	reader, writer := io.Pipe()
	b := &bodyStream{PipeReader: reader, answer: p, ctx: request, conn: request.Conn(),
		cancel:  cancel,
		timeout: s.server.http.WriteTimeout, leave: holdBackend(request)}
	s.server.streams.Add(1)
	// A client that does not read must not hold it up.
	context.AfterFunc(ctx, func() { reader.CloseWithError(context.Cause(ctx)) })
	b.ended.Go(func() {
		defer s.server.streams.Add(-1)
		var err error
		defer func() {
			if cause := recover(); cause != nil {
				err = s.panicked(p.what, cause)
			}
			if p.done != nil {
				p.done()
			}
			if err != nil && !p.begun {
				p.begun = true
				p.started <- err
			} else if errors.Is(err, errWithdrawn) {
				s.server.log.Warn("httpapi: "+p.what+" was cut", "error", err)
			} else if err != nil && !errors.Is(err, errReaderGone) {
				s.server.log.Error("httpapi: "+p.what+" was cut", "error", err)
			}
			writer.CloseWithError(err) // nil: end of file
		}()
		err = p.write(ctx, writer)
	})
	return b
}

// panicked counts and logs a panic of what makes an answer, and returns the error that ends it.
func (s *service) panicked(what string, cause any) error {
	s.server.panicked(what, cause)
	return errors.New("httpapi: " + what + " panicked")
}

// Read implements io.Reader. The library then writes what Read returns, with a time-out for that
// piece alone: a streamed answer may take longer than an answer may, a stalled reader may not.
//
// The token is judged before each piece: nothing leaves after it was taken back but what the HTTP
// library has in its buffer. At the end Read sets the trailers. The HTTP library writes them behind
// the last chunk only when Read returns io.EOF; after another error it ends the connection.
func (b *bodyStream) Read(piece []byte) (int, error) {
	n, err := b.PipeReader.Read(piece)
	if b.verifier != nil && !b.verifier.Holds(b.token) {
		_ = b.PipeReader.CloseWithError(errWithdrawn) // it returns no error
		return 0, errWithdrawn
	}
	if deadline := b.conn.SetWriteDeadline(
		time.Now().Add(b.timeout)); deadline != nil && err == nil {
		return n, deadline
	}
	if err == io.EOF && b.answer.trailer != nil {
		b.answer.trailer(b.ctx.Response.Header.Set)
	}
	return n, err
}

// Close ends the answer, whole or not, and waits until its goroutine has ended.
//
// The HTTP library calls it once for each stream, also when the client has gone.
func (b *bodyStream) Close() error {
	err := b.PipeReader.CloseWithError(errReaderGone)
	b.cancel()
	b.ended.Wait()
	b.leave()
	return err
}
