// Package outbox publishes the changes of one control source on its durable
// stream, and makes sure that the stream says what the database says.
//
//	outbox rows, unpublished, by version ─► Publish (message id, expected last id) ─► ack ─► mark
//	        ▲                                                                           │
//	        └───────── Compare, at the start and after every doubt ◄── the stream ◄─────┘
//
// The outbox is the record, never the stream: rows keep the sequence under which
// the stream has them, none is ever dropped, and what a stream has lost is
// published again. The stream in turn is told which message it must have last, so
// that it refuses a gap or another order by itself.
//
// What Compare finds, and what follows:
//
//	stream and marks agree                       go on
//	the stream has versions that are not marked  acknowledged and not noted: mark them, if they are the same bytes
//	the stream lacks versions that are marked    it has lost them: publish those of this epoch again
//	it lacks versions in the middle of those     alarm; they cannot be put back, replicas that meet
//	                                             the gap take a snapshot; go on
//	messages of another hand                     alarm, count; go on behind them
//	messages with our signature that the         alarm; publish nothing until an operator has bumped
//	database does not have under their version   the epoch: it was restored from a backup
//	rows missing among those that wait           the same
//
// Whose a message is, the outbox decides: the source's own are what it has, byte for
// byte, under their version. Each carries a signature too, made with a key that is
// drawn once and lies beside the source's counter. A message that the outbox does
// not have is the source's all the same when it is signed: the database has
// forgotten it. Anything else is of another hand, whatever id it has, and no replica
// may judge it (Own). What the build before has published has no signature; until a
// publisher has found stream and database to agree, and drawn the key, an id is taken
// for the source's. An id that another hand has used is lost to us for as long as the
// stream's window of ids lasts: the version goes out under another, account:7:<part of
// its signature>.
//
// Rows of an epoch before the source's are superseded, not published: whoever
// hears of an epoch takes a snapshot, which holds what they said. A stream that
// drops its oldest messages for a limit of age goes empty after a quiet time, and
// is then filled again from the first version of the epoch.
//
// Rows are published in strict version order and never past one that failed. One
// goroutine runs it; Wake, Doubt, Own, Strange, Behind and the counters may be used
// from any.
package outbox
