// Package bootstrap brings the universe of one control source into the replica and keeps it
// current. There is one Bootstrap per source; a fault of one source never affects the other.
//
//	        Follow, confirmed      Fetch, verified            up to the stream's last version
//	bootstrapping ──► buffering ──► Install ──► installed ──► apply newer deltas ──► ready
//	    ▲                                                                             │ delta: apply
//	    │ back-off, 100 ms doubling to 30 s, ended by the broker's return             │
//	    └─ quarantined ◄── gap, version_regression, epoch_change, checksum_failure, ──┘
//	                       count_mismatch, buffer_overflow, malformed, disconnected
//
// The subscription comes first and delivers only new messages. The snapshot is fetched once the
// subscription is confirmed, so that every change is in one of the two or in both. Deltas are
// judged in the order of the stream: each must carry the version after its predecessor's. Those at
// or below the snapshot's watermark are late and are skipped; those above it are applied. A
// byte-identical copy of the last delta is ignored and counted.
//
// What holds:
//   - No part of a snapshot is used before all of it has been verified.
//   - A snapshot of another history is not used. Its epoch is not the stream's, or it is below the
//     stream's last version or below what was applied, or it lacks the change of the stream's last
//     message. A source with a database restored from a backup stays out until its epoch is bumped.
//   - Where the publisher runs beside the replica (Options.Behind), a stream that is quiet because
//     changes do not reach it does not count as a source without changes.
//   - The goroutine that finds the fault, the reader or the applier, revokes readiness in the same
//     call, before it does anything else.
//   - Between two applied deltas no version is missing, and no delta is applied twice within a
//     round.
//   - While a snapshot is under way at most BufferCapacity deltas are held. Once it is installed
//     the stream itself is the buffer: the reader waits.
//
// Run owns the state; the reader is a goroutine of the round; any goroutine may call Status. An
// error of the Sink (an engine that is stopping) is not a fault of the source: it is logged, and
// the round is tried again.
package bootstrap
