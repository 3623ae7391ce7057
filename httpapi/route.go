//perf:hot

package httpapi

// route is an endpoint of a service.
//
// It is an index: into allowed, patterns and the counts of answers. routeNone is the zero value, an
// unknown path.
type route uint8

// The endpoints: first those of every service, then those of the order-matcher, the
// trade-processor, the account-service and the reference-data service.
const (
	routeNone route = iota
	routeHealth
	routeOpenAPI

	routeOrders // GET lists, POST creates
	routeBatch
	routeOrder
	routeCancel
	routeReplace
	routeTrades
	routePrices
	routePositions
	routeCredit
	routeBook
	routeBlotter
	// The controls and the other endpoints of operators: all of them need an admin token.
	routeRiskAccount
	routeRiskSecurity
	routeRiskRestriction
	routeRiskPolicy
	routeRiskLimits
	routeRiskAccountLimits
	routeRiskSnapshot
	routeReport
	routeReindex
	routeHistory
	routeSwaps
	routeSwaptions
	routeContracts
	routeContract
	routeActs
	// The endpoints below /as-of/{inputSeq}: each runs the code of the endpoint without the prefix.
	routeAsOfBook
	routeAsOfPositions
	routeAsOfCredit
	routeAsOfOrders
	routeAsOfOrder
	routeAsOfAccounts
	routeAsOfControls
	routeAsOfTrades
	routeAsOfContracts
	routeAsOfContract
	routeOrderWhy
	routeContractWhy
	routeWhy
	routeExtract
	// The transparency log. Its files need no token.
	routeLogMember
	routeCheckpoint
	routeTile
	routeProof
	routeFeed

	routeDevToken
	routeRevoke
	routeTradeList
	routeTrade
	routeSettle
	routeCalendar
	routeReconStatus
	routeBreaks
	routeSweep
	routeLastSweep
	routeRepair
	routeStatement
	routeTCAReport
	routeTCASummary
	routeScrape
	routeMarks

	routeAccounts // GET lists, POST and PUT change
	routeAccount
	routeAccountSnapshot

	routeStocks // GET lists, POST changes
	routeStock
	routeStockSnapshot
	routeCount
)

// methods is a set of HTTP methods. A service answers GET, POST and PUT; every other method is 405,
// HEAD and OPTIONS too.
type methods uint8

const (
	methodGet methods = 1 << iota
	methodPost
	methodPut
)

// allowed is the set of methods of each endpoint.
//
// An endpoint that is missing here would answer every method with 405 and an empty Allow.
var allowed = [routeCount]methods{
	routeOrders: methodGet | methodPost, routeBatch: methodPost, routeOrder: methodGet,
	routeCancel: methodPost, routeReplace: methodPost, routeTrades: methodPost,
	routePrices: methodPost, routePositions: methodGet, routeCredit: methodGet, routeBook: methodGet,
	routeBlotter: methodGet, routeRiskAccount: methodPost, routeRiskSecurity: methodPost,
	routeRiskRestriction: methodPost, routeRiskPolicy: methodPost, routeRiskLimits: methodPost,
	routeRiskAccountLimits: methodPost, routeRiskSnapshot: methodGet,
	routeHealth: methodGet, routeOpenAPI: methodGet,
	routeReport: methodGet, routeReindex: methodPost, routeHistory: methodGet,
	routeSwaps: methodPost, routeSwaptions: methodPost, routeContracts: methodGet,
	routeContract: methodGet,
	routeExtract:  methodPost, routeActs: methodGet,
	routeAsOfBook: methodGet, routeAsOfPositions: methodGet, routeAsOfOrders: methodGet,
	routeAsOfCredit: methodGet,
	routeAsOfOrder:  methodGet, routeAsOfAccounts: methodGet, routeAsOfControls: methodGet,
	routeAsOfTrades: methodGet, routeAsOfContracts: methodGet, routeAsOfContract: methodGet,
	routeOrderWhy: methodGet, routeContractWhy: methodGet, routeWhy: methodGet,
	routeLogMember: methodGet, routeCheckpoint: methodGet, routeTile: methodGet, routeProof: methodGet,
	routeFeed: methodGet,

	routeDevToken: methodPost, routeRevoke: methodPost, routeTradeList: methodGet,
	routeTrade: methodGet, routeSettle: methodPost, routeCalendar: methodGet,
	routeReconStatus: methodGet, routeBreaks: methodGet, routeSweep: methodPost,
	routeLastSweep: methodGet, routeRepair: methodPost, routeStatement: methodPost,
	routeTCAReport: methodGet, routeTCASummary: methodGet, routeScrape: methodGet,
	routeMarks: methodPut,

	routeAccounts: methodGet | methodPost | methodPut, routeAccount: methodGet,
	routeAccountSnapshot: methodGet,
	routeStocks:          methodGet | methodPost, routeStock: methodGet, routeStockSnapshot: methodGet,
}

