// Package httpapi is the HTTP edge: it turns requests into commands and queries,
// waits for what they need, and answers.
//
//	socket ─► framedConn ─► fasthttp ─► server ─► route ─► handler ─┬─► gate ─► desk ─► answer
//	          ambiguous     limits      in-flight  raw     token,   │   screen  ring,
//	          framing: 400              limit,     bytes   body,    │           journal
//	                                    recover            404, 403 └─► SQL, index, history
//
// Four services stand on the same hardened server. OrderMatcher admits orders, trades and bookings
// of swaps and swaptions, controls, sets the marker of the risk extract, and reads what the engine
// has decided; it also shows the journal's history: the regulatory report, which streams, and the
// full-history index. TradeProcessor shows and settles the trade rows, reconciles, analyses costs,
// takes closing marks and mints tokens for development. AccountService and ReferenceData, the two
// control sources, list and change their tables and show the snapshot that a replica starts from;
// they ask for tokens where they are told to. A service embeds service, its requests embed visit:
// the token, the body, the query and the answer are read and written in one place.
//
// In a cluster a Relay stands in front of each service and keeps its listener open
// while the member's role changes:
//
//	                                             ┌─► the service that stands here
//	listener ─► server ─► route, method ─► Relay ┤
//	                                             └─► forwarder ─► the leader's Relay
//
// Writes, reads with X-Consistency: confirmed and all of what runs on the leader
// only go to the leader, as they came, and its answers come back as they are,
// streamed when they are long.
//
// The order of checks is the contract's: sizes, route and method, 401, 403 for
// a missing admin claim, the body and the query (400), 404 for the object, 403
// for its account, readiness (503), screening, sequencing. An admission reads
// memory only before it is sequenced. A handler runs on the goroutine of its
// connection and blocks there, without spinning, until it has the answer.
//
// What holds:
//   - A 2xx of an admission leaves only after the command is durable; a read
//     leaves only after everything it shows is durable.
//   - A request that is answered with 4xx was not sequenced, except 422 and the
//     refusals of the engine behind a 404 or 409 that the edge could not see.
//   - A 503 with "sequenced":false can be repeated; other 5xx are unknown.
//   - Once Shutdown of a service was called no handler begins: requests on connections
//     that are still open get such a 503. When it has returned nil none runs.
//   - Between the decoded order or booking and its answer this package allocates
//     nothing.
//   - The trade-processor asks for a token wherever a trade or an account shows,
//     also while admission does not. Whatever it asks has a deadline.
//   - What a member sends on is sent once. A second time it goes out only when the
//     first member has said NOT_LEADER and "sequenced":false. Where not a byte of
//     it was handed to a connection the answer is 503; where one was and no whole
//     answer came, 504.
//   - A report that cannot be finished ends its connection without the last
//     chunk: it never looks whole. Its memory does not depend on its length.
//
// It does not know who makes sequences durable (desk and Durability are handed
// in), and keeps nothing of a request when it is answered but counts. Of what a caller sent
// it logs no more than the subject and the life of a minted token and the range of a
// report that was cut. fasthttp is imported here and in
// the client only; the admin listener is net/http, for the standard pprof and
// Prometheus handlers, and so is the forwarder's transport, which tells the connection
// that a request goes out on and streams trailers.
package httpapi
