package httpapi

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/valyala/fasthttp"

	"posttrade/journal/audit"
)

// Reporter makes the regulatory report; *audit.Reporter is one.
type Reporter interface {
	// Clip turns the bounds of a request, 0 for absent, into the bounds of Write.
	Clip(from, to uint64) (first, last uint64, err error)
	// Genesis is the seed: the genesis record's JSON text.
	Genesis() []byte
	// Write passes the report to chunk, in pieces of whole lines.
	Write(ctx context.Context, from, to uint64,
		chunk func(records []byte, count int) error) (audit.Total, error)
}

// The values of a report beside its body. The last two are trailers: they are known when all
// records are written.
const (
	headerReportFrom   = "X-Report-From-Seq"
	headerReportTo     = "X-Report-To-Seq"
	headerReportCount  = "X-Report-Count"
	headerReportSHA256 = "X-Report-Sha256"
)

// problemChunks is the answer to a request for a report with an old version of HTTP.
var problemChunks = badQuery("the report is sent in chunks, which HTTP/1.0 does not have")

// errReaderGone ends a report whose connection has closed.
var errReaderGone = errors.New("httpapi: the report's reader is gone")

// showReport is GET /regulatory/report. Before the first records an error has a status code of its
// own. After that an error can only end the connection, without the last chunk, so that the answer
// does not look whole.
func (x *exchange) showReport() problem {
	if p := x.admin(); p.status != 0 {
		return p
	}
	if x.m.Report == nil {
		return problemRoute
	}
	var from, to uint64
	if p := x.eachParameter(func(name string, value []byte) (ok bool) {
		switch name {
		case "fromSeq":
			from, ok = number(value, 1, 1<<63-1)
		case "toSeq":
			to, ok = number(value, 1, 1<<63-1)
		}
		return ok
	}); p.status != 0 {
		return p
	}
	first, last, err := x.m.Report.Clip(from, to)
	switch {
	case errors.Is(err, audit.ErrRange):
		return badParameter("fromSeq", "fromSeq is after toSeq, or after the last sequence that there is")
	case err != nil:
		return x.m.failed(err)
	case !x.ctx.Request.Header.IsHTTP11():
		return problemChunks
	}
	head := &x.ctx.Request.Header
	press := &reportPress{
		source: x.m.Report, from: first, to: last, started: make(chan error, 1),
		lines:  prefer(head, "Accept", contentJSON, contentNDJSON) == 1,
		coding: prefer(head, "Accept-Encoding", "zstd", "gzip", "identity"),
	}
	stream := x.m.stream(press, x.ctx)
	if err := <-press.started; err != nil {
		if err := stream.Close(); err != nil {
			return x.m.failed(err)
		}
		if errors.Is(err, audit.ErrBusy) {
			return problemReports
		}
		return x.m.failed(err)
	}
	response := &x.ctx.Response
	response.SetStatusCode(200)
	response.Header.SetContentType(contentJSON)
	if press.lines {
		response.Header.SetContentType(contentNDJSON)
	}
	if press.coding == codingZstd || press.coding == codingGzip {
		response.Header.Set("Content-Encoding", codings[press.coding])
	}
	response.Header.Set("Vary", "Accept, Accept-Encoding")
	response.Header.Set(headerReportFrom, itoa(first))
	response.Header.Set(headerReportTo, itoa(last))
	for _, name := range []string{headerReportCount, headerReportSHA256} {
		if err := response.Header.AddTrailer(name); err != nil {
			panic("httpapi: a trailer may not have this name: " + name)
		}
	}
	response.ImmediateHeaderFlush = true // a compressor may hold the first records back for long
	response.SetBodyStream(stream, -1)
	return problem{}
}

// The codings by their index among the offers of showReport.
const (
	codingZstd = iota
	codingGzip
)

var codings = [...]string{codingZstd: "zstd", codingGzip: "gzip"}

// reportPress writes one report into a pipe. run has a goroutine of its own, because the reporter
// pushes the report and the HTTP library pulls an answer's body.
type reportPress struct {
	source   Reporter
	from, to uint64
	lines    bool       // one record per line instead of one object
	coding   int        // index among the codings; any other value: none
	started  chan error // nil with the first records, or the error that prevents them
	total    audit.Total

	begun bool
	text  []byte // one chunk as an array's elements
}

