package quorum

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
)

// Errors of the members' port.
var (
	// ErrPlain: members may talk without TLS only where no other machine can listen.
	ErrPlain = errors.New("members on other machines need TLS")
	// ErrQuestion: a question or an answer that is longer than it may be.
	ErrQuestion = errors.New("question too long")
	// ErrAnswer: the other member has refused the question; the text is its reason.
	ErrAnswer = errors.New("member answered with an error")
)

// The first byte of a connection says what it is for. Behind that of a raft stream comes the server
// that is meant (length u8, text). The other side sends the same byte back when it is that server
// and has let the stream in.
//
// The bytes of the two kinds, > from the dialling side:
//
//	stream     > R, length u8, server id     < R     then the library's own, both ways
//	question   > Q, length u32, question     < 0 or 1, length u32, answer     then it is closed
const (
	wireRaft     = 'R'
	wireQuestion = 'Q'
)

// The first byte of an answer.
const (
	wireRefused = 0
	wireOK      = 1
)

// Limits of the members' port.
const (
	wireMaxBytes   = 1 << 20 // of a question and of an answer
	wireMaxPending = 64      // connections that have not said yet what they are for
	// for the first bytes of a connection, a question, an answer
	wireTimeout = 5 * time.Second
)

// wireOptions are the options of openWire and newWire.
type wireOptions struct {
	TLS *tls.Config // MemberTLS; nil = plain, on loopback addresses only
	// any goroutine; from is the address of the asker, without its port; nil refuses every question
	Answer func(from string, request []byte) ([]byte, error)

	timeout time.Duration // tests
}

// wire is the one port of a member: the raft library's streams and the members' own questions
// arrive at it, told apart by their first byte.
//
// One goroutine accepts and does nothing else. A goroutine for each connection reads its first
// bytes, within a time limit. The number of such connections is limited too: a slow connection is
// closed for a later one, so neither a silent nor a hostile peer keeps the others out. Close ends
// every connection, raft's too.
type wire struct {
	address  string // as configured, with the port that is really used
	o        wireOptions
	listener net.Listener
	streams  chan net.Conn // raft streams on their way to Accept
	stop     context.Context
	cancel   context.CancelFunc

	// the server that raft streams must be meant for; nil = none yet
	self atomic.Pointer[raft.ServerID]

	mu     sync.Mutex
	closed bool
	conns  map[*wireConn]struct{} // every open connection
	// those that have not said what they are for, oldest first
	pending []*wireConn
	serving sync.WaitGroup
}

var _ raft.StreamLayer = (*wire)(nil)

// openWire listens on addr, the address by which the other members know this one. It takes
// questions at once, and raft streams after Serve. ErrPlain: no TLS for an address that other
// machines can reach.
func openWire(addr string, o wireOptions) (*wire, error) {
	if err := wireAllows(o.TLS, addr); err != nil {
		return nil, fmt.Errorf("quorum: listen address=%s: %w", addr, err)
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("quorum: listen address=%s: %w", addr, err)
	}
	w := newWire(o)
	w.listener, w.address = l, wireAddress(addr, l.Addr())
	w.serving.Go(w.acceptLoop)
	return w, nil
}

// newWire is a wire that accepts no connection: it can only ask.
func newWire(o wireOptions) *wire {
	if o.timeout == 0 {
		o.timeout = wireTimeout
	}
	w := &wire{o: o, streams: make(chan net.Conn), conns: make(map[*wireConn]struct{})}
	w.stop, w.cancel = context.WithCancel(context.Background())
	return w
}

// wireAddress is the configured host with the port that the system gave, if the configuration left
// it to the system.
func wireAddress(configured string, actual net.Addr) string {
	host, _, err := net.SplitHostPort(configured)
	_, port, err2 := net.SplitHostPort(actual.String())
	if err != nil || err2 != nil {
		return configured
	}
	return net.JoinHostPort(host, port)
}

// wireAllows refuses connections without TLS to another machine.
func wireAllows(config *tls.Config, address string) error {
	if config == nil && !IsLoopback(address) {
		return ErrPlain
	}
	return nil
}

// IsLoopback reports whether address, a host with or without a port, can only be reached from this
// machine: a loopback IP address or the name localhost, in any case. It decides on the text alone
// and looks no name up.
func IsLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = address
	}
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// acceptLoop takes connections and hands each to a goroutine of its own, until Close. A failed
// accept is tried again, after a pause that doubles up to a second.
func (w *wire) acceptLoop() {
	wait := time.Millisecond
	for {
		conn, err := w.listener.Accept()
		if err == nil {
			wait = time.Millisecond
			w.admit(conn)
			continue
		}
		// Too many open files, most likely: that passes.
		select {
		case <-w.stop.Done():
			return
		case <-time.After(wait):
			wait = min(2*wait, time.Second)
		}
	}
}

// admit makes a connection pending. When there are too many, the one that has been
// silent longest goes.
func (w *wire) admit(raw net.Conn) {
	conn := raw
	if w.o.TLS != nil {
		conn = tls.Server(raw, w.o.TLS)
	}
	c := w.track(raw, conn)
	if c == nil {
		return
	}
	w.mu.Lock()
	w.pending = append(w.pending, c)
	var oldest *wireConn
	if len(w.pending) > wireMaxPending {
		oldest = w.pending[0]
	}
	w.mu.Unlock()
	if oldest != nil {
		_ = oldest.Close()
	}
	w.serving.Go(func() { w.serve(c) })
}

