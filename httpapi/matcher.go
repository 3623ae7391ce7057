package httpapi

import (
	"context"
	"log/slog"
	"runtime/pprof"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"posttrade/blotter"
	"posttrade/blotter/feed"
	"posttrade/journal/asof"
	"posttrade/journal/why"
	"posttrade/matcher"
	"posttrade/matcher/admission"
	"posttrade/matcher/desk"
	"posttrade/matcher/gate"
	"posttrade/ring/timing"
)

// DurableWaiter knows up to which sequence commands are as durable as the mode promises.
//
// Any goroutine calls it; the watermark of the engine is one.
type DurableWaiter interface {
	// Durable is the last durable input sequence.
	Durable() uint64
	// WaitDurable blocks until Durable is at least inputSeq. An error means that this did not happen
	// within timeout, or never will.
	WaitDurable(inputSeq uint64, timeout time.Duration) error
}

// Deps is everything that the order-matcher's handlers use. The installation fills it.
//
// Everything is set before the first request and constant afterwards. Of the parts that may be nil,
// each switches its endpoints off: they answer 404. Any number of goroutines use the parts at once.
type Deps struct {
	// Decider decides what is admitted: its Gate and Views are those of every endpoint. When nothing
	// can be sequenced, admissions answer 503.
	admission.Decider

	// Desk takes the commands and gives their durable answers back. Blotter has the recent fills;
	// Verifier checks the tokens.
	Desk     *desk.Desk
	Blotter  *blotter.Blotter
	Verifier *gate.Verifier
	Durable  DurableWaiter

	// Seen is a sequence at or above everything that Views and Blotter show at the moment of the call,
	// such as the last one the matcher has published. An answer that shows them waits until Durable
	// has reached it. It must not count commands that the engine has not decided yet.
	Seen func() uint64
	// Clock is the edge's wall clock in epoch milliseconds. It sets event times.
	Clock func() int64

	Report  Reporter // GET /regulatory/report; nil: the endpoint does not exist
	Acts    Acts     // GET /audit; nil: the endpoint does not exist
	History History  // /recon/full-history; nil: the endpoint does not exist
	// FillsOf appends the fills of a command, from the journal; nil: there are those of Blotter only.
	FillsOf   func(ctx context.Context, inputSeq uint64, dst []matcher.Fill) ([]matcher.Fill, error)
	AsOf      *asof.History // /as-of and why; nil: the endpoints do not exist
	Evidence  Evidence      // /log and /evidence; nil: the endpoints do not exist
	Feed      *feed.Hub     // GET /feed; nil: the endpoint does not exist
	Projected func() uint64 // last input sequence of the SQL projection; nil: there is none

	Zone        *time.Location // of the days of exports; nil: UTC
	NeedReason  bool           // an operator's act needs the header X-Reason
	PathPrefix  string         // order-matcher.path-prefix: "/om", or empty
	Durability  string         // fsync, os or quorum: X-Durability
	Cluster     Cluster        // for /health; nil: this is the only member
	MaxInflight int            // http.max-inflight; 0: DefaultMaxInflight
	BlotterPage int            // recon.blotter.page-size; 0: 1000

	// AnswerTimeout is how long a request waits for its durable decision before
	// it answers 504. 0: DefaultAnswerTimeout.
	AnswerTimeout time.Duration
	// ReadTimeout is how long a read waits for what it shows to be durable before it
	// answers 503 SLOW_DISK. 0: DefaultReadTimeout; never more than AnswerTimeout.
	ReadTimeout time.Duration
	Logger      *slog.Logger // nil: none
}

// DefaultAnswerTimeout leaves a margin below the write time-out.
const DefaultAnswerTimeout = 10 * time.Second

// DefaultReadTimeout is how long a slow disk may delay a read.
//
// A read waits shorter than an admission: it has no outcome that the client must learn.
const DefaultReadTimeout = time.Second

