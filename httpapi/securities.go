package httpapi

import (
	"context"
	"errors"
	"log/slog"

	"posttrade/matcher/gate"
	"posttrade/sidecars/control"
	"posttrade/sidecars/securities"
)

// Securities are the stocks behind the reference-data service;
// *securities.Securities is one.
type Securities interface {
	// List returns every stock, by the bytes of the ticker.
	List(ctx context.Context) ([]securities.Stock, error)
	// Get returns the stock of a ticker as it is stored, false for none.
	Get(ctx context.Context, ticker string) (securities.Stock, bool, error)
	// Upsert makes or changes a stock; securities.ErrStock, control.ErrCapacity and
	// control.ErrReason change nothing.
	Upsert(ctx context.Context, s securities.Stock) (stored securities.Stock, version uint64,
		created bool, err error)
	// Snapshot returns all stocks as of one moment.
	Snapshot(ctx context.Context) (control.Snapshot, error)
}

// ReferenceDeps is everything that the reference-data service's handlers use. The installation
// fills it.
//
// It is constant after NewReferenceData.
type ReferenceDeps struct {
	Securities   Securities
	Verifier     *gate.Verifier
	WriteAuth    bool         // writes need an admin token
	SnapshotAuth bool         // controlfeed.snapshot-auth: the control snapshot needs one
	Tick         func() int64 // the grid of limit prices, x 1e6; nil: not known

	// What /health shows. Applied, Durable and Projected are input sequences.
	State                       func() string // nil: always ok
	Applied, Durable, Projected func() uint64
	Durability                  string  // fsync, os or quorum: X-Durability
	Cluster                     Cluster // nil: this is the only member

	MaxInflight int          // http.max-inflight; 0: DefaultMaxInflight
	Logger      *slog.Logger // nil: none
}

// ReferenceData is the reference-data service's HTTP edge.
//
// In a cluster it runs on the leader only. No read but that of the control snapshot ever needs a
// token.
type ReferenceData struct {
	source
	securities Securities
	tick       func() int64
}

// NewReferenceData builds the edge; Serve starts it.
func NewReferenceData(d ReferenceDeps) *ReferenceData {
	s := &ReferenceData{securities: d.Securities, tick: d.Tick}
	s.source = newSource("reference-data", sourceDeps{
		verifier: d.Verifier, writeAuth: d.WriteAuth, snapshotAuth: d.SnapshotAuth,
		state: d.State, applied: d.Applied, durable: d.Durable, projected: d.Projected,
		durability: d.Durability, cluster: d.Cluster, maxInflight: d.MaxInflight, log: d.Logger,
		document: openAPIReferenceData, find: referenceRouteOf, snapshot: d.Securities.Snapshot,
		version: versionOf(d.Securities),
	}, s.answer)
	return s
}

// referenceRouteOf finds the endpoint of a plain path and the ticker in it. Paths are case
// sensitive and tickers are capitals, so no ticker equals a word of this table.
func referenceRouteOf(path []byte) (r route, id []byte) {
	switch string(path) {
	case "/stocks":
		return routeStocks, nil
	case "/stocks/control-snapshot":
		return routeStockSnapshot, nil
	case "/health":
		return routeHealth, nil
	case "/openapi.json":
		return routeOpenAPI, nil
	}
	if rest, ok := cutPrefix(path, "/stocks/"); ok {
		if id, tail := cutSegment(rest); len(id) > 0 && len(tail) == 0 {
			return routeStock, id
		}
	}
	return routeNone, nil
}

// answer runs the endpoint of a request.
func (s *ReferenceData) answer(e *sourceRequest, r route, id []byte, method methods) problem {
	switch {
	case r == routeStocks && method == methodGet:
		return s.list(e)
	case r == routeStocks:
		return s.upsert(e)
	case r == routeStock:
		return s.show(e, id)
	case r == routeStockSnapshot:
		return e.showSnapshot(&s.source)
	case r == routeOpenAPI:
		return e.showDocument(s.deps.document)
	default:
		return e.showSourceHealth(&s.source)
	}
}

// list is GET /stocks.
func (s *ReferenceData) list(e *sourceRequest) problem {
	return showList(e, &s.source, s.securities.List, appendStock)
}

// show is GET /stocks/{ticker}.
//
// Beside the stock it shows the tick, which is the same for all stocks.
func (s *ReferenceData) show(e *sourceRequest, ticker []byte) problem {
	if p := e.noParameters(); p.status != 0 {
		return p
	}
	ctx, cancel := quick()
	defer cancel()
	stock, found, err := s.securities.Get(ctx, string(ticker))
	switch {
	case err != nil:
		return s.failed(err)
	case !found:
		return problemSecurity(ticker)
	}
	b := appendStock(e.begin(), &stock)
	if s.tick != nil {
		b = append(b[:len(b)-1], `,"tick":`...)
		b = append(appendDecimal(b, s.tick()), '}')
	}
	return e.send(200, b)
}

// upsert is POST /stocks: 201 for a new stock, 200 for one that was there.
//
// The answer is the stock as stored: trimmed and in capitals. As for accounts, the engine learns of
// it from the feed.
func (s *ReferenceData) upsert(e *sourceRequest) problem {
	if p := e.writing(&s.source); p.status != 0 {
		return p
	}
	stock := e.body.stock()
	if p := e.bodyRead(); p.status != 0 {
		return p
	}
	var p problem
	if stock.By, p = e.operator(); p.status != 0 {
		return p
	}
	ctx, cancel := quick()
	defer cancel()
	stored, _, created, err := s.securities.Upsert(ctx, stock)
	switch {
	case errors.Is(err, securities.ErrStock): // the name was checked
		e.body.field = "ticker"
		return e.body.bodyProblem(errTicker, -1)
	case errors.Is(err, control.ErrCapacity):
		return problemCapacity("security")
	case errors.Is(err, control.ErrReason):
		return problemFlagReason
	case err != nil:
		return s.changed(err)
	}
	status := 200
	if created {
		status = 201
	}
	return e.send(status, appendStock(e.begin(), &stored))
}

// stock reads the body of an upsert. A new stock is enabled and not halted unless the body says
// otherwise. An existing stock keeps both flags unless the body has them. The service decides what
// a valid ticker is; it stores the ticker trimmed and in capitals.
func (d *decoder) stock() securities.Stock {
	s := securities.Stock{Enabled: true, EnabledUnset: true, HaltedUnset: true}
	var ticker, name bool
	for key := range d.members {
		switch string(key) {
		case "ticker":
			d.field = "ticker"
			s.Ticker, ticker = string(d.json.String()), true
		case "companyName":
			s.CompanyName, name = d.name("companyName"), true
		case "enabled":
			s.Enabled, s.EnabledUnset = d.flag("enabled"), false
		case "halted":
			s.Halted, s.HaltedUnset = d.flag("halted"), false
		default:
			d.unknown(key)
		}
	}
	d.require("ticker", ticker)
	d.require("companyName", name)
	return s
}

// appendStock appends the document of a stock.
func appendStock(b []byte, s *securities.Stock) []byte {
	b = append(b, `{"ticker":`...)
	b = appendString(b, s.Ticker)
	b = append(b, `,"companyName":`...)
	return append(appendString(b, s.CompanyName), '}')
}
