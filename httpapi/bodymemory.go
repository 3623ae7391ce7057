package httpapi

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"posttrade/matcher/gate"
	"posttrade/ring/metric"

	"github.com/valyala/fasthttp"
)

const (
	// smallBody is the length up to which a body is not counted. The number of connections bounds such
	// bodies, and the batches of other clients never cause the refusal of an order.
	smallBody = 4 << 10
	// bodyCost is the memory that one byte of a larger body takes until it is answered: the byte
	// itself, what is decoded from it, its commands with their answers, and the text of these.
	bodyCost = 8
	// keptBody is the largest buffer that a connection keeps from one request to the next.
	keptBody = 16 << 10

	// MinBodyMemory is enough for two bodies of the largest size, one of them without a token.
	MinBodyMemory = 2 * maxLargeBodyBytes * bodyCost

	// muchMemory is how much must have been in use to make a collection worth its cost. The collection
	// runs when no body has come for restTime.
	muchMemory = 8 << 20
	restTime   = 5 * time.Second
)

// BodyMemory bounds the memory that the bodies of requests take, over all connections of all
// services that share it. A body is counted when its head announces its length, before any of it is
// read: the HTTP library then allocates it whole. It is given back when its connection waits for
// the next request.
//
// Bodies of requests without a valid token may take a half. So they leave room for those of callers
// with one, also when they are announced and never come.
type BodyMemory struct {
	// most is constant. used is what is counted in now, in bytes of memory: each body byte times
	// bodyCost. open is the part of it without a valid token.
	most    int64
	used    atomic.Int64
	open    atomic.Int64
	refused atomic.Uint64
	taken   atomic.Uint64 // bodies counted in since the start
	peak    atomic.Int64  // largest value of used since the last collection

	mu   sync.Mutex
	rest *time.Timer // runs while there is memory to give back; guarded by mu
	seen uint64      // value of taken when rest was started; guarded by mu
}

// NewBodyMemory returns a bound of most bytes, at least MinBodyMemory.
//
// http.max-body-memory is the setting.
func NewBodyMemory(most int64) *BodyMemory { return &BodyMemory{most: max(most, MinBodyMemory)} }

// Metrics emits how much is in use, and how often there was no room; see Metrics.More.
func (m *BodyMemory) Metrics(emit metric.Emit) {
	emit("svc_http_body_memory_bytes",
		"Memory that request bodies and what is made of them may take now.",
		false, float64(m.used.Load()))
	emit("svc_http_body_memory_refused_total",
		"Requests answered 503 BUSY because http.max-body-memory was used up.",
		true, float64(m.refused.Load()))
}

// take counts bytes in, false if there is no room for them. open are those among them without a
// valid token. Any goroutine. It never waits: a request that finds no room is answered 503 at once,
// before its body is read.
func (m *BodyMemory) take(bytes, open int64) bool {
	used := m.used.Add(bytes)
	if m.open.Add(open) > m.most/2 && open > 0 || used > m.most {
		m.open.Add(-open)
		m.used.Add(-bytes)
		m.refused.Add(1)
		return false
	}
	m.taken.Add(1)
	for peak := m.peak.Load(); used > peak &&
		!m.peak.CompareAndSwap(peak, used); peak = m.peak.Load() {
	}
	return true
}

// giveBack counts the bytes out.
//
// bytes and open must have been taken. The goroutine that brings used to 0 after a burst starts the
// timer.
func (m *BodyMemory) giveBack(bytes, open int64) {
	m.open.Add(-open)
	if m.used.Add(-bytes) == 0 && m.peak.Load() > muchMemory {
		m.mu.Lock()
		if m.rest == nil {
			m.restart()
		}
		m.mu.Unlock()
	}
}

// restart makes collect run after restTime. The caller holds mu.
func (m *BodyMemory) restart() {
	m.seen = m.taken.Load()
	m.rest = time.AfterFunc(restTime, m.collect)
}

// collect runs the garbage collector when no body has come since the last look. It frees what pools
// hold after a burst; the runtime then returns that memory to the system in small steps. It waits
// for a pause because a collection delays the requests that trade. It collects twice: a pool drops
// what it holds in the second collection.
func (m *BodyMemory) collect() {
	m.mu.Lock()
	if m.used.Load() != 0 || m.taken.Load() != m.seen {
		m.restart()
		m.mu.Unlock()
		return
	}
	m.rest = nil
	m.mu.Unlock()
	m.peak.Store(0)
	runtime.GC()
	runtime.GC()
}

// forgetLargeBodies makes the HTTP library keep no large buffer with an idle connection. The limit
// is the library's and of the whole process: every server here sets the same.
func forgetLargeBodies() { fasthttp.SetBodySizePoolLimit(keptBody, keptBody) }

// Share makes m count the service's requests. Call it before Serve.
//
// Several services share one bound, because they share one process's memory.
func (s *service) Share(m *BodyMemory) { s.server.bodies = m }

// reserve counts in the bytes of a body, or the bytes that a chunk adds to one.
//
// A connection holds what its largest body needed, until the next request begins: the bytes of one
// message are not added up. Only the goroutine that reads calls it.
func (c *framedConn) reserve(bytes int64) fault {
	if c.bodies == nil || bytes <= smallBody {
		return faultNone
	}
	more := min(bytes, maxLargeBodyBytes)*bodyCost - c.held.Load()
	if more <= 0 {
		return faultNone
	}
	open := int64(0)
	if !c.known {
		open = more
	}
	if !c.bodies.take(more, open) {
		return faultBusy
	}
	c.held.Add(more)
	c.heldOpen.Add(open)
	if c.closed.Load() { // closed by a shutdown, which may have given back what was held until then
		c.release()
	}
	return faultNone
}

// release counts out what the connection holds.
//
// The goroutine that reads and Close may race; the swaps make sure that the bytes go back once.
func (c *framedConn) release() {
	if held, open := c.held.Swap(0), c.heldOpen.Swap(0); held > 0 || open > 0 {
		c.bodies.giveBack(held, open)
	}
}

// identify notes whether the message has a valid token, behind its head. Only a message that is, or
// may become, longer than smallBody needs it.
func (c *framedConn) identify() {
	token := bearer(c.auth)
	c.known = token != nil && c.bodies != nil && c.valid != nil && c.valid(token)
}

// keepAuth keeps the value of Authorization until the head ends: the bytes that were read belong to
// the HTTP library.
func (c *framedConn) keepAuth() {
	if c.auth != nil && !c.authKept {
		c.authRoom = append(c.authRoom[:0], c.auth...)
		c.auth, c.authKept = c.authRoom, true
	}
}

// validToken is serverConfig.valid for the tokens of a verifier.
func validToken(v *gate.Verifier) func(token []byte) bool {
	return func(token []byte) bool {
		if v == nil {
			return false
		}
		_, err := v.Verify(token)
		return err == nil
	}
}
