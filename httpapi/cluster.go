package httpapi

import (
	"context"

	"github.com/valyala/fasthttp"
)

// Cluster is what the services of a member know of all members. Its methods are called for every
// request: all but Confirm only read memory.
//
// The node of a cluster is the only one outside of tests. Any goroutine calls it.
type Cluster interface {
	// Leads reports that writes run here: this member leads and has applied everything that was agreed
	// before it became the leader.
	Leads() bool
	// Leader returns the leader's name and the address of its service, host:port. Both are "" while
	// the leader is unknown.
	Leader(service string) (member, address string)
	// Confirm returns nil when a majority confirms that this member is the leader.
	Confirm(ctx context.Context) error
	// Member is this member's name.
	Member() string
}

// The headers of a cluster.
const (
	// headerMember names the member that answered.
	headerMember = "X-Member"
	// headerRelayed names the member that sent a request on. A member that receives such a request and
	// does not lead answers so. It does not send the request on: requests do not go in circles.
	headerRelayed = "X-Relayed-By"
	// headerRelayedFor is the address that a request came from which a member has sent on.
	headerRelayedFor = "X-Relayed-For"
	// headerConsistency says how current a read has to be.
	headerConsistency = "X-Consistency"
)

// valueConfirmed asks for a read by a leader that a majority has confirmed.
const valueConfirmed = "confirmed"

// serviceShape describes a service from outside: enough to refuse a request that every member would
// refuse.
type serviceShape struct {
	// find is the router of the service, so that the relay refuses a path or a method without asking
	// the leader.
	find       func(path []byte) (r route, id []byte)
	document   []byte
	leaderOnly bool // it runs on the leader only: reads go there too
}

// serviceShapes are the services that can stand behind a relay, by name.
//
// It is constant. The names are also those under which Cluster.Leader knows the addresses.
var serviceShapes = map[string]serviceShape{
	"order-matcher":   {find: routeOf, document: openAPIOrderMatcher},
	"trade-processor": {find: processorRouteOf, document: openAPITradeProcessor, leaderOnly: true},
	"account-service": {find: accountRouteOf, document: openAPIAccountService, leaderOnly: true},
	"reference-data":  {find: referenceRouteOf, document: openAPIReferenceData, leaderOnly: true},
}

// ownRoute reports an endpoint that is answered by the member that receives the request. The
// full-history index is one: it is a file of its member, made from the member's own journal, and it
// is read where it was made. The tree of the log is another: members compare theirs.
func ownRoute(r route) bool {
	switch r {
	case routeHealth, routeOpenAPI, routeReindex, routeLogMember, routeFeed:
		return true
	}
	return false
}

// leaderRoute reports a read that only the leader answers: it alone signs heads of the log, and has
// the tiles of the heads that it has signed.
func leaderRoute(r route) bool {
	return r == routeCheckpoint || r == routeTile || r == routeProof
}

// lastingRoute reports an endpoint that goes through the whole history. A relay waits for it as
// long as the leader's own bound, and its answer ends early when the service stops.
func lastingRoute(r route) bool {
	switch r {
	case routeSweep, routeReport, routeActs, routeRepair, routeStatement:
		return true
	}
	return false
}

// consistency reads how current a read has to be. A write always goes to the leader. Any value but
// confirmed is 400, so that a misspelt one does not give a stale read.
func consistency(ctx *fasthttp.RequestCtx, method methods) (confirmed bool, p problem) {
	value := ctx.Request.Header.Peek(headerConsistency)
	switch {
	case method != methodGet || value == nil:
		return false, problem{}
	case string(value) == valueConfirmed:
		return true, problem{}
	}
	return false, badHeader(headerConsistency, "it is confirmed or absent")
}

// appendLeader renders a problem of the cluster with the leader's name in it.
func (p problem) appendLeader(b []byte, leader string) []byte {
	b = append(p.append(b), `,"leader":`...)
	return append(appendOptional(b, []byte(leader)), '}')
}

// writeLeader makes p the answer of ctx and names the leader; "" for unknown.
func (p problem) writeLeader(ctx *fasthttp.RequestCtx, leader string) {
	p.write(ctx)
	ctx.Response.SetBody(p.appendLeader(nil, leader))
}

// The problems of a cluster.
var (
	problemNotLeader = problem{status: 503, code: CodeNotLeader,
		detail: "this member does not lead: the request was not sequenced", notSequenced: true}
	problemNoLeader = problem{status: 503, code: CodeNoLeader,
		detail:       "the leader is not known or cannot be reached: the request was not sequenced",
		notSequenced: true}
	problemNoTree = problem{status: 503, code: CodeNotYet,
		detail: "this member has not opened its history yet, or stands aside", notSequenced: true}
	problemUnconfirmed = problem{status: 503, code: CodeNoLeader,
		detail: "no majority confirms that this member leads", notSequenced: true}
	problemRelayLost = problem{status: 504, code: CodeOutcomeUnknown,
		detail: "the leader did not answer: the outcome is unknown, repeat with the same clientOrderId"}
)
