package httpapi

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
)

// The forwarder's bounds beside its options.
const (
	dialTimeout      = 2 * time.Second  // to connect to another member, and the same again for TLS
	relayIdleTimeout = 30 * time.Second // below the server's own, so that the forwarder closes first
	maxWholeAnswer   = 64 << 10         // a larger one streams
	maxRelayHeader   = 64 << 10         // header block of an answer
)

// forwarder sends requests on to other members. It counts the bytes that were written, and so knows
// whether any of a request can have arrived: that decides between 503 and 504.
//
// One is made for each relay. Any goroutine uses it; what changes is atomic, a channel, or the
// transport's.
type forwarder struct {
	member string
	// transport keeps up to as many idle connections as there are slots. It has no time-out of its
	// own: exchangeToLeader has.
	transport http.Transport
	slots     chan struct{}   // a value for every request under way
	lasting   context.Context // ends with the service
	log       *slog.Logger
	after     func(time.Duration, func()) *time.Timer // time.AfterFunc; tests change it
	stall     time.Duration                           // between two pieces of a streamed answer
	// failing: the last attempt to connect failed, and it was logged
	failing atomic.Bool
	counts  relayCounts
}

// newForwarder makes a forwarder for most requests at a time. member is this member's name, which
// the requests carry. secured nil: the other members are reached without TLS.
func newForwarder(member string, secured *tls.Config, most int, lasting context.Context,
	log *slog.Logger) *forwarder {
	if secured != nil {
		secured = secured.Clone()
		secured.NextProtos = nil // HTTP/1.1 only: a connection has one request at a time
	}
	f := &forwarder{member: member, slots: make(chan struct{}, most), lasting: lasting,
		after: time.AfterFunc, stall: writeTimeout, log: log}
	f.transport = http.Transport{
		DialContext: f.dial, TLSClientConfig: secured, TLSHandshakeTimeout: dialTimeout,
		MaxIdleConnsPerHost: most, IdleConnTimeout: relayIdleTimeout,
		DisableCompression: true, MaxResponseHeaderBytes: maxRelayHeader,
	}
	return f
}

// close ends the idle connections. Requests under way go on.
func (f *forwarder) close() { f.transport.CloseIdleConnections() }

// dial connects to a member within dialTimeout. Each connection is metered, below TLS if there is
// TLS.
func (f *forwarder) dial(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	var d net.Dialer
	conn, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &meteredConn{Conn: conn}, nil
}

// exchangeToLeader is one request to the leader, and its answer.
//
// It belongs to the handler's goroutine, and to the answer's body when that streams. gotConn runs
// within RoundTrip, before the request is written.
type exchangeToLeader struct {
	f      *forwarder
	ctx    *fasthttp.RequestCtx
	header http.Header
	body   []byte
	again  bool // it was sent once, and that member did not sequence it

	upstream context.Context // of the request; ends with end, or with the stream
	cancel   context.CancelFunc
	timer    *time.Timer // calls cancel when the answer does not come
	streams  bool        // the answer's body keeps this exchange in use

	conn *meteredConn // that the request was written to; nil: it got none
	base int64        // bytes that were written to conn before
}

// begin takes a slot and copies the request: the transport may read the copy after the answer. The
// caller must call end when the handler ends.
//
// It does not wait for a slot: 429. The request's time begins here. Requests through the whole
// history and the feed, which has no end, end with the service; all others may finish.
func (f *forwarder) begin(ctx *fasthttp.RequestCtx, at route,
	timeout time.Duration) (*exchangeToLeader, problem) {
	select {
	case f.slots <- struct{}{}:
	default:
		f.counts.busy.Add(1)
		return nil, problemInflight
	}
	header := endToEnd(&ctx.Request.Header)
	header[headerRelayed], header[headerRelayedFor] = []string{f.member}, []string{hostOf(ctx)}
	x := &exchangeToLeader{f: f, ctx: ctx, header: header, body: bytes.Clone(ctx.Request.Body())}
	parent := context.Background()
	switch {
	case lastingRoute(at):
		parent, timeout = f.lasting, max(timeout, lastingTimeout+writeTimeout)
	case at == routeFeed:
		parent = f.lasting
	}
	x.upstream, x.cancel = context.WithCancel(parent)
	x.timer = f.after(timeout, x.cancel)
	return x, problem{}
}

