// Package outbox publishes the changes of one control source on its durable stream, and makes sure
// that the stream matches the database.
//
//	outbox rows, unpublished, by version ─► Publish (message id, expected last id) ─► ack ─► mark
//	        ▲                                                                           │
//	        └───────── Compare, at the start and after every doubt ◄── the stream ◄─────┘
//
// The outbox is authoritative, never the stream. Each row keeps its sequence on the stream, no row
// is ever dropped, and rows that a stream has lost are published again. Each message tells the
// stream which message must be its last, so that the stream itself refuses a gap or another order.
//
// What Compare finds, and what follows:
//
//	stream and marks agree                       go on
//	the stream has versions that are not marked  acknowledged, not noted: mark them, if they are
//	                                             the same bytes
//	the stream lacks versions that are marked    it has lost them: publish those of this epoch again
//	it lacks versions in the middle of those     alarm; they cannot be put back, replicas that meet
//	                                             the gap take a snapshot; go on
//	messages of another writer                   alarm, count; go on behind them
//	messages with our signature that the         alarm; publish nothing until an operator has bumped
//	database does not have under their version   the epoch: it was restored from a backup
//	rows missing among those that wait           the same
//
// The outbox decides which writer a message belongs to. The source's own messages are those that
// the outbox has, byte for byte, under their version. Each also carries a signature, made with a
// key that is drawn once and is stored beside the source's counter. A signed message that the
// outbox does not have is still the source's: the database has forgotten it. Any other message is
// of another writer, whatever its id, and no replica may judge it (Own). Messages of the previous
// build have no signature. Until a publisher has found that stream and database agree, and has
// drawn the key, a message with one of the source's ids counts as the source's. When another writer
// has used an id, the source cannot use it as long as the stream's window of ids lasts: the version
// is published under another id, account:7:<part of its signature>.
//
// Rows of an epoch before the source's are superseded, not published: a replica that meets a new
// epoch takes a snapshot, which holds the changes of those rows. A stream that drops its oldest
// messages for a limit of age becomes empty after a quiet time, and is then filled again from the
// first version of the epoch.
//
// Rows are published in strict version order and never past a row that failed. One goroutine calls
// Run; any goroutine may use Wake, CompareNow, Own, CountForeign, Behind and the counters.
package outbox
