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

// longRequestLine distinguishes a URI that is too long from bytes that are no request line.
func longRequestLine(carry, rest []byte) fault {
	head := carry
	if len(head) < maxMethodBytes+1 {
		head = append(append([]byte(nil), carry...), rest[:min(len(rest), maxMethodBytes+1)]...)
	}
	if i := bytes.IndexByte(head, ' '); i > 0 && i <= maxMethodBytes && isToken(head[:i]) {
		return faultURI
	}
	return faultFraming
}

const (
	// maxChunkExtension bounds what this server has no use for.
	maxChunkExtension = 256
	// maxChunkLine is eight hexadecimal digits, an extension, and CRLF.
	maxChunkLine = 8 + maxChunkExtension + 2
)

// line checks one line, its LF included.
//
// A bare CR or LF ends no line here, while other readers may take it for an end: it is a fault.
func (c *framedConn) line(line []byte) fault {
	end := len(line) - 2
	if end < 0 || line[end] != '\r' || bytes.IndexByte(line[:end], '\r') >= 0 {
		return faultFraming
	}
	body := line[:end]
	switch c.phase {
	case phaseRequestLine:
		return c.requestLine(body)
	case phaseHeader:
		c.block += len(line)
		if c.block > maxHeaderBlockBytes {
			return faultHeader
		}
		if len(body) == 0 {
			return c.headEnds()
		}
		return c.headerLine(body)
	case phaseChunkSize:
		return c.chunkSize(body)
	default: // phaseChunkFinal: trailers are not accepted
		if len(body) != 0 {
			return faultFraming
		}
		c.reset()
		return faultNone
	}
}

// requestLine checks `METHOD SP /target SP HTTP/1.x`.
func (c *framedConn) requestLine(b []byte) fault {
	if len(b) == 0 && c.fresh { // RFC 9112 section 2.2: one empty line is ignored
		c.fresh = false
		return faultNone
	}
	i := bytes.IndexByte(b, ' ')
	if i <= 0 || i > maxMethodBytes || !isToken(b[:i]) {
		return faultFraming
	}
	rest := b[i+1:]
	j := bytes.IndexByte(rest, ' ')
	if j <= 0 || rest[0] != '/' {
		return faultFraming
	}
	for _, ch := range rest[:j] {
		if ch <= ' ' || ch >= 0x7f {
			return faultFraming
		}
	}
	if j > maxURIBytes {
		return faultURI
	}
	c.target = append(c.target[:0], rest[:j]...)
	version := rest[j+1:]
	if len(version) != 8 || string(version[:7]) != "HTTP/1." ||
		version[7] != '0' && version[7] != '1' {
		return faultFraming
	}
	c.http10 = version[7] == '0'
	c.phase = phaseHeader
	return faultNone
}

// headerLine checks `Name: value` and stores what decides the framing.
//
// It looks at the few names that decide the framing or the caller, by their length first; the HTTP
// library parses the rest.
func (c *framedConn) headerLine(b []byte) fault {
	colon := bytes.IndexByte(b, ':')
	if colon <= 0 || !isToken(b[:colon]) { // a folded line starts with a space: no token
		return faultFraming
	}
	name := b[:colon]
	switch len(name) {
	case len("expect"): // as long as origin
		c.expects = c.expects || equalFold(name, "expect")
		c.browser = c.browser || equalFold(name, "origin")
	case len("content-length"):
		if equalFold(name, "content-length") {
			n, ok := parseLength(trimSpace(b[colon+1:]))
			if !ok || c.hasCL {
				return faultFraming
			}
			c.hasCL, c.left = true, n
		}
		c.browser = c.browser || equalFold(name, "sec-fetch-site") // of that length
	case len("transfer-encoding"):
		if equalFold(name, "transfer-encoding") {
			if c.hasTE || !equalFold(trimSpace(b[colon+1:]), "chunked") {
				return faultFraming
			}
			c.hasTE = true
		}
	case len("authorization"):
		if equalFold(name, "authorization") {
			if c.hasAuth {
				return faultFraming
			}
			c.hasAuth, c.auth = true, trimSpace(b[colon+1:])
			if len(c.carry) > 0 { // where the next line will be
				c.keepAuth()
			}
		}
	case len("content-type"):
		if equalFold(name, "content-type") {
			if c.hasType {
				return faultFraming
			}
			c.hasType = true
		}
	}
	return faultNone
}

// headEnds decides how long the body is.
//
// Content-Length beside Transfer-Encoding is what request smuggling is made of: it is refused,
// where RFC 9112 section 6.3 also lets a server prefer the latter. A message without both has no
// body.
func (c *framedConn) headEnds() fault {
	switch {
	case c.hasCL && c.hasTE, c.hasTE && c.http10:
		return faultFraming
	case c.expects && c.hasCL && c.limit != nil && c.left > int64(c.limit(c.target)):
		return faultBody // the library would ask the client for it first
	case c.hasTE:
		c.identify()
		c.phase, c.block = phaseChunkSize, 0
	case c.hasCL && c.left > 0:
		if c.left > smallBody {
			c.identify()
		}
		if why := c.reserve(c.left); why != faultNone {
			return why
		}
		c.phase = phaseBody
	default:
		c.reset()
	}
	return faultNone
}

// chunkSize checks the line in front of a chunk: hexadecimal digits, and optionally an extension.
// All extensions of a message together are no longer than a header may be.
//
// Eight digits hold every length up to 4 GiB; the body limit of the endpoint is far below.
func (c *framedConn) chunkSize(b []byte) fault {
	if i := bytes.IndexByte(b, ';'); i >= 0 {
		for _, ch := range b[i:] {
			if ch < ' ' && ch != '\t' || ch == 0x7f {
				return faultFraming
			}
		}
		if c.block += len(b) - i; len(b)-i > maxChunkExtension || c.block > maxHeaderBlockBytes {
			return faultFraming
		}
		b = b[:i]
	}
	if len(b) == 0 || len(b) > 8 {
		return faultFraming
	}
	var n int64
	for _, ch := range b {
		var d byte
		switch {
		case ch >= '0' && ch <= '9':
			d = ch - '0'
		case ch|0x20 >= 'a' && ch|0x20 <= 'f':
			d = ch | 0x20 - 'a' + 10
		default:
			return faultFraming
		}
		n = n<<4 | int64(d)
	}
	if n == 0 {
		c.phase = phaseChunkFinal
		return faultNone
	}
	c.phase, c.left = phaseChunk, n+2
	c.body += n
	return c.reserve(c.body)
}

// reset prepares for the next message of the connection.
func (c *framedConn) reset() {
	c.phase, c.fresh, c.left, c.block, c.body = phaseRequestLine, true, 0, 0, 0
	c.hasCL, c.hasTE, c.hasAuth, c.hasType, c.http10, c.expects = false, false, false,
		false, false, false
	c.auth, c.authKept, c.known = nil, false, false
}
