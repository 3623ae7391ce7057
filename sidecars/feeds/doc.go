// Package feeds carries the changes of the control sources into the engine.
//
//	SQL outbox ─► outbox ─► JetStream ─► bootstrap ─► Sink ─► desk ─► engine ─► gate
//	                            └── snapshot over HTTP ──▲
//
// A Feed is one source on its way: seeding, publishing, following. A Sink turns records
// into sequenced commands; the gate takes them over from the engine's own events. Stream is
// what the outbox needs of the broker, and the fetcher gets a source's snapshot over HTTP.
//
// One goroutine uses a Sink, that of its bootstrap; Why may be called by any. Nothing here
// decides whether a source is ready: package bootstrap does, and Sink.SetState shows it on
// the gate.
package feeds
