package httpapi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"time"

	"github.com/valyala/fasthttp"

	"posttrade/blotter/feed"
	"posttrade/journal"
)

const (
	contentEvents     = "text/event-stream"
	headerLastEventID = "Last-Event-ID"

	// feedOpens is how long a request for the feed may wait until the feed stands at the head.
	feedOpens = 10 * time.Second
	// feedCatches is how long a position that is not durable here yet is waited for.
	feedCatches = 2 * time.Second
	// feedMark is after how long without an event a mark is sent, and feedLook how often that and the
	// token are checked.
	feedMark = 5 * time.Second
	feedLook = time.Second
)

// feedRequest is a decoded GET /feed.
type feedRequest struct {
	// selection is what the topics ask for, narrowed to the accounts that the caller may see.
	selection feed.Selection
	start     feed.Start
	account   uint32
	asked     bool // for one account
}

// showFeed is GET /feed: the stream of what changes.
//
// The handler returns before the first event: from then on the stream runs as the body of the
// answer, on the same goroutine, and holds the service's relayBackend until it is closed. It has no
// place among the requests in flight.
func (x *exchange) showFeed() problem {
	if x.m.Feed == nil {
		return problemRoute
	}
	r, p := x.feedRequest()
	if p.status != 0 {
		return p
	}
	token, p := x.mayFollow(&r)
	switch {
	case p.status != 0:
		return p
	case !x.ctx.Request.Header.IsHTTP11():
		return badQuery("the feed is sent in chunks, which HTTP/1.0 does not have")
	}
	// A client without a token must not take the places of those that have one. Where tokens are not
	// needed, all clients are alike.
	r.start.Guest = x.m.Enforced && token == nil
	ahead := r.start.Given && r.start.At.InputSeq > x.m.Durable.Durable()
	if ahead || x.m.Feed.Applied() == 0 { // the feed has not reached the head
		end, p := x.m.waits.begin(!r.start.Guest)
		if p.status != 0 {
			return p
		}
		defer end()
	}
	reader, err := x.m.openFeed(&r)
	if err != nil {
		return x.feedProblem(err)
	}
	response := &x.ctx.Response
	response.SetStatusCode(200)
	response.Header.SetContentType(contentEvents)
	response.Header.Set("Cache-Control", "no-store")
	response.Header.Set("X-Accel-Buffering", "no")
	response.SetConnectionClose() // the connection ends with the stream
	response.ImmediateHeaderFlush = true
	response.SetBodyStream(x.m.feedStream(reader, x.ctx, token), -1)
	return problem{}
}

// feedRequest reads the query and the header. The header wins over fromSeq. Without both the stream
// begins at the durable head.
func (x *exchange) feedRequest() (r feedRequest, p problem) {
	var topics []byte
	var from, account uint64
	if p = x.eachParameter(func(name string, value []byte) (ok bool) {
		switch name {
		case "topics":
			topics, ok = value, true
		case "accountId":
			account, ok = number(value, 0, 1<<32-1)
			r.asked, r.account = ok, uint32(account)
		case "fromSeq":
			from, ok = number(value, 0, 1<<63-1)
			r.start = feed.Start{At: feed.After(from), Given: true, Snapshot: true}
		}
		return ok
	}); p.status != 0 {
		return r, p
	}
	if topics == nil {
		return r, badParameter("topics", "it is missing")
	}
	var wrong *feed.TopicError
	var err error
	switch r.selection, err = feed.ParseTopics(string(topics), x.m.Gate.Security); {
	case errors.As(err, &wrong) && wrong.Security != "":
		return r, problemSecurity([]byte(wrong.Security))
	case err != nil:
		return r, badParameter("topics", err.Error())
	}
	last, p := onlyHeader(x.ctx, headerLastEventID)
	if p.status != 0 {
		return r, p
	}
	if len(last) > 0 {
		at, snapshot, ok := feed.ParseID(string(last))
		if !ok {
			return r, badHeader(headerLastEventID, "it is not the id of an event")
		}
		// A connection may have ended between the snapshots of several books: they come again.
		r.start = feed.Start{At: at, Given: true, Snapshot: snapshot && r.selection.Books.Several()}
	}
	return r, problem{}
}