// allowValues are the values of the header Allow, by set.
var allowValues = [8]string{"", "GET", "POST", "GET, POST", "PUT", "GET, PUT", "POST, PUT",
	"GET, POST, PUT"}

// methodOf returns the set that holds a request's method, or the empty set.
//
// Methods are case sensitive (RFC 9110 section 9.1).
func methodOf(name []byte) methods {
	switch string(name) {
	case "GET":
		return methodGet
	case "POST":
		return methodPost
	case "PUT":
		return methodPut
	}
	return 0
}

// maxID is the longest id in a path.
//
// An id of a path is used in look-ups and texts only after this bound and idByte have been checked.
const maxID = 64

// splitTarget splits a raw request target into path and query.
//
// Both are slices of target: nothing is copied. A target without a query has a nil one; an empty
// query is not nil.
func splitTarget(target []byte) (path, query []byte) {
	for i, ch := range target {
		if ch == '?' {
			return target[:i], target[i+1:]
		}
	}
	return target, nil
}

// stripPrefix removes a routing prefix ("/om", or empty) from a path that has it.
//
// A path without the prefix is served as well: clients beside the router reach the service
// directly.
func stripPrefix(path []byte, prefix string) []byte {
	n := len(prefix)
	if n > 0 && len(path) > n && path[n] == '/' && string(path[:n]) == prefix {
		return path[n:]
	}
	return path
}

// routeOf finds the order-matcher's endpoint of a plain path and the id in it.
//
// It looks at orders first, which are the path of admission, without a map. The id is a slice of
// path, checked for length by the caller. It allocates nothing.
func routeOf(path []byte) (r route, id []byte) {
	switch string(path) {
	case "/orders":
		return routeOrders, nil
	case "/orders/batch":
		return routeBatch, nil
	case "/trades":
		return routeTrades, nil
	}
	if rest, ok := cutPrefix(path, "/orders/"); ok {
		id, tail := cutSegment(rest)
		switch {
		case len(id) == 0:
			return routeNone, nil
		case len(tail) == 0:
			return routeOrder, id
		case string(tail) == "/cancel":
			return routeCancel, id
		case string(tail) == "/replace":
			return routeReplace, id
		case string(tail) == "/why":
			return routeOrderWhy, id
		}
		return routeNone, nil
	}
	if r, ok := plainRoutes[string(path)]; ok {
		return r, nil
	}
	if rest, ok := cutPrefix(path, "/log/tile/"); ok && len(rest) > 0 {
		return routeTile, rest
	}
	if rest, ok := cutPrefix(path, asOfPrefix); ok {
		return asOfRoute(rest)
	}
	if rest, ok := cutPrefix(path, "/book/"); ok {
		if id, tail := cutSegment(rest); len(id) > 0 && len(tail) == 0 {
			return routeBook, id
		}
	}
	if rest, ok := cutPrefix(path, "/risk/control/accounts/"); ok {
		if id, tail := cutSegment(rest); len(id) > 0 && string(tail) == "/limits" {
			return routeRiskAccountLimits, id
		}
	}
	if rest, ok := cutPrefix(path, "/contracts/"); ok {
		switch id, tail := cutSegment(rest); {
		case len(id) > 0 && len(tail) == 0:
			return routeContract, id
		case len(id) > 0 && string(tail) == "/why":
			return routeContractWhy, id
		}
	}
	return routeNone, nil
}

func cutPrefix(b []byte, prefix string) (rest []byte, ok bool) {
	if len(b) >= len(prefix) && string(b[:len(prefix)]) == prefix {
		return b[len(prefix):], true
	}
	return nil, false
}

// cutSegment splits b before its first slash. The tail begins with that slash; it is empty when
// there is none.
func cutSegment(b []byte) (segment, tail []byte) {
	for i, ch := range b {
		if ch == '/' {
			return b[:i], b[i:]
		}
	}
	return b, nil
}

// parseUint reads a decimal number without sign or leading zeros. At most 20 digits and 2^64-1; ok
// is false beyond. There is one text for every number, so an id has one spelling.
func parseUint(b []byte) (n uint64, ok bool) {
	if len(b) == 0 || len(b) > 20 || b[0] == '0' && len(b) > 1 {
		return 0, false
	}
	for _, ch := range b {
		if ch < '0' || ch > '9' {
			return 0, false
		}
		d := uint64(ch - '0')
		if n > (1<<64-1-d)/10 {
			return 0, false
		}
		n = n*10 + d
	}
	return n, true
}
