package httpapi

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
)

const (
	// smallBody is the length up to which a body is not counted: it is bounded by the
	// number of connections, and an order is never refused for the batches of others.
	smallBody = 4 << 10
	// bodyCost is what a byte of a larger body takes until it is answered: itself, what is
	// decoded from it, its commands with their answers, and the text of these.
	bodyCost = 8
	// keptBody is the largest buffer that a connection keeps from one request to the next.
	keptBody = 16 << 10

	// MinBodyMemory has room for one body of the largest size.
	MinBodyMemory = 2 * maxLargeBodyBytes * bodyCost

	// muchMemory is how much must have been in use before it is worth a collection, when
	// no body has come for restTime, to give it back.
	muchMemory = 8 << 20
	restTime   = 5 * time.Second
)

// BodyMemory bounds what the bodies of requests take, over all connections of all
// services that share it. A body is counted when its head says how long it is, before any
// of it is read, and given back when its connection waits for the next request.
type BodyMemory struct {
	most    int64
	used    atomic.Int64
	refused atomic.Uint64
	taken   atomic.Uint64 // bodies counted in, ever
	peak    atomic.Int64  // of used since the last collection

	mu   sync.Mutex
	rest *time.Timer // runs while something is to be given back; guarded by mu
	seen uint64      // taken, when it was started; guarded by mu
}

// NewBodyMemory returns a bound of most bytes, at least MinBodyMemory.
func NewBodyMemory(most int64) *BodyMemory { return &BodyMemory{most: max(most, MinBodyMemory)} }

// Metrics emits what is in use, and how often there was no room; see Metrics.More.
func (m *BodyMemory) Metrics(emit func(name, help string, counter bool, value float64,
	labels ...string)) {
	emit("svc_http_body_memory_bytes",
		"Memory that request bodies and what is made of them may take now.",
		false, float64(m.used.Load()))
	emit("svc_http_body_memory_refused_total",
		"Requests answered 503 BUSY because http.max-body-memory was used up.",
		true, float64(m.refused.Load()))
}

// take counts bytes in, false if there is no room for them.
func (m *BodyMemory) take(bytes int64) bool {
	used := m.used.Add(bytes)
	if used > m.most {
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

// giveBack counts them out.
func (m *BodyMemory) giveBack(bytes int64) {
	if m.used.Add(-bytes) == 0 && m.peak.Load() > muchMemory {
		m.mu.Lock()
		if m.rest == nil {
			m.restart()
		}
		m.mu.Unlock()
	}
}

// restart has collect look after a while. With mu held.
func (m *BodyMemory) restart() {
	m.seen = m.taken.Load()
	m.rest = time.AfterFunc(restTime, m.collect)
}

// collect gives what a crowd has left in pools to the collector, from where it goes back
// to the system bit by bit, when no body has come meanwhile: a collection costs the callers that
// trade. A pool forgets what it holds in the second one.
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

// forgetLargeBodies has the HTTP library keep no large buffer with an idle connection.
func forgetLargeBodies() { fasthttp.SetBodySizePoolLimit(keptBody, keptBody) }

// Share has the service's requests counted in m. Before Serve.
func (s *service) Share(m *BodyMemory) { s.server.bodies = m }

// reserve counts a body of so many bytes in, or what a chunk adds to one.
func (c *framedConn) reserve(bytes int64) fault {
	if c.bodies == nil || bytes <= smallBody {
		return faultNone
	}
	more := min(bytes, maxLargeBodyBytes)*bodyCost - c.held.Load()
	if more <= 0 {
		return faultNone
	}
	if !c.bodies.take(more) {
		return faultBusy
	}
	c.held.Add(more)
	if c.closed.Load() { // by a shutdown, which may have given back what was held until then
		c.release()
	}
	return faultNone
}

// release counts out what the connection holds.
func (c *framedConn) release() {
	if held := c.held.Swap(0); held > 0 {
		c.bodies.giveBack(held)
	}
}