// OrderMatcher is the order-matcher's HTTP edge.
//
// An admission runs on the goroutine of its connection: read and decode the body, ask the admission
// room, hand the command in, wait, answer. It blocks in one place, the ticket's Wait. The exchanges
// are kept in a pool, so that the path allocates nothing.
type OrderMatcher struct {
	Deps
	service
	prefix string
	// exchanges holds those that are not in use. Any number may be out.
	exchanges sync.Pool
	batches   longAnswers // the answers of batches
	stages    stages
	// policing holds one value while a request is changing policy or limits; acting, while one changes
	// an account or a security by hand. See alone.
	policing chan struct{}
	acting   chan struct{}
	why      *why.Explainer

	latency    timing.Latency // of admissions: from the request read to the answer rendered
	accepted   counter
	rejected   counter
	duplicates counter
	rejections [matcher.ReasonCount]counter
}

// counter has a cache line to itself.
//
// Many connections count at once; neighbouring counters on one line would make them wait for each
// other.
type counter struct {
	n atomic.Uint64
	_ [56]byte
}

// NewOrderMatcher builds the edge; Serve starts it.
//
// It fills the defaults, starts nothing and cannot fail. It may have no Desk when only the past is
// shown; see PastViewer.
func NewOrderMatcher(d Deps) *OrderMatcher {
	if d.AnswerTimeout <= 0 {
		d.AnswerTimeout = DefaultAnswerTimeout
	}
	if d.ReadTimeout <= 0 {
		d.ReadTimeout = DefaultReadTimeout
	}
	d.ReadTimeout = min(d.ReadTimeout, d.AnswerTimeout)
	if d.BlotterPage <= 0 || d.BlotterPage > maxPage {
		d.BlotterPage = maxPage
	}
	if d.Zone == nil {
		d.Zone = time.UTC
	}
	m := &OrderMatcher{
		Deps:   d,
		prefix: cleanPrefix(d.PathPrefix),
		stages: newStages(),

		policing: make(chan struct{}, 1), acting: make(chan struct{}, 1),
	}
	if d.AsOf != nil {
		m.why = why.New(d.AsOf)
	}
	m.exchanges.New = func() any {
		return &exchange{m: m, views: d.Views,
			serviceRequest: serviceRequest{verifier: d.Verifier}}
	}
	m.service = newService("order-matcher", serverConfig{
		handler: m.handle, route: targetRoute(m.prefix, routeOf), maxInflight: d.MaxInflight,
		valid: validToken(d.Verifier), durability: []byte(d.Durability), log: d.Logger,
		patience: d.AnswerTimeout,
	})
	return m
}

// cleanPrefix returns the same prefix for "om/" and "/om". "" is no prefix.
func cleanPrefix(prefix string) string {
	prefix = strings.Trim(prefix, "/")
	if prefix == "" {
		return ""
	}
	return "/" + prefix
}

// Metrics are the edge's own sources; the installation adds the sources of the other stages. A
// scrape calls them, on any goroutine.
func (m *OrderMatcher) Metrics() Metrics {
	return Metrics{
		Latencies: func(emit func(string, timing.Distribution)) {
			emit("http", m.latency.Distribution())
		},
		Orders: func(emit func(string, uint64)) {
			emit("accepted", m.accepted.n.Load())
			emit("rejected", m.rejected.n.Load())
			emit("duplicate", m.duplicates.n.Load())
		},
		Rejections: func(emit func(matcher.RiskReason, uint64)) {
			for reason := matcher.Invalid; reason < matcher.ReasonCount; reason++ {
				emit(reason, m.rejections[reason].n.Load())
			}
		},
		Services: []func(Counts){m.Counted},
	}
}

// handle answers one request.
//
// finish is deferred before anything can panic. An exchange whose handler panicked is not used
// again: done is still false.
func (m *OrderMatcher) handle(ctx *fasthttp.RequestCtx) {
	x := m.exchanges.Get().(*exchange)
	x.ctx = ctx
	pprof.SetGoroutineLabels(m.stages.http)
	defer x.finish()
	if p := x.serve(); p.status != 0 {
		p.write(ctx)
	}
	x.markSequence()
	x.done = true
}

