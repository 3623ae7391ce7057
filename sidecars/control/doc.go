// Package control defines what the two control sources and the replica that follows them exchange:
// records, deltas, snapshots, and the checksum that both sides compute over the same bytes.
//
//	account-service ──┐ snapshot over HTTP: records, watermark, checksum
//	reference-data  ──┤                                              ├──► bootstrap ─► gate, engine
//	                  └ deltas over a durable stream, one a version ──┘
//
// A source numbers its changes 1, 2, 3... without a hole, in the order in which they were
// committed. A record carries the version of its last change. A snapshot carries the highest
// version that it includes, the watermark. A source gets a new epoch when its database has
// lost changes.
//
// Reading is strict: an unknown field, a record out of order or an impossible version is an error,
// and no part of the message is used. The package uses no network, no database and no engine.
package control
