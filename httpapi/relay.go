package httpapi

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"posttrade/ring/metric"

	"github.com/valyala/fasthttp"
)

// RelayOptions are the settings of a Relay.
//
// Cluster, Applied and Durable must be set; everything is constant afterwards.
type RelayOptions struct {
	// Cluster knows the members; Member must not change.
	Cluster    Cluster
	PathPrefix string // order-matcher.path-prefix, of that service
	Durability string // X-Durability; in a cluster quorum

	// What /health shows while no service stands here. Applied, Durable and
	// Projected are input sequences; Projected may be nil.
	State                       func() string // nil: always ok
	Applied, Durable, Projected func() uint64

	// MemberHost reports that an address is the host of a member: what such a host sends on may name
	// the address that it came from. nil: none is.
	MemberHost func(address string) bool

	TLS         *tls.Config   // how the relay dials the other members' services; nil: no TLS
	MaxInflight int           // http.max-inflight; 0: DefaultMaxInflight
	MaxRelayed  int           // requests under way to the leader; 0: DefaultMaxRelayed
	Timeout     time.Duration // of one of them, until it is answered; 0: DefaultRelayTimeout
	Logger      *slog.Logger  // nil: none
}

const (
	// DefaultMaxRelayed bounds the connections to the leader.
	DefaultMaxRelayed = 1024
	// DefaultRelayTimeout is longer than the leader takes for its own answer at most, and shorter than
	// a caller waits.
	DefaultRelayTimeout = 30 * time.Second
	// confirmTimeout is how long a leader waits for its confirmation.
	confirmTimeout = 5 * time.Second
)

// RelayedService is a service that can stand behind a Relay: *OrderMatcher, *TradeProcessor,
// *AccountService or *ReferenceData.
//
// Its method is not exported, so only the services of this package can stand there.
type RelayedService interface{ base() *service }

// base is the part of a service that a relay uses.
func (s *service) base() *service { return s }

// Relay is the edge of one service of a member. Its listener stays open while the member's role
// changes:
//
//	listener ─► sizes, framing, ─┬─► the service that stands here: what may run on this member
//	            route, method    └─► the leader's same service, with method, target, headers
//	                                 and body as they came; its answer comes back as it is
//
// The leader receives an order-matcher's writes and its reads with X-Consistency: confirmed, and
// every request to the other services, which run on the leader only. /health and /openapi.json are
// always answered here.
//
// A request is sent a second time only when a member has refused it as not sequenced. Any number of
// goroutines may use a Relay.
type Relay struct {
	service
	serviceShape
	o         RelayOptions
	prefix    string
	forwarder *forwarder

	swap    sync.Mutex
	backend atomic.Pointer[relayBackend] // never nil; writer: Swap

	// Counts of services that have left; writer: Swap.
	panics, refused atomic.Uint64
}

// NewRelay builds the edge of a service, by its name. It has no service behind it: Swap puts one
// there.
//
// An unknown name is an error. Until Swap, reads go to the leader too. The caller ends it with
// Shutdown.
func NewRelay(name string, o RelayOptions) (*Relay, error) {
	shape, ok := serviceShapes[name]
	if !ok {
		return nil, fmt.Errorf("httpapi: relay service=%q: %w", name, errServiceName)
	}
	if o.Timeout <= 0 {
		o.Timeout = DefaultRelayTimeout
	}
	if o.MaxRelayed <= 0 {
		o.MaxRelayed = DefaultMaxRelayed
	}
	r := &Relay{serviceShape: shape, o: o, prefix: cleanPrefix(o.PathPrefix)}
	r.service = newService(name, serverConfig{
		handler: r.handle, route: targetRoute(r.prefix, shape.find), maxInflight: o.MaxInflight,
		valid: r.validHere, durability: []byte(o.Durability), member: []byte(o.Cluster.Member()),
		log: o.Logger,
	})
	r.forwarder = newForwarder(o.Cluster.Member(), o.TLS, o.MaxRelayed, r.lasting, r.server.log)
	r.backend.Store(newRelayBackend(nil))
	return r, nil
}

// validHere reports a token that the service which stands here takes. Without a service no token is
// valid.
func (r *Relay) validHere(token []byte) bool {
	to := r.backend.Load().to
	return to != nil && to.server.valid != nil && to.server.valid(token)
}

// errServiceName reports a name that no service has.
var errServiceName = errors.New("no such service")

