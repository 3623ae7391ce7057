package httpapi

import (
	"errors"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/valyala/fasthttp"
)

// meteredConn counts the bytes that are written to a connection, and can stop further writes.
//
// It stands between the transport and the socket. A count taken while a write is under way includes
// that write: a byte that may have gone out is never missing.
type meteredConn struct {
	net.Conn
	mu     sync.Mutex // makes seal and the beginning of a Write exclusive
	bytes  int64      // handed to the connection, written or not
	sealed bool
}

// errSealed is the error of a Write on a sealed connection.
var errSealed = errors.New("httpapi: the request was given up")

// Write implements net.Conn.
//
// It is counted before it is tried, and the lock is not held during the write.
func (c *meteredConn) Write(b []byte) (int, error) {
	c.mu.Lock()
	if c.sealed {
		c.mu.Unlock()
		return 0, errSealed
	}
	c.bytes += int64(len(b))
	c.mu.Unlock()
	return c.Conn.Write(b)
}

// written returns how many bytes were handed to the connection so far.
func (c *meteredConn) written() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bytes
}

// seal returns what written does, and makes every later Write fail.
//
// A write that has begun goes on; it is in the count.
func (c *meteredConn) seal() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sealed = true
	return c.bytes
}

// relayCounts count requests to the leader by how they ended.
type relayCounts struct {
	answered  atomic.Uint64
	again     atomic.Uint64 // refused by a member that does not lead, and sent once more
	unreached atomic.Uint64 // 503: nothing went out
	lost      atomic.Uint64 // 504: the outcome is unknown
	busy      atomic.Uint64 // 429: too many are under way
}

// each emits every outcome, also those that are still 0: a monitoring system sees the series from
// the start.
func (c *relayCounts) each(emit func(outcome string, n uint64)) {
	emit("answered", c.answered.Load())
	emit("again", c.again.Load())
	emit("unreached", c.unreached.Load())
	emit("lost", c.lost.Load())
	emit("busy", c.busy.Load())
}

// hopByHop reports a header that concerns one connection. The name is in canonical form.
func hopByHop(name string) bool {
	switch name {
	case "Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection",
		"Te", "Trailer", "Transfer-Encoding", "Upgrade", "Content-Length", "Host", "Expect":
		return true
	}
	return false
}

// endToEnd copies the headers of a request that are for the server that answers it.
//
// The HTTP library has refused a request with a control character in a header's value.
//
// The copies outlive the request, whose bytes the HTTP library uses again. A request without a
// User-Agent goes on without one.
func endToEnd(head *fasthttp.RequestHeader) http.Header {
	h := make(http.Header)
	named := string(head.Peek("Connection"))
	for key, value := range head.All() {
		name := http.CanonicalHeaderKey(string(key))
		if hopByHop(name) || listed(named, name) {
			continue
		}
		h[wireHeaderName(name)] = append(h[wireHeaderName(name)], string(value))
	}
	if _, said := h["User-Agent"]; !said {
		h["User-Agent"] = []string{""} // otherwise the library sends its own name
	}
	return h
}

// wireHeaderName is the spelling of a header on the wire. The library repeats a POST by itself when
// it sees one of these headers, and the interface does not promise that. It does not recognise them
// in small letters.
func wireHeaderName(name string) string {
	switch name {
	case "Idempotency-Key", "X-Idempotency-Key":
		return strings.ToLower(name)
	}
	return name
}

// listed reports that a Connection header names a header.
func listed(connection, name string) bool {
	for option := range strings.SplitSeq(connection, ",") {
		if strings.EqualFold(strings.TrimSpace(option), name) {
			return true
		}
	}
	return false
}
