package httpapi

import (
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/valyala/fasthttp"

	"posttrade/journal"
)

// The limits of every listener; those of the head are in framing.go.
const (
	// maxBodyBytes is for every endpoint but those of bodyLimit, which have maxLargeBodyBytes.
	maxBodyBytes = 64 << 10
	// maxLargeBodyBytes is for order batches, prices, closing marks and statements.
	maxLargeBodyBytes = 1 << 20

	// readTimeout is for a whole request, head and body; writeTimeout for an answer, and for each
	// piece of a streamed one; idleTimeout for the pause between two requests of a connection.
	readTimeout  = 10 * time.Second
	writeTimeout = 30 * time.Second
	idleTimeout  = 60 * time.Second

	// DefaultMaxInflight is http.max-inflight.
	DefaultMaxInflight = 4096

	// connectionsPerInflight bounds open connections: most of them idle.
	connectionsPerInflight = 16
)

// serverConfig are the settings of one hardened listener.
//
// The constructors fill it; after newServer it is constant.
type serverConfig struct {
	// handler runs on the connection's goroutine and may block. It must not use ctx, nor slices of it,
	// after the answer was sent.
	handler func(ctx *fasthttp.RequestCtx)
	// route finds the endpoint of a raw target, for counts, logs and body limits; nil: no endpoint is
	// known.
	route       func(target []byte) route
	bodyLimit   func(target []byte) int // nil: that of the endpoint
	valid       func(token []byte) bool // reports a valid token; nil: none is. See BodyMemory
	maxInflight int
	durability  []byte // value of X-Durability; nil: no such header
	member      []byte // value of X-Member; nil: no such header, this is no cluster
	log         *slog.Logger

	// patience is how long a shutdown waits, after its time is up, for handlers that still run: the
	// longest wait of a single handler. 0: DefaultAnswerTimeout.
	patience time.Duration
}

// server is a fasthttp server with all limits set. It refuses ambiguous framing (see framedConn),
// sends all errors as problem documents, and a panic of a handler does not end the process.
type server struct {
	serverConfig
	http   fasthttp.Server
	bodies *BodyMemory // nil: not bounded. Constant after Share

	stopping atomic.Bool // Shutdown was called: no new connection and no new request is admitted
	// inflight counts requests whose handler has not returned; an answer that streams counts in
	// streams, until it has ended.
	inflight atomic.Int64
	streams  atomic.Int64 // streamed answers under way: their handlers have returned
	// open counts the accepted connections that are not closed; silent holds those of them that have
	// sent nothing yet.
	open     atomic.Int64
	silent   silentConns
	panics   atomic.Uint64 // handlers that panicked
	refused  atomic.Uint64 // requests refused before a handler saw them
	requests requestCounts
	access   *slog.Logger // nil: requests are not logged. Constant after LogAccess
}

// newServer fills the defaults and makes the server; Serve starts it. The HTTP library's bounds on
// connections and heads are a second net: framedListener and framedConn refuse first.
func newServer(cfg serverConfig) *server {
	if cfg.maxInflight <= 0 {
		cfg.maxInflight = DefaultMaxInflight
	}
	if cfg.log == nil {
		cfg.log = slog.New(slog.DiscardHandler)
	}
	if cfg.patience <= 0 {
		cfg.patience = DefaultAnswerTimeout
	}
	if cfg.route == nil {
		cfg.route = func([]byte) route { return routeNone }
	}
	if cfg.bodyLimit == nil {
		cfg.bodyLimit = func(target []byte) int { return bodyLimit(cfg.route(target)) }
	}
	forgetLargeBodies()
	s := &server{serverConfig: cfg}
	s.http = fasthttp.Server{
		Handler:                      s.serve,
		ErrorHandler:                 s.readError,
		HeaderReceived:               s.headerReceived,
		Concurrency:                  s.maxConnections() + 64, // framedListener refuses first
		ReadBufferSize:               readBufferBytes,
		WriteBufferSize:              4096,
		ReadTimeout:                  readTimeout,
		WriteTimeout:                 writeTimeout,
		IdleTimeout:                  idleTimeout,
		MaxRequestBodySize:           maxBodyBytes,
		DisablePreParseMultipartForm: true,
		NoDefaultServerHeader:        true,
		NoDefaultContentType:         true,
		SecureErrorLogMessage:        true,
		CloseOnShutdown:              true,
		Logger:                       quietLogger{cfg.log},
	}
	return s
}