// end gives the slot back, unless the answer's body still needs it.
func (x *exchangeToLeader) end() {
	if !x.streams {
		x.release()
	}
}

// release ends what the request holds, once: by end, or by the body's Close.
func (x *exchangeToLeader) release() {
	x.timer.Stop()
	x.cancel()
	<-x.f.slots
}

// ask sends the request to a member and copies its answer. True: that member does not lead and has
// sequenced nothing, so the request may go to another member. ask returns true at most once.
//
// In every other case the answer of ctx is made when it returns: that member's own, or a problem of
// this one. The transport may try a second connection by itself, when the first was closed before
// any byte of the request was written.
func (x *exchangeToLeader) ask(member, address string) (again bool) {
	x.conn, x.base = nil, 0
	response, err := x.f.transport.RoundTrip(x.request(address))
	if err != nil {
		x.failed(member, err)
		return false
	}
	x.f.reached(member)
	if response.StatusCode == http.StatusServiceUnavailable && !x.again {
		if x.again = refusedByMember(response); x.again {
			x.f.counts.again.Add(1)
			return true
		}
	}
	x.pass(member, response)
	return false
}

// request builds the request that is sent.
//
// Method, target, headers and body are those that came; hop-by-hop headers are left out. GetBody
// lets the transport use another connection while nothing was written.
func (x *exchangeToLeader) request(address string) *http.Request {
	head := &x.ctx.Request.Header
	path, query, queried := bytes.Cut(head.RequestURI(), []byte("?"))
	scheme := "http"
	if x.f.transport.TLSClientConfig != nil {
		scheme = "https"
	}
	r := &http.Request{
		Method: string(head.Method()), Host: string(head.Host()), Header: x.header,
		URL: &url.URL{Scheme: scheme, Host: address, Path: string(path), RawQuery: string(query),
			ForceQuery: queried && len(query) == 0},
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}
	if len(x.body) > 0 {
		r.ContentLength = int64(len(x.body))
		r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(x.body)), nil }
		r.Body = io.NopCloser(bytes.NewReader(x.body))
	}
	return r.WithContext(httptrace.WithClientTrace(x.upstream,
		&httptrace.ClientTrace{GotConn: x.gotConn}))
}

// gotConn notes the connection that the request will be written to.
//
// The count at that moment is the base: bytes above it are this request's. A connection has one
// request at a time.
func (x *exchangeToLeader) gotConn(info httptrace.GotConnInfo) {
	conn := info.Conn
	if secured, ok := conn.(*tls.Conn); ok {
		conn = secured.NetConn()
	}
	x.conn = conn.(*meteredConn)
	x.base = x.conn.written()
}

// failed answers a request whose sending failed. If no byte of it was written it was not sequenced,
// and now never will be.
//
//	no connection, or no byte above base   503 "sequenced":false: after seal none will follow
//	at least one byte                      504: the leader may have decided
//
// Of several failures in a row it logs the first alone; see reached.
func (x *exchangeToLeader) failed(member string, cause error) {
	if x.conn != nil && x.conn.seal() != x.base {
		x.lost()
		return
	}
	x.f.counts.unreached.Add(1)
	if !x.f.failing.Swap(true) {
		x.f.log.Warn("httpapi: the leader cannot be reached", "leader", member, "error", cause)
	}
	problemNoLeader.writeLeader(x.ctx, member)
}

// lost answers a request whose outcome is unknown.
func (x *exchangeToLeader) lost() {
	x.f.counts.lost.Add(1)
	problemRelayLost.write(x.ctx)
}

// reached notes that the leader answers.
func (f *forwarder) reached(member string) {
	if f.failing.Load() && f.failing.Swap(false) {
		f.log.Info("httpapi: the leader can be reached again", "leader", member)
	}
}

