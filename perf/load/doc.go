// Package load sends requests at a given rate, whether or not the requests before are answered, as
// independent clients do. It times each request from when it was due.
//
//	Arrivals ─► due times ─► Run ─► Target.Send
//	                          ▲        ┊
//	  latency = answer - due  └─── Target.Poll
//
// A load generator that waits for an answer before it sends the next request stops sending just
// when the answers get slow, and then reports that everything was fast. Here a stall is charged to
// every request that was due while it lasted: to the requests that could not be sent in time as
// well as to those in flight.
//
// A Target answers requests: an engine in this process, connections to a server, sessions. It never
// blocks; Run sends and polls from one goroutine on a thread of its own. Constant and Poisson say
// when requests are due. Saturate finds the rate at which a target is saturated, for a curve from a
// tenth of that rate up.
//
// Time comes from a Clock, so that every statement above is tested without waiting.
package load