// maxConnections bounds memory and file descriptors: a keep-alive client holds a connection between
// two requests.
func (s *server) maxConnections() int { return s.maxInflight * connectionsPerInflight }

// Serve answers requests on ln until Shutdown, and then returns nil. Shutdown may be called before
// Serve.
func (s *server) Serve(ln net.Listener) error {
	return s.http.Serve(&framedListener{Listener: ln, server: s})
}

// headerReceived sets the body limit of a request from its raw target.
//
// A longer body is refused with 413 before it is read.
func (s *server) headerReceived(h *fasthttp.RequestHeader) fasthttp.RequestConfig {
	return fasthttp.RequestConfig{MaxRequestBodySize: s.bodyLimit(h.RequestURI())}
}

// serve runs the handler of one request within the limit of requests in flight. A request that
// comes while the server stops is counted before it is refused: when a goroutine has seen a count
// of zero after the stop began, no handler runs any more.
//
// Cost: two atomic adds of shared counters, and one add in answered.
func (s *server) serve(ctx *fasthttp.RequestCtx) {
	defer s.finish(ctx)
	if s.access != nil {
		ctx.SetUserValue(subjectKey{}, "")
	}
	inflight := s.inflight.Add(1)
	switch {
	case s.stopping.Load():
		s.problem(ctx, problemStopping)
		ctx.SetConnectionClose()
	case inflight > int64(s.maxInflight):
		s.problem(ctx, problemInflight)
	default:
		s.handler(ctx)
		s.mark(ctx)
	}
}

// answered counts a request, and logs it when requests are logged.
func (s *server) answered(ctx *fasthttp.RequestCtx) {
	r, status := s.route(ctx.Request.Header.RequestURI()), ctx.Response.StatusCode()
	s.requests.add(r, status)
	if s.access != nil {
		logAccess(s.access, ctx, r, status)
	}
}

// problem answers with p for a request that reaches no handler.
func (s *server) problem(ctx *fasthttp.RequestCtx, p problem) {
	p.write(ctx)
	s.mark(ctx)
}

// mark writes this member's name and durability mode on an answer. It leaves out the answer of
// another member, which has marked its own.
//
// Each answer says how durable the server's answers are, refusals too.
func (s *server) mark(ctx *fasthttp.RequestCtx) {
	if len(s.member) > 0 {
		if len(ctx.Response.Header.Peek(headerMember)) > 0 {
			return
		}
		ctx.Response.Header.SetCanonical(headerMemberBytes, s.member)
	}
	if len(s.durability) > 0 {
		ctx.Response.Header.SetCanonical(headerDurability, s.durability)
	}
}

// finish ends a request. It turns a panic into a 500, a count and a log line with the stack but
// nothing of the request.
//
// It runs after every request, good or bad. After a panic the state of the connection is not
// trusted: it is closed.
func (s *server) finish(ctx *fasthttp.RequestCtx) {
	s.inflight.Add(-1)
	cause := recover()
	if cause == nil {
		s.answered(ctx)
		return
	}
	s.panicked("handler", cause)
	s.problem(ctx, problemCrash)
	ctx.SetConnectionClose()
	s.answered(ctx)
}

// panicked counts a panic and logs its stack: that of the goroutine which began it.
//
// The value of a panic may hold a caller's bytes; a runtime error does not.
func (s *server) panicked(what string, cause any) {
	stack := debug.Stack()
	if p, ok := cause.(*journal.Panic); ok {
		cause, stack = p.Cause, p.Stack
	}
	said := "panic"
	if e, ok := cause.(runtime.Error); ok {
		said = e.Error()
	}
	s.panics.Add(1)
	s.log.Error("httpapi: "+what+" panicked", "cause", said, "stack", string(stack))
}

