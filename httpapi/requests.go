package httpapi

import (
	"strconv"
	"sync/atomic"
)

// patterns are the endpoints as monitoring and the access log name them: the paths of the OpenAPI
// documents. So a label has a bounded number of values, and no id.
var patterns = [routeCount]string{
	routeNone: "unknown", routeHealth: "/health", routeOpenAPI: "/openapi.json",

	routeOrders: "/orders", routeBatch: "/orders/batch", routeOrder: "/orders/{orderId}",
	routeCancel: "/orders/{orderId}/cancel", routeReplace: "/orders/{orderId}/replace",
	routeTrades: "/trades", routePrices: "/prices", routePositions: "/positions",
	routeCredit: "/credit",
	routeBook:   "/book/{security}", routeBlotter: "/recon/trades/blotter",
	routeRiskAccount: "/risk/control/account", routeRiskSecurity: "/risk/control/security",
	routeRiskRestriction: "/risk/control/restriction", routeRiskPolicy: "/risk/control/policy",
	routeRiskLimits:        "/risk/control/limits",
	routeRiskAccountLimits: "/risk/control/accounts/{accountId}/limits",
	routeRiskSnapshot:      "/risk/control/snapshot", routeReport: "/regulatory/report",
	routeReindex: "/recon/full-history/reindex", routeHistory: "/recon/full-history/trades",
	routeSwaps: "/swaps", routeSwaptions: "/swaptions", routeContracts: "/contracts",
	routeContract: "/contracts/{contractId}", routeActs: "/audit",
	routeAsOfBook:      "/as-of/{inputSeq}/book/{security}",
	routeAsOfPositions: "/as-of/{inputSeq}/positions",
	routeAsOfCredit:    "/as-of/{inputSeq}/credit",
	routeAsOfOrders:    "/as-of/{inputSeq}/orders",
	routeAsOfOrder:     "/as-of/{inputSeq}/orders/{orderId}",
	routeAsOfAccounts:  "/as-of/{inputSeq}/accounts",
	routeAsOfControls:  "/as-of/{inputSeq}/risk/control/snapshot",
	routeAsOfTrades:    "/as-of/{inputSeq}/trades",
	routeAsOfContracts: "/as-of/{inputSeq}/contracts",
	routeAsOfContract:  "/as-of/{inputSeq}/contracts/{contractId}",
	routeOrderWhy:      "/orders/{orderId}/why", routeContractWhy: "/contracts/{contractId}/why",
	routeWhy: "/why", routeExtract: "/risk/extract", routeLogMember: "/log/member",
	routeCheckpoint: "/log/checkpoint", routeTile: "/log/tile/{tile}",
	routeProof: "/evidence/proof", routeFeed: "/feed",

	routeDevToken: "/auth/dev-token", routeRevoke: "/auth/revoke",
	routeTradeList: "/trades", routeTrade: "/trades/{tradeId}",
	routeCalendar: "/settlement/calendar",
	routeSettle:   "/trades/{tradeId}/settlement/force", routeReconStatus: "/recon/status",
	routeBreaks: "/recon/breaks", routeSweep: "/recon/orphan-sweep",
	routeLastSweep: "/recon/orphan-sweep/last", routeRepair: "/recon/repair",
	routeStatement: "/recon/statement", routeTCAReport: "/tca/report/{tradeId}",
	routeTCASummary: "/tca/summary", routeScrape: "/actuator/prometheus",
	routeMarks: "/eod/prices/{sessionDate}/v{version}",

	routeAccounts: "/account/", routeAccount: "/account/{accountId}",
	routeAccountSnapshot: "/account/control-snapshot",
	routeStocks:          "/stocks", routeStock: "/stocks/{ticker}",
	routeStockSnapshot: "/stocks/control-snapshot",
}

// statuses are the answers that are counted by their code. Others count as 0.
var statuses = [...]int{0, 200, 201, 202, 204, 400, 401, 403, 404, 405, 408, 409, 413, 414, 415,
	422, 429, 431, 500, 502, 503, 504}

// statusPlaces has the place of each code in statuses.
var statusPlaces = func() (at [600]uint8) {
	for i, code := range statuses {
		at[code] = uint8(i)
	}
	return at
}()

// requestCounts count the answers of a service by endpoint and code. Any goroutine.
//
// The memory is fixed: a count for every endpoint and code, some ten KiB a service. A count is one
// atomic add on the path of a request.
type requestCounts [routeCount][len(statuses)]atomic.Uint64

// add counts one answer. A status beyond the table counts as 0.
func (c *requestCounts) add(r route, status int) {
	at := uint8(0)
	if status >= 0 && status < len(statusPlaces) {
		at = statusPlaces[status]
	}
	c[r][at].Add(1)
}

// each emits the counts that are not zero.
func (c *requestCounts) each(emit func(route, code string, count uint64)) {
	for r := range c {
		for i := range statuses {
			if n := c[r][i].Load(); n > 0 {
				emit(patterns[r], strconv.Itoa(statuses[i]), n)
			}
		}
	}
}

// targetRoute returns a function that finds the endpoint of a raw request target of a service. The
// server counts, logs and bounds by it, before and after any handler; a target that is not plain
// may find an endpoint here and be refused by enter.
func targetRoute(prefix string,
	find func(path []byte) (r route, id []byte)) func(target []byte) route {
	return func(target []byte) route {
		path, _ := splitTarget(target)
		r, _ := find(stripPrefix(path, prefix))
		return r
	}
}

// bodyLimit is the largest body that an endpoint accepts.
//
// Only endpoints that take many rows at once have the large bound; all of them are behind
// BodyMemory.
func bodyLimit(r route) int {
	switch r {
	case routeBatch, routePrices, routeMarks, routeStatement:
		return maxLargeBodyBytes
	}
	return maxBodyBytes
}
