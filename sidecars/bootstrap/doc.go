// Package bootstrap brings the universe of one control source into the replica
// and keeps it current. There is one Bootstrap a source; a fault of one never
// touches the other.
//
//	        Tail, confirmed        Fetch, verified            up to the stream's last version
//	bootstrapping ──► buffering ──► Install ──► installed ──► apply what is above the watermark ──► ready
//	    ▲                                                                                            │ delta: apply
//	    │ back-off, 100 ms doubling to 30 s, ended by the broker's return                            │
//	    └──────────────── quarantined ◄── gap, version_regression, epoch_change, checksum_failure, ──┘
//	                                      count_mismatch, buffer_overflow, malformed, disconnected
//
// The subscription comes first and delivers only what is new; the snapshot is
// fetched when it is confirmed, so that every change is in one of the two or in
// both. Deltas are judged in the order of the stream: each carries the version
// after its predecessor's. Those at or below the snapshot's watermark are late
// and are skipped; those above it are applied. The last delta again, byte for
// byte, is ignored and counted.
//
// What holds:
//   - Nothing of a snapshot is used before all of it has been verified.
//   - Nor is a snapshot of another history: one whose epoch is not the stream's, that is
//     below the stream's last version or below what was applied, or that does not have
//     what the stream's last message says. A source whose database was restored from a
//     backup stays out until its epoch is bumped.
//   - Where the publisher is at hand (Options.Behind), a stream that is quiet because
//     changes do not reach it is not taken for a source without changes.
//   - Whoever finds the fault, the reader or the applier, revokes readiness in
//     the same call, before anything else is done.
//   - Between two deltas that are applied there is never a version missing, and
//     none is applied twice within a round.
//   - While a snapshot is under way at most BufferCapacity deltas are held. Once
//     it is installed the stream itself is the buffer: the reader waits.
//
// Run owns the state; the reader is a goroutine of the round; Status may be
// called from anywhere. What goes wrong in the Sink (an engine that is
// stopping) is no fault of the source: it is logged and tried again.
package bootstrap
