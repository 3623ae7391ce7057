// Package load sends requests at a given rate whether or not the ones before have been
// answered, as the world does, and times each from when it was due.
//
//	Arrivals ─► due times ─► Run ─► Target.Send
//	                          ▲        ┊
//	  latency = answer - due  └─── Target.Poll
//
// A load generator that waits for an answer before it sends the next request stops
// asking just when the answers get slow, and then reports how fast everything was.
// Here a stall is charged to every request that was due while it lasted: to those
// that could not be sent in time as well as to those that were under way.
//
// Target is whatever answers: an engine in this process, connections to a server,
// sessions. It never blocks; Run sends and polls from one goroutine on a thread of its
// own. Constant and Poisson say when requests are due, Saturate finds the rate that a
// target ends at, for a curve from a tenth of it up.
//
// Time comes from a Clock, so that every statement above is tested without waiting.
package load
