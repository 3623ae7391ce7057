package httpapi

import "bytes"

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
