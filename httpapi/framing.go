package httpapi

import (
	"bytes"
	"crypto/tls"
	"errors"
	"net"
	"sync/atomic"
	"time"
)

// Sizes that the framing enforces before the HTTP library sees a byte.
const (
	// A longer URI is 414 and a larger header block 431. The block counts from behind the request line
	// up to and with the empty line.
	maxURIBytes         = 4 << 10
	maxHeaderBlockBytes = 8 << 10
	maxMethodBytes      = 16
	// maxRequestLineBytes is a method, a URI at its limit, the version and what separates them.
	maxRequestLineBytes = maxMethodBytes + 1 + maxURIBytes + len(" HTTP/1.1\r\n")
	// readBufferBytes holds the largest head that the framing lets through.
	readBufferBytes = maxRequestLineBytes + maxHeaderBlockBytes + 64
)

// fault says why the framing refused a connection.
//
// It is kept on the connection: readError, which the HTTP library calls with an error of its own,
// finds the answer's status by it.
type fault uint8

const (
	faultNone    fault = iota
	faultFraming       // 400
	faultURI           // 414
	faultHeader        // 431
	faultBusy          // 503: no memory for the body now
	faultBody          // 413
)

// errFraming is the error that the HTTP library reads after the framing has refused. It says
// nothing of the cause, which is in framedConn.why.
var errFraming = errors.New("httpapi: request framing refused")

// phase is the position of the framing within a message.
//
//	request line --> header --> body -----------> request line
//	                   |------> chunk size --> chunk --> chunk size ...
//	                   |             '--> final line --> request line
//	                   '------> request line (no body)
type phase uint8

const (
	phaseRequestLine phase = iota
	phaseHeader
	phaseBody       // left: bytes of a body with Content-Length
	phaseChunkSize  // the line in front of a chunk
	phaseChunk      // left: bytes of a chunk, its CRLF included
	phaseChunkFinal // the empty line behind the last chunk
)

// framedConn checks the framing of every request on its way from the socket to the HTTP library,
// which accepts some ambiguous forms. It follows messages byte by byte, pipelined ones too. At the
// first ambiguous byte it hands on the bytes before it and then reports errFraming: requests before
// the bad one are answered and nothing after it is read.
//
// It accepts less than RFC 9112 does, and only what means the same to every reader: CRLF only, one
// space twice in the request line, an origin-form target, HTTP/1.0 or 1.1, no folded header, no
// space before a colon, at most one of Content-Length and Transfer-Encoding and each once,
// `chunked` alone, no trailers, Authorization and Content-Type at most once. Chunk extensions are
// skipped. When a client announces a body that is too long and waits for "100 Continue", the server
// never asks for the body.
//
// One goroutine reads, writes, sets deadlines and closes. A server that shuts down also closes: an
// idle connection or, below this type, the socket of a silent one. So Close and hurry use only
// those fields of that goroutine that are constant or atomic.
type framedConn struct {
	net.Conn

	// The fields up to target follow one message. Only the goroutine that reads uses them; reset
	// clears them for the next message.
	phase   phase
	fresh   bool  // nothing of this message was read but an empty line
	hasCL   bool  // Content-Length seen
	hasTE   bool  // Transfer-Encoding seen
	hasAuth bool  // Authorization seen
	hasType bool  // Content-Type seen
	expects bool  // the body waits for "100 Continue"
	http10  bool  // the message is HTTP/1.0
	left    int64 // body or chunk bytes still to come, and the Content-Length while in the header
	block   int   // header bytes of this message so far; after the header, bytes of chunk extensions
	body    int64 // bytes of the chunks of this message so far

	// auth is the value of Authorization while in the header; until authKept is set it may point into
	// what was read. known: the message is one with a body that is counted, and has a valid token.
	auth, authRoom  []byte // authRoom is memory for it
	authKept, known bool

	// browser: a message of this connection had a header that only browsers send.
	browser bool

	target []byte                  // of the message
	limit  func(target []byte) int // the longest body that a target takes; nil: any

	carry []byte // the start of a line whose end has not arrived

	reading, writing deadline
	hurried          atomic.Bool // see hurry

	bodies *BodyMemory             // nil: bodies are not counted
	valid  func(token []byte) bool // nil: no token is
	// Bytes of bodies, and those of them without a valid token; writers: the goroutine that reads, and
	// Close.
	held, heldOpen atomic.Int64

	why    fault       // why Read has refused
	linger atomic.Bool // unread input may be waiting: see Close

	open   *atomic.Int64 // the listener's count of open connections; may be nil
	silent *silentConns  // where it is kept until it has sent a byte; nil when open is
	spoke  bool          // it is no longer kept there; used by the goroutine that reads
	closed atomic.Bool   // Close has run
}

// The caller sets the fields that it shares with the server before the connection is used.
func newFramedConn(c net.Conn) *framedConn {
	_, secured := c.(*tls.Conn)
	return &framedConn{Conn: c, fresh: true, writing: deadline{exact: secured}}
}