// mayFollow checks the caller's token where a topic asks for one, and narrows the selection to the
// accounts that the caller may see. token is what the stream depends on, a valid one also where no
// topic asks for it; nil: on none.
func (x *exchange) mayFollow(r *feedRequest) (token []byte, p problem) {
	topics := r.selection.Topics
	owned := topics&(feed.Orders|feed.Contracts) != 0
	switch {
	case topics&feed.Controls != 0:
		p = x.admin()
	case owned:
		p = x.admit()
	}
	if p.status != 0 {
		return nil, p
	}
	if owned || r.asked {
		accounts, p := x.accountScope(r.asked, r.account)
		if p.status != 0 && owned {
			return nil, p
		}
		slices.Sort(accounts)
		r.selection.Accounts = accounts
	}
	token = bearer(x.ctx.Request.Header.Peek("Authorization"))
	if topics&feed.Controls == 0 && !(owned && x.m.Enforced) { // it is not verified yet
		if _, err := x.m.Verifier.Verify(token); err != nil {
			return nil, problem{} // as without a token
		}
	}
	return bytes.Clone(token), problem{}
}

// openFeed opens a reader. A feed that has just begun has to reach the head first.
//
// Both waits end with the service. The caller closes the reader.
func (m *OrderMatcher) openFeed(r *feedRequest) (*feed.Reader, error) {
	ctx, cancel := context.WithTimeout(m.lasting, feedOpens)
	defer cancel()
	if err := m.Feed.Begin(ctx); err != nil {
		return nil, err
	}
	ctx, cancel = context.WithTimeout(m.lasting, feedCatches)
	defer cancel()
	return m.Feed.Open(ctx, r.selection, r.start)
}

// feedProblem is the answer to a request for which there is no stream.
func (x *exchange) feedProblem(err error) problem {
	switch {
	case errors.Is(err, feed.ErrBusy):
		return problemFeeds
	case errors.Is(err, feed.ErrBeyond):
		return problemNotYet
	case errors.Is(err, feed.ErrClosed), errors.Is(err, context.Canceled):
		return problemStopping
	}
	return x.m.failed(err)
}

var (
	problemFeeds = problem{status: 503, code: CodeBusy,
		detail: "as many readers of the feed as may be are connected, see feed.max-clients, or read " +
			"older history"}
	problemArchived = problem{status: 503, code: CodeArchiveNeeded,
		detail: "this part of the history was moved into an archive; see journal.archive-dir"}
	problemNotYet = problem{status: 503, code: CodeNotYet,
		detail: "the sequence that was asked for is not here yet"}
)

// feedStream is the body of a stream. The HTTP library has it write itself on the connection's
// goroutine, and closes it.
//
// The connection's goroutine owns it. It writes pieces that all readers share, and never changes
// them. The stream ends with an event gone when the server ends it, and without one when the client
// leaves or stalls.
type feedStream struct {
	m      *OrderMatcher
	reader *feed.Reader
	// conn is the connection itself, for deadlines and for writing past the library's buffer.
	conn  net.Conn
	token []byte // nil: the stream depends on none
	// ctx ends with the service: then the stream says goneStopping.
	ctx context.Context
	// leave ends the request's use of the service; see holdBackend. forget stops the call that hurries
	// the connection at the service's end.
	leave  func()
	forget func() bool

	tick    *time.Ticker
	sent    time.Time // when the last event was
	checked int64     // second in which the token was last valid
	began   bool      // something was sent: the reader's position can be resumed
	ended   bool      // nothing follows but the end
	rest    []byte    // of a piece that Read has returned in part
	own     [1][]byte // memory of marks
}

// Close must be called: it gives back the reader's place, the ticker and the relayBackend.
func (m *OrderMatcher) feedStream(r *feed.Reader, request *fasthttp.RequestCtx,
	token []byte) *feedStream {
	s := &feedStream{m: m, reader: r, conn: request.Conn(), token: token, ctx: m.lasting,
		leave: holdBackend(request), tick: time.NewTicker(feedLook), sent: time.Now(),
		checked: m.Clock() / 1000}
	m.server.streams.Add(1)
	// A client that does not read must not hold up the stop of the service.
	s.forget = context.AfterFunc(s.ctx, func() {
		if c, framed := s.conn.(*framedConn); framed {
			c.hurry()
		}
	})
	return s
}

// SupportsBodyWriteTo says that WriteTo gives the same as Read. The HTTP library then calls WriteTo
// where it would copy with Read.
func (s *feedStream) SupportsBodyWriteTo() bool { return true }

// WriteTo writes the stream until it ends.
//
// nil is returned at the stream's own end, which is a whole answer with its last chunk. An error
// ends the connection.
func (s *feedStream) WriteTo(w io.Writer) (n int64, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = s.panicked(cause)
		}
	}()
	for {
		piece := s.next()
		if len(piece) == 0 {
			return n, nil
		}
		if err := s.mayTake(); err != nil {
			return n, err
		}
		if err := s.write(w, piece); err != nil {
			return n, err
		}
		n += int64(lengthOf(piece))
	}
}

