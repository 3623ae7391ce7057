// Package httpapi is the HTTP edge: it turns requests into commands and queries, waits for what
// they need, and answers.
//
//	socket ─► framedConn ─► fasthttp ─► server ─► route ─► handler ─┬─► gate ─► desk ─► answer
//	          ambiguous     limits      in-flight  raw     token,   │   screen  ring,
//	          framing: 400              limit,     bytes   body,    │           journal
//	                                    recover            404, 403 └─► SQL, index, history
//
// Four services use the same hardened server. OrderMatcher admits orders, trades, controls and
// bookings of swaps and swaptions, sets the marker of the risk extract, and reads what the engine
// has decided. It also shows the journal's history: the regulatory report, which streams, and the
// full-history index. TradeProcessor shows and settles the trade rows, reconciles, analyses costs,
// takes closing marks and mints tokens for development. AccountService and ReferenceData, the two
// control sources, list and change their tables and show the snapshot that a replica starts from; a
// setting says where they ask for tokens. A service embeds service, its requests embed
// serviceRequest: the token, the body, the query and the answer are read and written in one place.
//
// In a cluster a Relay stands in front of each service and keeps its listener open while the
// member's role changes:
//
//	                                             ┌─► the service that stands here
//	listener ─► server ─► route, method ─► Relay ┤
//	                                             └─► forwarder ─► the leader's Relay
//
// The leader receives, unchanged, all writes, all reads with X-Consistency: confirmed, and all
// requests to services that run on the leader only. Its answers come back unchanged; long ones are
// streamed.
//
// The contract fixes the order of checks: sizes, route and method, 401, 403 for a missing admin
// claim, the body and the query (400), 404 for the object, 403 for its account, a known client
// order id, the state of the order that is amended (409), journal and sources (503), screening,
// sequencing. Before it is sequenced an admission only reads memory. A handler runs on the
// goroutine of its connection and blocks there, without spinning, until it has the answer.
//
// What holds:
//   - A 2xx of an admission is sent only after the command is durable. A read is answered only
//     after everything it shows is durable.
//   - A request that is answered with 4xx was not sequenced, except a 422, 404 or 409 that names
//     its sequence: the edge could not know this outcome before.
//   - A 503 with "sequenced":false can be repeated. The outcome of other 5xx is unknown.
//   - Once Shutdown of a service was called no handler begins: requests on connections that are
//     still open get such a 503. When Shutdown has returned nil no handler runs.
//   - Between the decoded order or booking and its answer this package allocates nothing.
//   - The trade-processor asks for a token wherever a trade or an account shows, also while
//     admission does not. Each of its calls to other parts has a deadline.
//   - A member sends a request on once. It sends it a second time only when the first member has
//     said NOT_LEADER and "sequenced":false. Where no byte of the request was handed to a
//     connection the answer is 503; where one was and no whole answer came, 504.
//   - A report that cannot be finished ends its connection without the last chunk: it never looks
//     whole. Its memory does not depend on its length.
//
// Transport (server, framing, deadline, silentconns, drain) and relay (relay, forward, forwardwire)
// are not rooms of their own. Their doors would be wider than 20 names, and both take from the rest
// the problems that they answer with, the routes and the counts.
//
// The package does not know which part makes sequences durable: the installation passes in desk and
// Durability. After an answer it keeps nothing of the request but counts. Of what a caller sent it
// logs the subject, rights and life of a minted token, what the note of an operator's act has
// (subject, address, reason, object, old and new values), the range of a report that was cut, and
// with LogAccess the line of each request (access.go). No other package imports fasthttp. The admin
// listener uses net/http, for the standard pprof and Prometheus handlers. So does the forwarder's
// transport: it tells which connection a request uses, and it streams trailers.
package httpapi