// Shutdown stops accepting, ends requests that go through the whole history, here and in the
// service that stands behind it, and waits like Shutdown of a service. Otherwise it leaves that
// service as it is.
//
// Other requests that were sent on to the leader may finish.
func (r *Relay) Shutdown(ctx context.Context) error {
	to := r.backend.Load().to
	if to != nil {
		to.endLasting(errStopping)
	}
	err := r.service.Shutdown(ctx)
	if to != nil {
		err = errors.Join(err, to.server.drain(ctx)) // its answers that are still streaming
	}
	r.forwarder.close()
	return err
}

// Counted emits what is counted here and in all services that have stood here. Use it instead of
// the services' own. See Metrics.Services.
//
// Swap holds the same lock, so that the counts of a leaving service are never missing and never
// counted twice.
func (r *Relay) Counted(to Counts) {
	r.swap.Lock()
	defer r.swap.Unlock()
	panics, refused := r.backend.Load().faults()
	to.Fault(r.name, "panic", r.server.panics.Load()+r.panics.Load()+panics)
	to.Fault(r.name, "refused", r.server.refused.Load()+r.refused.Load()+refused)
	r.answers(to) // the services behind it see no request that did not come through here
}

// Metrics emits the outcomes of the requests that went to the leader; see Metrics.More.
func (r *Relay) Metrics(emit metric.Emit) {
	r.forwarder.counts.each(func(outcome string, n uint64) {
		emit("svc_cluster_relayed_total",
			"Requests that this member has sent on to the leader, by outcome.",
			true, float64(n), "service", r.name, "outcome", outcome)
	})
}

// Swap makes next the service of the requests that run on this member; nil for none: then all
// requests go to the leader. No request is dropped. Requests that have begun end on the service
// they began on; ended is closed when the last of them has. A request that goes through the whole
// history may take long, and goes on: Shutdown of the service that has left ends it early.
//
// A service of another name than the relay's is a bug of the caller.
//
// Any goroutine; calls wait for each other and for nothing else.
func (r *Relay) Swap(next RelayedService) (ended <-chan struct{}) {
	var to *service
	if next != nil {
		if to = next.base(); to.name != r.name {
			panic("httpapi: relay of " + r.name + " in front of " + to.name)
		}
	}
	r.swap.Lock()
	defer r.swap.Unlock()
	old := r.backend.Swap(newRelayBackend(to))
	panics, refused := old.faults()
	r.panics.Add(panics)
	r.refused.Add(refused)
	old.leave()
	return old.ended
}

// handle answers one request.
func (r *Relay) handle(ctx *fasthttp.RequestCtx) {
	at, _, method, p := enter(ctx, r.prefix, r.find)
	if p.status == 0 {
		p = r.answer(ctx, at, method)
	}
	if p.status != 0 {
		p.write(ctx)
	}
}

// answer decides where a request runs, and has it answered there.
//
//	/health, /openapi.json        here; by the relay itself while no service stands here
//	/log/member                   here, or not at all
//	other own routes, reads of    here, while a service stands here; a read with
//	the order-matcher             X-Consistency: confirmed at the leader
//	everything else               at the leader
func (r *Relay) answer(ctx *fasthttp.RequestCtx, at route, method methods) problem {
	confirmed, p := consistency(ctx, method)
	own := ownRoute(at)
	switch {
	case p.status != 0:
		return p
	case leaderRoute(at):
		return r.atLeader(ctx, at, confirmed)
	case own, !r.leaderOnly && method == methodGet && !confirmed:
		if r.here(ctx) {
			return problem{}
		}
	}
	switch {
	case at == routeHealth:
		return r.showHealth(ctx)
	case at == routeOpenAPI:
		v := serviceRequest{ctx: ctx}
		return v.showDocument(r.document)
	case at == routeLogMember:
		return problemNoTree
	}
	return r.atLeader(ctx, at, confirmed)
}

