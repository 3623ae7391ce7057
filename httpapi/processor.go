package httpapi

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/valyala/fasthttp"

	"posttrade/matcher/gate"
	"posttrade/sidecars/store"
)

// Trades are the rows of the SQL projection.
//
// StoreTrades is the one of the installation. Any goroutine calls it. Its errors are the store's:
// problem documents by service.failed.
type Trades interface {
	// Trade finds one row.
	Trade(ctx context.Context, id string) (t store.Trade, found bool, err error)
	// Trades lists rows, ascending by trade sequence.
	Trades(ctx context.Context, f store.TradeFilter) ([]store.Trade, error)
	// SettlementDays counts the rows of the settlement dates from to to, ascending.
	SettlementDays(ctx context.Context, accounts []uint32, from, to store.Date) (
		[]store.SettlementDay, error)
}

// Settlement settles a trade before its settlement date; *settlement.Settlement is one.
type Settlement interface {
	// Force settles the trade now, whatever its date; found is false for no such trade. After an error
	// it may be settled or not, and Force may be called again.
	Force(ctx context.Context, tradeID string) (t store.Trade, found bool, err error)
}

// ProcessorDeps is everything that the trade-processor's handlers use. The installation fills it.
//
// Everything is set before the first request and constant afterwards; what may be nil says so.
type ProcessorDeps struct {
	Trades     Trades
	Settlement Settlement
	Recon      Recon
	TCA        TCA
	Zone       *time.Location // of trade dates; nil: UTC
	Marks      Marks          // nil: PUT /eod/prices does not exist
	Foreign    func() bool    // the rows belong to another history, so none is shown; nil: never
	Record     Recorder       // puts acts on record; nil: nothing does
	NeedReason bool           // an operator's act needs the header X-Reason
	Verifier   *gate.Verifier
	Mint       TokenMint    // POST /auth/dev-token; the zero value: it does not exist
	Revocation Revocation   // POST /auth/revoke; the zero value: it does not exist
	Metrics    http.Handler // GET /actuator/prometheus: the *Registry that /metrics shows

	// What /health shows. Applied, Durable and Projected are input sequences.
	Applied, Durable, Projected func() uint64
	// ProjectedTrades is the last trade of the projection; nil: not known.
	ProjectedTrades func() uint64
	State           func() string // "ok", "degraded" or "failed"; nil: always ok
	Durability      string        // fsync, os or quorum: X-Durability
	Cluster         Cluster       // nil: this is the only member

	MaxInflight int          // http.max-inflight; 0: DefaultMaxInflight
	Logger      *slog.Logger // nil: none
}

// TradeProcessor is the trade-processor's HTTP edge. It waits for SQL, unlike admission, which only
// reads memory. Every endpoint of a trade or an account needs a token, also where admission does
// not enforce entitlements.
//
// A handler reads or writes a database for queryTimeout at most, or for lastingTimeout where it
// goes through the whole history. It keeps nothing from one request to the next but the wrong
// secrets.
type TradeProcessor struct {
	ProcessorDeps
	service
	log     *slog.Logger
	guesses throttle // of the master secret
	// comparisons are the looks of reads that wait for the reconciliation.
	comparisons looks[rowsAt]
}

// NewTradeProcessor builds the edge; Serve starts it.
//
// It fills the defaults, starts nothing and cannot fail.
func NewTradeProcessor(d ProcessorDeps) *TradeProcessor {
	if d.Mint.Now == nil {
		d.Mint.Now = time.Now
	}
	if d.Zone == nil {
		d.Zone = time.UTC
	}
	p := &TradeProcessor{ProcessorDeps: d}
	p.service = newService("trade-processor", serverConfig{
		handler: p.handle, route: targetRoute("", processorRouteOf),
		valid: validToken(d.Verifier), maxInflight: d.MaxInflight, durability: []byte(d.Durability),
		log: d.Logger,
	})
	p.log = p.server.log
	return p
}

// inquiry is one request to the trade-processor.
//
// It is made for each request and not kept: this service may allocate.
type inquiry struct {
	serviceRequest
	p *TradeProcessor

	// asOf is of a read the sequence that the rows have in them, 0 also before the first command; of
	// an operator's act the sequence of its record. known: asOf was set.
	asOf  uint64
	known bool
}

// authenticate is serviceRequest.authenticate. A request with a valid token sees no row of another
// history.
func (q *inquiry) authenticate() problem { return q.ours(q.serviceRequest.authenticate()) }

// admin is serviceRequest.admin, with the same addition.
func (q *inquiry) admin() problem { return q.ours(q.serviceRequest.admin()) }

// plain is authenticate for a request without parameters.
func (q *inquiry) plain() problem {
	if p := q.authenticate(); p.status != 0 {
		return p
	}
	return q.noParameters()
}

// ours turns a good answer about the token into a problem when the rows belong to another history.
//
// Without a valid token the caller learns nothing of the rows, not even that they are another
// history's.
func (q *inquiry) ours(p problem) problem {
	if p.status == 0 && q.p.Foreign != nil && q.p.Foreign() {
		return problemForeign
	}
	return p
}

// handle answers one request. A refusal too is marked with its sequence.
func (p *TradeProcessor) handle(ctx *fasthttp.RequestCtx) {
	q := inquiry{p: p, serviceRequest: serviceRequest{ctx: ctx, verifier: p.Verifier}}
	if problem := q.serve(); problem.status != 0 {
		problem.write(ctx)
	}
	q.markSequence()
}

// serve finds the endpoint and runs it.
func (q *inquiry) serve() problem {
	r, id, _, p := q.enter("", processorRouteOf)
	if p.status != 0 {
		return p
	}
	if q.reads(r) {
		return q.read(r, id)
	}
	return q.run(r, id)
}

// showHealth is GET /health.
func (q *inquiry) showHealth() problem {
	state := "ok"
	if q.p.State != nil {
		state = q.p.State()
	}
	h := health{service: q.p.name, status: state, cluster: q.p.Cluster, durability: q.p.Durability,
		applied: q.p.Applied(), durable: q.p.Durable(), projected: q.p.Projected}
	return q.send(200, h.append(q.begin()))
}