// write writes a piece as a chunk: past w, which has nothing in its buffer, where that is possible.
func (s *feedStream) write(w io.Writer, piece [][]byte) error {
	if c, framed := s.conn.(*framedConn); framed {
		return c.writeChunk(piece)
	}
	_, err := w.Write(bytes.Join(piece, nil))
	return err
}

// Read implements io.Reader.
//
// It is for a connection on which the library does not call WriteTo. It copies each piece.
func (s *feedStream) Read(b []byte) (n int, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = s.panicked(cause)
		}
	}()
	if len(s.rest) == 0 {
		if s.rest = bytes.Join(s.next(), nil); len(s.rest) == 0 {
			return 0, io.EOF
		}
	}
	n = copy(b, s.rest)
	s.rest = s.rest[n:]
	return n, s.mayTake()
}

var errFeedPanicked = errors.New("httpapi: the feed panicked")

// panicked counts a panic, logs the stack without the cause, which may hold an event's bytes, and
// returns the error that ends the connection.
func (s *feedStream) panicked(cause any) error {
	s.m.server.panicked("feed", cause)
	return errFeedPanicked
}

// mayTake gives the client time for the next piece alone: a stream has no end, a stalled reader
// has.
func (s *feedStream) mayTake() error {
	return s.conn.SetWriteDeadline(time.Now().Add(s.m.server.http.WriteTimeout))
}

// next waits for the next piece of the stream; it is empty at the end.
//
// It waits on the reader, and looks once a second whether the service ends, the token is still
// valid and a mark is due. After a failure of the token or of the reader it returns a last piece,
// and then none.
func (s *feedStream) next() [][]byte {
	for !s.ended {
		if s.ctx.Err() != nil {
			return s.gone(goneStopping, nil)
		}
		piece, err := s.reader.Next(s.ctx, s.tick.C)
		switch {
		case err != nil:
			return s.gone(goneReason(err), err)
		case !s.valid():
			return s.gone("TOKEN_EXPIRED", nil)
		case len(piece) > 0:
			s.sent, s.began = time.Now(), true
			return piece
		case time.Since(s.sent) >= feedMark:
			s.sent = time.Now()
			return s.mark()
		}
	}
	return nil
}

// valid checks the token once a second.
//
// A token that was valid when the stream began may expire or be revoked. In between events are
// still sent, for a second at most.
func (s *feedStream) valid() bool {
	second := s.m.Clock() / 1000
	if s.token == nil || second == s.checked {
		return true
	}
	s.checked = second
	_, err := s.m.Verifier.Verify(s.token)
	return err == nil
}

// mark says how far the stream is, when there is nothing else to say. Before the first piece it has
// no id: a client that resumed there would never get the books that the stream was to begin with.
func (s *feedStream) mark() [][]byte {
	at, b := s.reader.At(), s.own[0][:0]
	if s.began {
		b = append(feed.AppendID(append(b, "id: "...), at), '\n')
	}
	b = append(b, "event: mark\ndata: {\"sequence\":"...)
	s.own[0] = append(appendUint(b, at.InputSeq), "}\n\n"...)
	return s.own[:]
}

// gone says why the server ends the stream.
//
// Only a failure is logged: the other reasons are the client's business.
func (s *feedStream) gone(reason string, err error) [][]byte {
	s.ended = true
	if reason == goneFailed {
		s.m.server.log.Error("httpapi: feed failed", "error", err)
	}
	s.own[0] = fmt.Appendf(s.own[0][:0], "event: gone\ndata: {\"reason\":%q}\n\n", reason)
	return s.own[:]
}

// Reasons of a stream's end.
const (
	goneFailed   = "FAILED"
	goneStopping = "STOPPING"
)

// goneReason is the reason of a stream's end.
//
// The names are part of the interface: docs/feeds.md lists them, with TOKEN_EXPIRED.
func goneReason(err error) string {
	switch {
	case errors.Is(err, feed.ErrSlow):
		return "SLOW"
	case errors.Is(err, feed.ErrBusy):
		return "BUSY"
	case errors.Is(err, journal.ErrArchived):
		return string(CodeArchiveNeeded)
	case errors.Is(err, feed.ErrClosed), errors.Is(err, context.Canceled):
		return goneStopping
	}
	return goneFailed
}

// Close ends the stream. The HTTP library calls it once.
func (s *feedStream) Close() error {
	s.forget()
	s.tick.Stop()
	s.reader.Close()
	s.m.server.streams.Add(-1)
	s.leave()
	return nil
}