// atLeader has a request answered by the leader: this member or another one.
//
// It asks again after each refusal, because the leader may have changed meanwhile; ask says so
// once, so the loop ends. A request that another member has sent on is never sent on again. Whether
// this member leads is looked at each time, before the leader's address.
func (r *Relay) atLeader(ctx *fasthttp.RequestCtx, at route, confirmed bool) problem {
	relayed := ctx.Request.Header.Peek(headerRelayed) != nil
	var x *exchangeToLeader
	for {
		if r.o.Cluster.Leads() {
			if confirmed && !r.confirm() {
				problemUnconfirmed.writeLeader(ctx, "")
				return problem{}
			}
			if r.here(ctx) {
				return problem{}
			}
		}
		leader, address := r.o.Cluster.Leader(r.name)
		switch {
		case relayed:
			problemNotLeader.writeLeader(ctx, leader)
			return problem{}
		case address == "" || leader == r.o.Cluster.Member(): // this member has not taken over yet
			problemNoLeader.writeLeader(ctx, leader)
			return problem{}
		}
		if x == nil {
			var p problem
			if x, p = r.forwarder.begin(ctx, at, r.o.Timeout); p.status != 0 {
				return p
			}
			defer x.end()
		}
		if !x.ask(leader, address) {
			return problem{}
		}
	}
}

// confirm reports that a majority confirms this member as its leader. It costs a round between the
// members, and blocks for confirmTimeout at most.
func (r *Relay) confirm() bool {
	ctx, cancel := context.WithTimeout(r.lasting, confirmTimeout)
	defer cancel()
	return r.o.Cluster.Confirm(ctx) == nil
}

// here has a request answered by the service that stands here. False: there is none.
//
// The service's handler runs on this goroutine, inside the relay's own limits; the service's own
// server is not asked.
func (r *Relay) here(ctx *fasthttp.RequestCtx) bool {
	s := r.join()
	defer s.leave()
	if s.to == nil {
		return false
	}
	ctx.SetUserValue(backendKey{}, s)
	if r.o.MemberHost != nil && ctx.Request.Header.Peek(headerRelayed) != nil {
		ctx.SetUserValue(memberHosts{}, r.o.MemberHost)
	}
	s.to.server.handler(ctx)
	return true
}

// showHealth is GET /health of a member where the service does not run.
func (r *Relay) showHealth(ctx *fasthttp.RequestCtx) problem {
	h := health{service: r.name, status: "ok", cluster: r.o.Cluster, durability: r.o.Durability,
		applied: r.o.Applied(), durable: r.o.Durable(), projected: r.o.Projected}
	if r.o.State != nil {
		h.status = r.o.State()
	}
	v := serviceRequest{ctx: ctx}
	return v.send(200, h.append(v.begin()))
}

// relayBackend is the service behind a relay and the requests that run on it.
//
//	users = 1                     --join--> 2 ... --leave--> 1    requests come and go
//	Swap puts another one there   --leave-> 0                     ended is closed: nothing uses to
//
// users never rises from 0: join then takes the next relayBackend.
type relayBackend struct {
	to    *service      // nil: no service
	users atomic.Int64  // requests under way, plus one until it is given up
	ended chan struct{} // closed when users reaches 0
}

// newRelayBackend has the one user that Swap takes away.
func newRelayBackend(to *service) *relayBackend {
	s := &relayBackend{to: to, ended: make(chan struct{})}
	s.users.Store(1)
	return s
}

// join returns the current relayBackend with one more user. That user must leave it.
func (r *Relay) join() *relayBackend {
	for {
		s := r.backend.Load()
		for n := s.users.Load(); n > 0; n = s.users.Load() {
			if s.users.CompareAndSwap(n, n+1) {
				return s
			}
		}
		// The relayBackend was given up and its last user has left: there is a new one.
	}
}

// leave gives up one use; the last one closes ended. Any goroutine.
func (s *relayBackend) leave() {
	if s.users.Add(-1) == 0 {
		close(s.ended)
	}
}

// faults are the counts of the service so far, which Swap keeps when it leaves.
func (s *relayBackend) faults() (panics, refused uint64) {
	if s.to == nil {
		return 0, 0
	}
	return s.to.server.panics.Load(), s.to.server.refused.Load()
}

// backendKey is the user value of a request on a relayBackend.
type backendKey struct{}

// holdBackend keeps the service of a request in use after its handler has returned, for an answer
// that streams. The caller must call leave once.
//
// A request that came without a relay has no relayBackend: leave does nothing.
func holdBackend(ctx *fasthttp.RequestCtx) (leave func()) {
	s, ok := ctx.UserValue(backendKey{}).(*relayBackend)
	if !ok {
		return func() {}
	}
	s.users.Add(1)
	return s.leave
}
