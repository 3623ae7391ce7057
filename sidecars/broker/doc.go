// Package broker is the only package that uses NATS. It gives the rest of the program streams that
// survive a power cut, publishing in an order that the stream itself enforces, a durable consumer,
// and a Following that reports when it may have missed messages.
//
//	             ┌ embedded: a server in this process, no listener, JetStream in Options.Dir
//	Broker ──────┤
//	             └ external: nats:// or tls://, first connection made on first use
//	   │
//	   ├─ EnsureStream, StreamInfo, Message, LastMessage    what a stream is and holds
//	   ├─ Publish, PublishBatch                             acknowledged, in order, or an error
//	   ├─ Consume                                           durable: every message until acknowledged
//	   ├─ Follow                                            new messages only, or ErrDisconnected
//	   └─ Notify, Subscribe                                 core NATS: at most once, nothing stored
//
// What holds (each has a test that would fail without it):
//
//   - Open never waits for an external server and never fails because of one. The embedded server
//     starts in the background when its store is slow or damaged. Until it runs State says why, and
//     every call answers ErrUnavailable.
//   - The embedded server syncs every write before it acknowledges it (SyncAlways), so a message
//     survives a power cut once Publish has returned. The server is started again, with back-off,
//     when JetStream gives up (a full disk) or does not start.
//   - The stream itself sends an Ack. After ErrUnavailable the message may or may not be in the
//     stream: publish it again with the same MsgID. Within the duplicates window the stream drops
//     the second copy and sets Ack.Duplicate.
//   - PublishBatch stops at the first failure. When every message names its predecessor
//     (ExpectLastMsgID) the stream refuses the messages that follow a lost one.
//   - Consume loses nothing: a message is acknowledged only after the callback returned nil or
//     acknowledged it; any other message is delivered again.
//   - The consumer of a Following exists before Follow returns, so no message published afterwards
//     is missed. A lost connection, a deleted consumer or three missed heartbeats end it with
//     ErrDisconnected, a hole in the stream's sequences with ErrGap.
//   - Credentials in a URL appear in no log line, error or State.
//
// Goroutines: every method may be called from any goroutine; a Following belongs to one. Callbacks
// of Subscribe run one at a time for each subscription. Close ends everything and leaves no
// goroutine behind.
//
// The package does not define the content of a message, keeps no outbox, and never deletes a stream
// or a message in it.
package broker
