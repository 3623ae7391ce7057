// Package feeds carries the changes of the control sources into the engine.
//
//	SQL outbox ─► outbox ─► JetStream ─► bootstrap ─► Sink ─► desk ─► engine ─► gate
//	                            └── snapshot over HTTP ──▲
//
// A Feed is the path of one source: seeding, publishing, following. A Sink turns records into
// sequenced commands; the gate takes them over from the engine's own events. Stream adapts the
// broker to the outbox, and the fetcher gets a source's snapshot over HTTP.
//
// One goroutine uses a Sink, that of its bootstrap; any goroutine may call Why. This package does
// not decide whether a source is ready: package bootstrap does, and Sink.SetState shows the state
// on the gate.
package feeds
