// Package httpapi is the HTTP edge: it turns requests into commands, waits until
// the decision is durable, and answers.
//
//	socket ─► framedConn ─► fasthttp ─► server ─► route ─► handler ─► gate ─► desk ─► answer
//	          ambiguous     limits      in-flight  raw     token,     screen  ring,
//	          framing: 400              limit,     bytes   body,              journal
//	                                    recover            404, 403
//
// The order of checks is the contract's: sizes, route and method, 401, 403 for
// a missing admin claim, the body (400), 404 for the object, 403 for its
// account, readiness (503), screening, sequencing. Everything before sequencing
// reads memory only. A handler runs on the goroutine of its connection and
// blocks there, without spinning, until the desk has the durable answer.
//
// What holds:
//   - A 2xx of an admission leaves only after the command is durable; a read
//     leaves only after everything it shows is durable.
//   - A request that is answered with 4xx was not sequenced, except 422 and the
//     refusals of the engine behind a 404 or 409 that the edge could not see.
//   - A 503 with "sequenced":false can be repeated; other 5xx are unknown.
//   - Between the decoded order and its answer this package allocates nothing.
//
// It does not know who makes sequences durable (desk and Durability are handed
// in), keeps no state of its own but counters, and never logs what a caller
// sent. fasthttp is imported here and in the client only; the admin listener is
// net/http, for the standard pprof and Prometheus handlers.
package httpapi