// refusedByMember reports that a 503 says: not sequenced, because this member does not lead. It
// reads the body and puts it back for the next reader.
//
// Only that code with "sequenced":false counts. Any other 503 is the leader's answer and is passed
// on.
func refusedByMember(response *http.Response) bool {
	text, err := io.ReadAll(io.LimitReader(response.Body, maxWholeAnswer))
	rest := response.Body
	response.Body = &partlyRead{Reader: io.MultiReader(bytes.NewReader(text), rest), Closer: rest}
	var said struct {
		Code      Code  `json:"code"`
		Sequenced *bool `json:"sequenced"`
	}
	if err != nil || json.Unmarshal(text, &said) != nil {
		return false
	}
	if said.Code != CodeNotLeader || said.Sequenced == nil || *said.Sequenced {
		return false
	}
	return rest.Close() == nil
}

// partlyRead is a body of which something was read and put back.
type partlyRead struct {
	io.Reader
	io.Closer
}

// pass copies another member's answer, unchanged.
//
// An answer of known length up to maxWholeAnswer is read before anything is sent, so that one that
// breaks off can still be a 504. A longer one streams.
func (x *exchangeToLeader) pass(member string, response *http.Response) {
	answer := &x.ctx.Response
	answer.SetStatusCode(response.StatusCode)
	passHeaders(answer, response.Header)
	if response.Header.Get(headerMember) == "" {
		answer.Header.Set(headerMember, member)
	}
	switch {
	case response.ContentLength < 0 && !x.ctx.Request.Header.IsHTTP11():
		x.refuseChunks(response)
		return
	case response.ContentLength < 0 || response.ContentLength > maxWholeAnswer:
		x.stream(response)
		return
	}
	body, err := io.ReadAll(response.Body)
	if err = errors.Join(err, response.Body.Close()); err != nil {
		x.lost()
		return
	}
	x.f.counts.answered.Add(1)
	answer.SetBodyRaw(body)
}

// refuseChunks answers a client that cannot read the chunks of an answer of unknown length. The
// relay asks the leader with HTTP/1.1, so the leader cannot know. Only reads have such answers.
func (x *exchangeToLeader) refuseChunks(response *http.Response) {
	_ = response.Body.Close() // unread: the leader gives up the answer
	x.f.counts.answered.Add(1)
	problemChunks.write(x.ctx)
}

// passHeaders takes over the headers that are not of one connection.
//
// Headers that Connection names are of one connection too (RFC 9110 section 7.6.1).
func passHeaders(answer *fasthttp.Response, from http.Header) {
	named := from.Get("Connection")
	for name, values := range from {
		if hopByHop(name) || listed(named, name) {
			continue
		}
		for _, value := range values {
			answer.Header.Add(name, value)
		}
	}
}

// stream makes the other member's body the body of this answer, piece by piece.
//
// From here the slot belongs to the body, and the time-out to each piece.
func (x *exchangeToLeader) stream(response *http.Response) {
	x.f.counts.answered.Add(1)
	x.streams = true
	answer := &x.ctx.Response
	for name := range response.Trailer {
		if answer.Header.AddTrailer(name) != nil {
			delete(response.Trailer, name) // not allowed in a trailer
		}
	}
	answer.ImmediateHeaderFlush = true
	if response.Close {
		answer.SetConnectionClose() // as the leader's connection does
	}
	answer.SetBodyStream(&relayedBody{x: x, response: response, conn: x.ctx.Conn()},
		int(response.ContentLength))
}

// relayedBody is the body of an answer that is passed on. The HTTP library reads and closes it on
// the connection's goroutine. If it breaks off, this answer breaks off too, so that it never looks
// whole.
type relayedBody struct {
	x        *exchangeToLeader
	response *http.Response
	conn     net.Conn
}

// Read implements io.Reader. Every piece has a time-out of its own, on both sides.
//
// The leader's trailers become this answer's when its body ends.
func (b *relayedBody) Read(p []byte) (int, error) {
	b.x.timer.Reset(b.x.f.stall)
	n, err := b.response.Body.Read(p)
	if deadline := b.conn.SetWriteDeadline(
		time.Now().Add(b.x.f.stall)); deadline != nil && err == nil {
		return n, deadline
	}
	if err == io.EOF {
		for name, values := range b.response.Trailer {
			b.x.ctx.Response.Header.Set(name, strings.Join(values, ", "))
		}
	}
	return n, err
}

// Close ends the answer, whole or not.
//
// The leader's connection is used again only when its body was read to the end.
func (b *relayedBody) Close() error {
	b.x.cancel()
	err := b.response.Body.Close()
	b.x.release()
	return err
}