// run writes the report to w and, when it is whole, its end.
func (p *reportPress) run(ctx context.Context, w io.Writer) (err error) {
	out := io.WriteCloser(plain{w})
	switch p.coding {
	case codingZstd:
		// One goroutine and a small window: they compress a report well enough, and the memory must not
		// depend on the length of the report.
		out, err = zstd.NewWriter(w, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(256<<10))
	case codingGzip:
		out = gzip.NewWriter(w)
	}
	if err != nil {
		return fmt.Errorf("httpapi: compress report: %w", err)
	}
	total, err := p.source.Write(ctx, p.from, p.to, func(records []byte, _ int) error {
		if err := p.begin(out); err != nil {
			return err
		}
		if !p.lines {
			records = p.elements(records)
		}
		_, err := out.Write(records)
		return err
	})
	if err != nil {
		return err
	}
	p.total = total
	if err := p.begin(out); err != nil {
		return err
	}
	if !p.lines {
		b := strconv.AppendUint([]byte(`],"count":`), total.Count, 10)
		b = append(b, `,"sha256":"`...)
		b = append(hex.AppendEncode(b, total.SHA256[:]), `"}`...)
		if _, err := out.Write(b); err != nil {
			return err
		}
	}
	return out.Close()
}

// begin reports that the report has begun and writes the text before the records.
func (p *reportPress) begin(out io.Writer) error {
	if p.begun {
		return nil
	}
	p.begun = true
	p.started <- nil
	if p.lines {
		return nil
	}
	b := strconv.AppendUint([]byte(`{"fromSeq":`), p.from, 10)
	b = append(b, `,"toSeq":`...)
	b = strconv.AppendUint(b, p.to, 10)
	b = append(b, `,"seed":`...)
	b = append(b, bytes.TrimSpace(p.source.Genesis())...)
	b = append(b, `,"records":[`...)
	_, err := out.Write(b)
	return err
}

// elements turns lines of JSON into the next elements of an array.
func (p *reportPress) elements(lines []byte) []byte {
	first := p.text == nil
	p.text = p.text[:0]
	for line := range bytes.Lines(lines) {
		if !first {
			p.text = append(p.text, ',')
		}
		first = false
		p.text = append(p.text, bytes.TrimSuffix(line, []byte{'\n'})...)
	}
	return p.text
}

// plain is a writer without compression.
type plain struct{ io.Writer }

// Close implements io.Closer.
func (plain) Close() error { return nil }

// reportStream is the answer's body: the reading end of a report's pipe. The
// HTTP library reads and closes it on the connection's goroutine.
type reportStream struct {
	*io.PipeReader
	press  *reportPress
	ctx    *fasthttp.RequestCtx
	conn   net.Conn
	cancel context.CancelFunc
	ended  sync.WaitGroup
	leave  func() // ends the request's use of the service

	timeout time.Duration // of one write
}

// stream starts a report.
func (m *OrderMatcher) stream(p *reportPress, request *fasthttp.RequestCtx) *reportStream {
	ctx, cancel := context.WithCancel(m.lasting)
	reader, writer := io.Pipe()
	s := &reportStream{PipeReader: reader, press: p, ctx: request, conn: request.Conn(),
		cancel:  cancel,
		timeout: m.server.http.WriteTimeout, leave: holdStand(request)}
	m.server.streams.Add(1)
	// A client that does not read must not hold it up.
	context.AfterFunc(ctx, func() { reader.CloseWithError(context.Cause(ctx)) })
	s.ended.Go(func() {
		defer m.server.streams.Add(-1)
		err := errors.New("httpapi: the report panicked")
		defer func() {
			if cause := recover(); cause != nil {
				m.server.panics.Add(1)
				m.server.log.Error("httpapi: report panicked", "stack", string(debug.Stack()))
			}
			if err != nil && !p.begun {
				p.begun = true
				p.started <- err
			} else if err != nil && !errors.Is(err, errReaderGone) {
				m.server.log.Error("httpapi: report was cut", "fromSeq", p.from, "toSeq", p.to, "error", err)
			}
			writer.CloseWithError(err) // nil: end of file
		}()
		err = p.run(ctx, writer)
	})
	return s
}

// Read implements io.Reader. The library then writes what Read returns, with a time-out for that
// piece alone: a report may take longer than an answer may, a stalled reader may not.
func (s *reportStream) Read(b []byte) (int, error) {
	n, err := s.PipeReader.Read(b)
	if deadline := s.conn.SetWriteDeadline(time.Now().Add(s.timeout)); deadline != nil && err == nil {
		return n, deadline
	}
	if err == io.EOF {
		s.ctx.Response.Header.Set(headerReportCount, itoa(s.press.total.Count))
		s.ctx.Response.Header.Set(headerReportSHA256, hex.EncodeToString(s.press.total.SHA256[:]))
	}
	return n, err
}

// Close ends the report, whole or not, and waits until its goroutine has ended.
func (s *reportStream) Close() error {
	err := s.PipeReader.CloseWithError(errReaderGone)
	s.cancel()
	s.ended.Wait()
	s.leave()
	return err
}