// Read reads from the socket and checks the bytes. See framedConn.
//
// After a fault every call returns errFraming. The bytes before the fault are returned first, so
// that complete requests before it are answered.
func (c *framedConn) Read(p []byte) (int, error) {
	if c.why != faultNone {
		return 0, errFraming
	}
	if c.held.Load() != 0 && c.phase == phaseRequestLine && len(c.carry) == 0 {
		c.release() // the library asks for the next request: the last one was answered
	}
	n, err := c.receive(p)
	if !c.spoke && c.silent != nil {
		c.silent.heard(c)
	}
	c.spoke = true
	if n == 0 {
		return n, err
	}
	if c.phase == phaseRequestLine {
		// The library sets the write deadline of an answer after a handler has returned. What it writes
		// before that, "100 Continue" or an error about an unreadable request, must not run into the last
		// answer's deadline.
		c.writing.due = time.Now().Add(writeTimeout)
	}
	good, why := c.follow(p[:n])
	if why == faultNone {
		if c.phase == phaseHeader {
			c.keepAuth()
		}
		return n, err
	}
	c.why = why
	if good == 0 {
		return 0, errFraming
	}
	return good, nil
}

// Close closes the connection. After an error answer it first lets the peer read that answer:
// closing a socket with unread input resets it, and a reset can overtake the answer.
//
// Any goroutine may call it, and more than once: the counts are given back once. Without linger it
// does not wait; with it at most lingerTime.
func (c *framedConn) Close() error {
	if !c.closed.Swap(true) && c.open != nil {
		c.open.Add(-1)
		c.silent.heard(c)
	}
	c.release()
	if c.linger.Swap(false) {
		if half, ok := c.Conn.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
			c.discard()
		}
	}
	return c.Conn.Close()
}

// How much a lingering close discards, and for how long.
const (
	lingerBytes = 4 << 20
	lingerTime  = time.Second
)

// discard reads what is still coming. It sets the socket's deadline itself: the field reading is
// not used any more.
func (c *framedConn) discard() {
	if c.Conn.SetReadDeadline(time.Now().Add(lingerTime)) != nil {
		return
	}
	var sink [4096]byte
	for total := 0; total < lingerBytes; {
		n, err := c.Conn.Read(sink[:])
		if err != nil {
			return
		}
		total += n
	}
}

// follow runs the state machine over b. It returns how many bytes may be handed on: all of them, or
// those before the fault and one more. The one more cannot complete the bad line; the library
// answers a message only after it has seen a byte of it.
//
// One byte of a line that is refused is overwritten with a question mark: its end, or its first
// byte when the line is too long. So the library never sees such a line whole. Bodies are counted
// and not looked at, but for the CRLF behind a chunk. Cost: one pass over the bytes of the head; a
// body in one step per read.
func (c *framedConn) follow(b []byte) (good int, why fault) {
	for at := 0; at < len(b); {
		switch c.phase {
		case phaseBody, phaseChunk:
			n := min(int64(len(b)-at), c.left)
			if c.phase == phaseChunk && !c.chunkEnds(b[at:at+int(n)]) {
				return at, faultFraming
			}
			at += int(n)
			c.left -= n
			if c.left == 0 {
				if c.phase == phaseBody {
					c.reset()
				} else {
					c.phase = phaseChunkSize
				}
			}
		default:
			end := bytes.IndexByte(b[at:], '\n')
			if end < 0 {
				if why = c.keep(b[at:]); why != faultNone {
					b[at] = '?'
					return at + 1, why
				}
				return len(b), faultNone
			}
			line := b[at : at+end+1]
			if len(c.carry) > 0 {
				if why = c.keep(line); why != faultNone {
					b[at] = '?'
					return at + 1, why
				}
				line = c.carry
			}
			if why = c.line(line); why != faultNone {
				b[at+end] = '?'
				return at + end + 1, why
			}
			c.carry = c.carry[:0]
			at += end + 1
		}
	}
	return len(b), faultNone
}

// chunkEnds checks the CRLF behind a chunk, in whatever pieces it arrives.
func (c *framedConn) chunkEnds(b []byte) bool {
	for i := max(0, int64(len(b))-2); i < int64(len(b)); i++ {
		switch c.left - i {
		case 2:
			if b[i] != '\r' {
				return false
			}
		case 1:
			if b[i] != '\n' {
				return false
			}
		}
	}
	return true
}

// keep remembers an unfinished line, up to what its place allows.
//
// The bound is checked before anything is kept, so the memory of a connection that sends no line
// end is bounded too.
func (c *framedConn) keep(b []byte) fault {
	switch c.phase {
	case phaseRequestLine:
		if len(c.carry)+len(b) > maxRequestLineBytes {
			return longRequestLine(c.carry, b)
		}
	case phaseHeader:
		if c.block+len(c.carry)+len(b) > maxHeaderBlockBytes {
			return faultHeader
		}
	default:
		if len(c.carry)+len(b) > maxChunkLine {
			return faultFraming
		}
	}
	c.carry = append(c.carry, b...)
	return faultNone
}

// reset prepares for the next message of the connection.
func (c *framedConn) reset() {
	c.phase, c.fresh, c.left, c.block, c.body = phaseRequestLine, true, 0, 0, 0
	c.hasCL, c.hasTE, c.hasAuth, c.hasType, c.http10, c.expects = false, false, false,
		false, false, false
	c.auth, c.authKept, c.known = nil, false, false
}
