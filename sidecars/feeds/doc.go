// Package feeds carries the changes of the control sources into the engine.
//
//	SQL outbox ─► outbox ─► JetStream ─► bootstrap ─► Sink ─► desk ─► engine ─► gate
//	                            └── snapshot over HTTP ──▲
//
// A Feed is the path of one source: seeding, publishing, following. A Sink turns records into
// sequenced commands; the gate takes them over from the engine's own events. Stream adapts the
// broker to the outbox, and the fetcher gets a source's snapshot over HTTP.
//
// What holds:
//
//   - A record reaches the gate only through the journal: every replay, and every member of a
//     cluster, comes to the same universe.
//   - A flag that an operator has set by hand stays until the source itself sets that flag again.
//   - A record for which the engine has no room stops neither the others nor the source.
//   - A message that another writer has put on the stream changes nothing (Following).
//
// The goroutine of a source's bootstrap uses its Sink; its reader calls SetState too; any goroutine
// may call Why and use Unknown. This package does not decide whether a source is ready: package
// bootstrap does, and Sink.SetState shows the state on the gate.
package feeds
