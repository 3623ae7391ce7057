// Package control is the language between the two control sources and the
// replica that follows them: records, deltas, snapshots, and the checksum that
// both sides compute over the same bytes.
//
//	account-service ──┐ snapshot over HTTP: records, watermark, checksum
//	reference-data  ──┤                                              ├──► bootstrap ─► gate, engine
//	                  └ deltas over a durable stream, one a version ──┘
//
// A source numbers its changes 1, 2, 3... without a hole, in the order in which
// they were committed. A record carries the version of its last change; a
// snapshot carries the highest version that it includes, the watermark. A source
// that lost its memory draws a new epoch.
//
// Everything here is read strictly: a field too many, a record out of order or a
// version that cannot be is an error and nothing is taken from the message. The
// package knows no network, no database and no engine.
package control
