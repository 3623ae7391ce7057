// Package session lets processes of the same machine hand in commands and read answers through
// shared memory.
//
//	client process                     │ this process
//	                                   │
//	Order ─► command ring ─────────────┼─► poller ─► judge ─► gate ─► desk ─► INPUT RING ─► …
//	 (the client writes, the server    │      ▲
//	  copies out, then judges)         │      └── Wake, when the committer has raised the watermark
//	Next ◄── event ring ◄──────────────┼── poller, or Wake while it rests: durable ones, oldest first
//	 (read-only in the client)         │
//	DropCopy, Trades,                  │
//	Market ◄─────────── event ring ◄───┼── feeder ◄── tap ◄── recorder (Observe)
//	                                   │
//	socket: hello, token, descriptors ─┼── one goroutine a connection; its end is the session's end
//
// Invariants:
//
//   - The server trusts nothing that a client can write. It copies a command out of its slot first,
//     and decodes it strictly from the copy. It loads a cursor once and compares it with its own
//     numbers; positions are masked. A cursor that no correct client writes ends that session, with
//     a reason, and disturbs no other session.
//   - Data that the client only reads lies in a region of its own, sealed so that only the server
//     can ever write it. Both regions are sealed against shrinking and growing before they are
//     shared, so no access to them faults.
//   - Form, order and account are checked here, in the order of the HTTP interface; package
//     admission decides the rest for both. A client may send only ORDER_NEW, ORDER_CANCEL,
//     ORDER_REPLACE, TRADE_NEW, SWAP_BOOK and SWAPTION_BOOK. A token is judged at hello and again
//     in every second in which the session sends. An expired token ends the session unless it was
//     renewed.
//   - A Decided that a client can read is as durable as a 2xx. Every command that was taken has
//     exactly one Answer. Answers to commands that were handed in come in the order of the
//     commands. A command that was turned down is answered at once. So is one whose answer is in
//     the views: a repeated client id, an order that has ended. It waits until that is durable.
//   - A session has at most Options.Quota commands on their way, and no more than its event ring
//     has room for answers. Further commands stay in its ring, which fills up: the client sees a
//     full ring, and the engine is not affected. When a client does not read its answers, the
//     server takes no more of its commands, and no other session waits.
//   - Tickets of the desk and places in the input ring are divided (share.go): one half belongs to
//     the sessions, the same share for each, and the other half goes to the first session that
//     asks. Tickets that a session keeps, for example because its fills find no room, do not reduce
//     the own share of another session. The desk keeps the sessions' tickets apart from those of
//     HTTP and of the sidecars.
//   - No goroutine waits for a feed's reader: a slow reader loses records and is told how many
//     (Gap). After an overrun of the tap, when the feeder itself was too slow, the number counts
//     the lost events of all accounts. It is then an upper bound: the reader may see fewer of them.
//   - A Top holds the best levels as they are after the command of its sequence, which is durable.
//     A reader of Market gets the best levels of every security that has had orders, then the end
//     mark, then each change. After a Gap it gets all of them again.
//   - A session uses two mappings and two descriptors, one goroutine, its place among
//     Options.MaxSessions and its tickets. All of them are released when its socket ends.
//
// A client that dies, at whatever point, has the same effect as one that closes its socket.
// Commands that were handed in are decided and stand. Resting orders stay on the book (cancel them
// over another session or HTTP). Commands that were not taken yet are dropped. As after a closed
// HTTP connection, the client id settles unanswered commands: the same id sent again returns the
// first decision.
//
// # Why a slot has 128 bytes
//
// A command is 64 bytes and a client id up to 64. They share one slot, so that no command spans two
// slots. One position then is one command and one answer, a client that dies between two slots
// leaves no half command, and the server needs no state between looks. The price is one more cache
// line to copy when there is no id.
//
// # Callers
//
// The installation: Open, Run on a goroutine of its own, Close before the matcher stops. The
// recorder: Observe, for every event. The goroutine that calls desk.Durable, Refuse or Fail: Wake
// afterwards, which writes a few answers itself when the poller rests (park.go has the rules of
// that loan). The poller keeps a thread and one of Go's processors; app/engine counts it among the
// hot threads (procs.go).
//
// The poller serves its sessions in turn and idles like every other stage (ring.Strategy). While
// there is no session, poller and feeder rest as ordinary goroutines and cost nothing. It parks on
// one word of its own and on the doorbell of each session at once (futex_waitv, Linux 5.16; before
// that it naps half a millisecond), so a client can wake the server without sharing a word with any
// other client. An eventfd would cost one more descriptor per session on either side, and the
// client would still have to check the same word first.
//
// # The socket
//
// SOCK_SEQPACKET, one frame a message, little endian. Every frame starts with 16 bytes:
//
//	0  u32 magic 0x31535450 "PTS1"   4 u16 version 1   6 u16 kind   8 u32 bytes of the frame
//	12 u32 status
//
//	kind         sent by  body, from offset 16
//	1 Hello      client   u32 role (1 orders, 2 drop copy, 3 trades, 4 market), u32 command slots,
//	                      u32 event slots (0 = the server chooses; rounded up to a power of two,
//	                      16 to 16384), u32 0, token
//	2 Welcome    server   status 0: u64 session, u64 bytes of region 1, u64 offset of the client's
//	                      page, u64 bytes of region 2, u32 command slots, u32 event slots,
//	                      u32 quota, 3 x u32 0;
//	                      with it SCM_RIGHTS: region 1 (commands), region 2 (events).
//	                      Any other status: the reason as text, and the connection is closed
//	3 Renew      client   a token of the same subject
//	4 Renewed    server   status 0 or 3, the reason as text
//	5 Lookup     client   a ticker
//	6 Found      server   u32 security id, 0 = none
//	7 Goodbye    server   status and reason: the session is over
//
// Statuses: 0 ok, 1 bad frame, 2 version, 3 token, 4 too many sessions, 5 impossible cursor,
// 6 shutdown, 7 no memory, 8 unknown role, 9 token expired, 10 the server stands aside: its history
// is in doubt. A hello must come within 2 s.
//
// # Region 1: commands, written by the client
//
//	0      header page (package ring), for checks
//	4096   i64 published   the client: number of commands written, ever; store with release
//	4224   i64 consumed    the server: number of commands taken; their slots are free
//	4352   u32 doorbell    see below
//	8192   slots           command n (from 0) at 8192 + 128 * (n & (slots-1))
//	page   i64 consumed    the client: number of records read, ever; store with release
//	+128   u32 waiter      the client's own doorbell
//
// A slot, 128 bytes:
//
//	0   u16 56, u16 1, u16 111, u16 1          header of the command record
//	8   u64 correlation id                     the client's; comes back in every record about it
//	16  i64 0
//	24  i64 limit x 1e6                        0 = market order; of a booking the fixed rate
//	32  i64 0
//	40  u32 order                              cancel and replace; of a booking its days; else 0
//	44  u32 account
//	48  u32 security                           of a booking its convention; of cancel and replace 0
//	52  i32 quantity                           of a replace the new total; of a cancel 0
//	56  u32 0
//	60  u8 type                                1 new, 2 cancel, 5 trade, 11 replace, 12 swap,
//	                                           13 swaption
//	61  u8 side                                0 buy, 1 sell; of cancel and replace 0
//	62  u16 flags                              of a new order at most one of 2 IOC, 4 FOK,
//	                                           8 post only; else 0
//	64  64 bytes client id                     printable ASCII, padded with zeros; of a cancel none
//
// # Region 2: events, read-only in the client
//
//	0      u64 magic "PSTDEVT1", u32 version 1, u32 slot bytes 128, u64 slots, u64 bytes, u64 session
//	4096   i64 published   the server: number of records written, ever; load with acquire
//	8192   slots           record n at 8192 + 128 * (n & (slots-1))
//
// A record, 128 bytes (wire.Record has the words):
//
//	0   u8 kind        1 answer, 2 fill, 3 copy, 4 trade, 5 gap, 6 name (a copy's client id, from
//	                   offset 64), 7 top (below)
//	1   u8 code        of an answer: 0 decided, 1 malformed, 2 not entitled, 3 not found, 4 conflict,
//	                   5 not ready, 6 busy, 7 unavailable, 8 unknown, 9 refused by the gate and not
//	                   sequenced
//	2   u8 type of the command; of a copy the kind of the event
//	3   u8 side        4 u8 status        5 u8 reason        6 u16 flags
//	8   u64 correlation id                16 u64 sequence, 0 = not sequenced
//	24  i64 time, epoch milliseconds      32 i64 price x 1e6: execution or limit
//	40  i64 last price x 1e6              48 u64 trade sequence
//	56  u32 order      60 u32 account     64 u32 security    68 i32 quantity
//	72  i32 leaves, -1 = not stated       76 i32 last quantity
//	80  u32 fills that follow             84 u32 era         88 u64 records missed (gap)
//	96  i64 position   104 i64 average cost x 1e6            112 i64 limit x 1e6       120 u64 0
//
// An order is named by its reference and its era: its id over HTTP is ord-<era * 2^32 + order>.
//
// An answer's fills follow it directly, in order, with nothing between. For a repeated client id
// (flag 256) the sequence, the order and the reason of a refusal are those of the first decision.
// The other fields show the order as it is now, without fills. Of an order that has ended and is no
// longer held the status is 255: not stated. Of a market trade it is FILLED (2); last price and
// trade sequence are 0, and HTTP has them. An order whose command is being decided is shown as far
// as that has come. A conflict (code 1) has the sequence under which it was refused, 0 when it was
// not sequenced; of a repeated replace whose order had ended, with flag 256, those of the first.
//
// A reason belongs to its status. With REJECTED (4) it is why the command was refused. With
// CANCELED (3) it is why the rest of the order was cancelled, such as PRICE_COLLAR for a market
// order that may go no further; it is 0 when the owner or the time in force cancelled it.
//
// A top holds a security's best levels: kind, flags, sequence, time and security at the offsets of
// every record, and
//
//	88  i64 bid price x 1e6    96  i64 its quantity   104 i64 ask price x 1e6   112 i64 its quantity
//	120 u32 orders at the bid  124 u32 at the ask
//
// A side without orders has 0 in its three fields. With flag 512 a top repeats the state and is not
// a change: at the beginning and after a gap there is one for each security, then one of security 0
// as their end. A top follows the trades of its command. A command that changes no best level has
// no top.
//
// The feeder keeps a book of its own for this, from the events and, when it begins, from the rows
// of the views (tops.go). It does so only while a session reads it.
//
// # Doorbells
//
// A doorbell is 0 (awake), 1 (parked) or 2 (woken early). To ring one: store the cursor, then a
// full memory barrier, then load the doorbell; if it is 1, compare and swap it to 0 and on success
// FUTEX_WAKE it, without the private flag. To park: swap it from 0 to 1, a full barrier, look at
// the cursor once more, then FUTEX_WAIT for 1 with a time-out, then store 0. A server that waits
// for room in an event ring looks again by itself, every half millisecond: room for answers, or for
// the answers of commands not taken yet.
//
// # Times
//
// Every command is timed from the look that found it in the ring to the flush that shows its
// answer, in powers of two of a nanosecond. Sessions gives the times by session, Metrics the sum of
// all.
//
// The package does not decide commands, does not store them, does not know HTTP, and does not keep
// client ids: the recorder takes them from the desk.
package session
