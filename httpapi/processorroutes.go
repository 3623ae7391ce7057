package httpapi

// read runs an endpoint that shows rows, once they have what the request asks for. The caller's
// token is checked before anything is waited for.
//
// The endpoint checks the token once more, which costs a look-up.
func (q *inquiry) read(r route, id []byte) problem {
	if p := q.authenticate(); p.status != 0 {
		return p
	}
	if p := q.await(r); p.status != 0 {
		return p
	}
	return q.run(r, id)
}

// run runs an endpoint.
//
// enter has checked that the endpoint has the method.
func (q *inquiry) run(r route, id []byte) problem {
	switch r {
	case routeDevToken:
		return q.mintToken()
	case routeRevoke:
		return q.revokeTokens()
	case routeTradeList:
		return q.listTrades()
	case routeCalendar:
		return q.showCalendar()
	case routeTrade:
		return q.showTrade(string(id))
	case routeSettle:
		return q.forceSettlement(string(id))
	case routeReconStatus:
		return q.showReconStatus()
	case routeBreaks:
		return q.listBreaks()
	case routeSweep:
		return q.sweepOrphans()
	case routeLastSweep:
		return q.showLastSweep()
	case routeRepair:
		return q.repairTrades()
	case routeStatement:
		return q.takeStatement()
	case routeTCAReport:
		return q.showTCAReport(string(id))
	case routeTCASummary:
		return q.showTCASummary()
	case routeScrape:
		return q.scrape()
	case routeMarks:
		return q.putMarks(id)
	case routeOpenAPI:
		return q.showDocument(openAPITradeProcessor)
	default:
		return q.showHealth()
	}
}

// processorRoutes are the endpoints without an id.
//
// It is constant.
var processorRoutes = map[string]route{
	"/auth/dev-token":          routeDevToken,
	"/auth/revoke":             routeRevoke,
	"/trades":                  routeTradeList,
	"/settlement/calendar":     routeCalendar,
	"/recon/status":            routeReconStatus,
	"/recon/breaks":            routeBreaks,
	"/recon/orphan-sweep":      routeSweep,
	"/recon/orphan-sweep/last": routeLastSweep,
	"/recon/repair":            routeRepair,
	"/recon/statement":         routeStatement,
	"/tca/summary":             routeTCASummary,
	"/actuator/prometheus":     routeScrape,
	"/health":                  routeHealth,
	"/openapi.json":            routeOpenAPI,
}

// processorRouteOf finds the endpoint of a plain path and the id in it.
//
// The id of marks is both parts of the path behind /eod/prices/, which together must not be longer
// than maxID.
func processorRouteOf(path []byte) (r route, id []byte) {
	if r, ok := processorRoutes[string(path)]; ok {
		return r, nil
	}
	if rest, ok := cutPrefix(path, "/trades/"); ok {
		id, tail := cutSegment(rest)
		switch {
		case len(id) == 0:
			return routeNone, nil
		case len(tail) == 0:
			return routeTrade, id
		case string(tail) == "/settlement/force":
			return routeSettle, id
		}
	}
	if rest, ok := cutPrefix(path, "/tca/report/"); ok {
		if id, tail := cutSegment(rest); len(id) > 0 && len(tail) == 0 {
			return routeTCAReport, id
		}
	}
	if rest, ok := cutPrefix(path, "/eod/prices/"); ok {
		date, tail := cutSegment(rest)
		version, ok := cutPrefix(tail, "/v")
		if _, more := cutSegment(version); ok && len(date) > 0 && len(version) > 0 && len(more) == 0 {
			return routeMarks, rest // both parts: the handler splits them
		}
	}
	return routeNone, nil
}