// readError answers a request that could not be read. The library closes the connection afterwards.
//
// It runs on the connection's goroutine in place of a handler, outside of the limit of requests in
// flight. The framing's own reason comes before the library's error. The connection lingers, so
// that the peer can read the answer.
func (s *server) readError(ctx *fasthttp.RequestCtx, err error) {
	s.refused.Add(1)
	p := problemFraming
	var small *fasthttp.ErrSmallBuffer
	var timeout net.Error
	conn, framed := ctx.Conn().(*framedConn)
	switch {
	case framed && conn.why == faultURI:
		p = problemURI
	case framed && conn.why == faultHeader, errors.As(err, &small):
		p = problemHeader
	case framed && conn.why == faultBusy:
		p = problemBusy
	case framed && conn.why == faultFraming:
	case framed && conn.why == faultBody, errors.Is(err, fasthttp.ErrBodyTooLarge):
		p = problemBody
	case errors.As(err, &timeout) && timeout.Timeout():
		p = problemTimeout
	}
	s.problem(ctx, p)
	s.answered(ctx)
	if framed {
		conn.linger.Store(true)
	}
}

// framedListener checks the framing of every connection it accepts and refuses connections beyond
// the limit.
type framedListener struct {
	net.Listener
	server *server
}

// acceptPause is how long accepting pauses when the process has no more file descriptors. Meanwhile
// requests on open connections go on and may free some.
const acceptPause = 20 * time.Millisecond

// Accept returns the next connection within the limit. A lack of file descriptors, or a peer that
// has gone away already, must not end the listener.
//
// The goroutine of Serve calls it; what it does per connection must not wait for the peer. Any
// other error of the listener ends Serve.
func (l *framedListener) Accept() (net.Conn, error) {
	for {
		if l.server.stopping.Load() {
			// The library closes the listeners it knows. It would serve a listener that it learns of after
			// Shutdown for ever.
			_ = l.Listener.Close()
			return nil, net.ErrClosed
		}
		c, err := l.Listener.Accept()
		switch {
		case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
			l.server.refused.Add(1)
			time.Sleep(acceptPause)
			continue
		case errors.Is(err, syscall.ECONNABORTED):
			continue
		case err != nil:
			return nil, err
		}
		if l.server.open.Add(1) <= int64(l.server.maxConnections()) {
			if framed := l.server.framed(c); framed != nil {
				return framed, nil
			}
			continue
		}
		l.server.open.Add(-1)
		l.server.refused.Add(1)
		refuseConnection(c)
	}
}

// refuseConnection closes a connection over the limit. It runs on the goroutine that accepts, so
// nothing here may wait for the peer. Writing an answer on a new connection does not wait. Over TLS
// the answer would need a handshake first, so there is none.
func refuseConnection(c net.Conn) {
	if _, secured := c.(*tls.Conn); !secured && c.SetDeadline(time.Now().Add(refuseTime)) == nil {
		_, _ = c.Write(tooManyConnections) // an error means that the peer is gone: nothing is left to do
	}
	_ = c.Close()
}

// refuseTime is how long the answer to a connection over the limit may take.
const refuseTime = time.Second

// tooManyConnections is the whole answer to a connection over the limit.
var tooManyConnections = func() []byte {
	body := append(problemInflight.append(nil), '}')
	head := "HTTP/1.1 429 Too Many Requests\r\nConnection: close\r\nRetry-After: 1\r\nContent-Type: " +
		contentProblem + "\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n"
	return append([]byte(head), body...)
}()

// quietLogger receives the log lines of the HTTP library: errors of connections. They can quote
// what a caller sent, so it logs only that there was one.
type quietLogger struct{ log *slog.Logger }

// Printf logs that the library reported an error.
func (l quietLogger) Printf(format string, _ ...any) {
	l.log.Debug("httpapi: connection error", "format", format)
}