// plainRoutes are the endpoints without an id, but those of orders.
//
// It is constant. Orders are not in it: routeOf compares them first, without a hash.
var plainRoutes = map[string]route{
	"/prices":                     routePrices,
	"/positions":                  routePositions,
	"/credit":                     routeCredit,
	"/recon/trades/blotter":       routeBlotter,
	"/risk/control/account":       routeRiskAccount,
	"/risk/control/security":      routeRiskSecurity,
	"/risk/control/restriction":   routeRiskRestriction,
	"/risk/control/policy":        routeRiskPolicy,
	"/risk/control/limits":        routeRiskLimits,
	"/risk/control/snapshot":      routeRiskSnapshot,
	"/regulatory/report":          routeReport,
	"/recon/full-history/reindex": routeReindex,
	"/recon/full-history/trades":  routeHistory,
	"/swaps":                      routeSwaps,
	"/swaptions":                  routeSwaptions,
	"/contracts":                  routeContracts,
	"/risk/extract":               routeExtract,
	"/audit":                      routeActs,
	"/why":                        routeWhy,
	"/log/member":                 routeLogMember,
	"/log/checkpoint":             routeCheckpoint,
	"/evidence/proof":             routeProof,
	"/feed":                       routeFeed,
	"/health":                     routeHealth,
	"/openapi.json":               routeOpenAPI,
}

// serve checks the path, finds the endpoint and runs it.
//
// A read first waits for its X-Min-Sequence. The feed has a position of its own, and health and
// document are of no sequence. enter has checked that the endpoint has the method.
func (x *exchange) serve() problem {
	r, id, method, p := x.enter(x.m.prefix, routeOf)
	if p.status != 0 {
		return p
	}
	if method == methodGet && r != routeFeed && r != routeHealth && r != routeOpenAPI {
		if p := x.await(r); p.status != 0 {
			return p
		}
	}
	switch r {
	case routeOrders:
		if method == methodPost {
			return x.createOrder()
		}
		return x.listOrders()
	case routeBatch:
		return x.createBatch()
	case routeTrades:
		return x.bookTrade()
	case routeOrder:
		return x.showOrder(id)
	case routeCancel:
		return x.cancelOrder(id)
	case routeReplace:
		return x.replaceOrder(id)
	case routePrices:
		return x.prices()
	case routePositions:
		return x.listPositions()
	case routeCredit:
		return x.listCredit()
	case routeBook:
		return x.showBook(id)
	case routeBlotter:
		return x.showBlotter()
	case routeSwaps:
		return x.bookContract(false)
	case routeSwaptions:
		return x.bookContract(true)
	case routeContracts:
		return x.listContracts()
	case routeContract:
		return x.showContract(id)
	case routeFeed:
		return x.showFeed()
	default:
		return x.operate(r, id)
	}
}

// operate runs an endpoint that is not about orders, contracts and what is seen of them.
func (x *exchange) operate(r route, id []byte) problem {
	switch r {
	case routeRiskAccount:
		return x.controlAccount()
	case routeRiskSecurity:
		return x.controlSecurity()
	case routeRiskRestriction:
		return x.controlRestriction()
	case routeRiskPolicy:
		return x.controlPolicy()
	case routeRiskLimits:
		return x.controlLimits()
	case routeRiskAccountLimits:
		return x.controlAccountLimits(id)
	case routeRiskSnapshot:
		return x.showControls()
	case routeReport:
		return x.showReport()
	case routeReindex:
		return x.reindex()
	case routeHistory:
		return x.showHistory()
	case routeExtract:
		return x.riskExtract()
	case routeActs:
		return x.showActs()
	case routeAsOfBook, routeAsOfPositions, routeAsOfOrders, routeAsOfOrder, routeAsOfAccounts,
		routeAsOfControls, routeAsOfCredit, routeAsOfTrades, routeAsOfContracts, routeAsOfContract:
		return x.showPast(r, id)
	case routeOrderWhy, routeContractWhy, routeWhy:
		return x.showWhy(r, id)
	case routeLogMember:
		return x.showMember()
	case routeCheckpoint:
		return x.showCheckpoint()
	case routeTile:
		return x.showTile(id)
	case routeProof:
		return x.showProof()
	case routeOpenAPI:
		return x.showDocument(openAPIOrderMatcher)
	default:
		return x.showHealth()
	}
}