// track records an open connection for Close. When Close has come already, track closes the
// connection and returns nil.
func (w *wire) track(raw, conn net.Conn) *wireConn {
	c := &wireConn{Conn: conn, raw: raw, wire: w}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		_ = raw.Close()
		return nil
	}
	w.conns[c] = struct{}{}
	return c
}

// settled removes the connection from the pending ones.
func (w *wire) settled(c *wireConn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, p := range w.pending {
		if p == c {
			w.pending = append(w.pending[:i], w.pending[i+1:]...)
			return
		}
	}
}

// serve finds out what a connection is for, and does it. A peer that does not keep to the protocol
// is closed without an answer: it is no member. With TLS the handshake happens in the first read,
// within the same deadline.
func (w *wire) serve(c *wireConn) {
	var kind [1]byte
	err := c.SetDeadline(time.Now().Add(w.o.timeout))
	if err == nil {
		_, err = io.ReadFull(c, kind[:])
	}
	switch {
	case err == nil && kind[0] == wireRaft && w.meant(c):
		w.deliver(c)
	case err == nil && kind[0] == wireQuestion:
		w.answer(c)
	default:
		_ = c.Close()
	}
}

// meant reads which server a raft stream is for, and reports whether it is this one.
func (w *wire) meant(c *wireConn) bool {
	var text [256]byte
	if _, err := io.ReadFull(c, text[:1]); err != nil {
		return false
	}
	id := text[1 : 1+int(text[0])]
	if _, err := io.ReadFull(c, id); err != nil {
		return false
	}
	self := w.self.Load()
	return self != nil && string(id) == string(*self)
}

// deliver confirms a raft stream and hands it to Accept. From here on the stream has no deadline:
// the library sets its own.
func (w *wire) deliver(c *wireConn) {
	_, err := c.Write([]byte{wireRaft})
	if err == nil {
		err = c.SetDeadline(time.Time{})
	}
	w.settled(c)
	if err != nil {
		_ = c.Close()
		return
	}
	select {
	case w.streams <- c:
	case <-w.stop.Done():
		_ = c.Close()
	}
}

// answer reads one question and answers it, then closes the connection. The answering itself has no
// time limit; the reading and the writing have one each.
func (w *wire) answer(c *wireConn) {
	defer func() { _ = c.Close() }()
	request, err := readFrame(c)
	w.settled(c)
	if err != nil {
		return
	}
	reply := []byte{wireOK}
	body, err := w.ask(peerOf(c), request)
	if err == nil && len(body) > wireMaxBytes {
		err = fmt.Errorf("answer of %d bytes: %w", len(body), ErrQuestion)
	}
	if err != nil {
		reply[0], body = wireRefused, []byte(err.Error())
		body = body[:min(len(body), wireMaxBytes)]
	}
	if c.SetDeadline(time.Now().Add(w.o.timeout)) == nil {
		_, _ = c.Write(appendFrame(reply, body)) // a peer that has gone away asks again
	}
}

// ask is Answer, or a refusal when there is none.
func (w *wire) ask(from string, request []byte) ([]byte, error) {
	if w.o.Answer == nil {
		return nil, errors.New("no answers here")
	}
	return w.o.Answer(from, request)
}

// peerOf is the address of a connection's other end, "" when it has none.
func peerOf(c net.Conn) string {
	if at, err := netip.ParseAddrPort(c.RemoteAddr().String()); err == nil {
		return at.Addr().Unmap().String()
	}
	return ""
}

// appendFrame appends the length of body, u32 little endian, and body.
func appendFrame(dst, body []byte) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(body)))
	return append(dst, body...)
}

// readFrame is the inverse of appendFrame. A length over wireMaxBytes is ErrQuestion, before any
// memory is taken for it.
func readFrame(r io.Reader) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint32(head[:])
	if n > wireMaxBytes {
		return nil, fmt.Errorf("%d bytes: %w", n, ErrQuestion)
	}
	body := make([]byte, n)
	_, err := io.ReadFull(r, body)
	return body, err
}

// Accept returns the next raft stream, or net.ErrClosed after Close. The library's goroutine.
func (w *wire) Accept() (net.Conn, error) {
	select {
	case c := <-w.streams:
		return c, nil
	case <-w.stop.Done():
		return nil, net.ErrClosed
	}
}

// Serve accepts raft streams that are meant for self; before that there are none.
func (w *wire) Serve(self raft.ServerID) { w.self.Store(&self) }

// Addr is the address by which the other members know this one: the configured
// host, not what it resolves to, because certificates are made out to it, and the
// server that Serve has named.
func (w *wire) Addr() net.Addr {
	if self := w.self.Load(); self != nil {
		return wireAddr(addressOf(w.address, *self))
	}
	return wireAddr(w.address)
}

type wireAddr string

func (wireAddr) Network() string  { return "tcp" }
func (a wireAddr) String() string { return string(a) }

// Close stops listening, closes every connection and waits for the answers under way. What Answer
// waits for must end first.
func (w *wire) Close() error {
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		return nil
	}
	w.closed = true
	conns := w.conns
	w.conns = nil
	w.mu.Unlock()

	w.cancel()
	var err error
	if w.listener != nil {
		err = w.listener.Close()
	}
	for c := range conns {
		_ = c.raw.Close() // at once: nothing more is sent on it
	}
	w.serving.Wait()
	if err != nil {
		return fmt.Errorf("quorum: close address=%s: %w", w.address, err)
	}
	return nil
}
