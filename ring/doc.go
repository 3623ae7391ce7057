// Package ring moves fixed-size messages between threads and between processes,
// through memory that the garbage collector never looks at. It knows nothing of
// trading and imports the standard library and x/sys/unix only.
//
// Every system has the rings. Only Linux has memory that processes share (Memfd, File, Attach),
// futexes, membarrier and threads pinned to a core. Elsewhere a region is memory of the Go heap, a
// waiter sleeps on a channel, and PinThread and a shared region are errors (ErrUnsupported).
//
// # What is here
//
//	Region     a mapped range: Anonymous, Memfd (sealed), File, Attach
//	Slab       a slice outside the heap: hot tables
//	SPSC       one producer, one consumer
//	MPSC       many producers, one consumer; full means refused, never waited for
//	Fanout     one producer, one gating reader, any number of free readers
//	Sequence   a padded number raised by one goroutine: a watermark
//	Idler      what a consumer does while there is nothing to do; Waiter is where it parks
//	Lease      a consumer that rests, lent to the goroutine that brings it work
//	SeqLock    rows that one goroutine rewrites and others read, without locks
//
// # A region
//
// The layout is the same in private and in shared memory. Spacing is 128 bytes,
// because the prefetcher fetches 64-byte lines in pairs.
//
//	0       header page   magic version kind slotBytes creator capacity bytes generation
//	4096    head          published (of an MPSC: claimed)     written by the producer(s)
//	4224    tail          consumed                            written by the consumer
//	4352    waiter        awake, parked, nudged               written by consumer and wakers
//	4608    laps          MPSC only: one uint32 a slot        written by the producers
//	page    slots         capacity times 64 or 128 bytes
//
// Positions are int64, start at 0 and only grow; position p lies in slot p & (capacity-1). A cursor
// is a count: slots in [consumed, published) are ready. A fresh ring has both at 0, and all
// intervals are half-open.
//
//	consumed          seen          published        claimed      limit      free
//	   |---- shown -----|--- ready ----|--- written ----|-- warm ----|--------|
//	   tail         consumer's       head           producer's   producer's producer's
//	 (shared)       private        (shared)          private      private    private
//
// # Invariants
//
//   - consumed <= seen <= published <= claimed <= limit <= free <= consumed+capacity.
//   - Each shared word has one writer, except an MPSC's claim cursor (compare and
//     swap) and the waiter (exchange).
//   - A slot belongs to the producer from claim to publish, to the consumer from Ready to Release,
//     and to neither at other times. Publish and Release are release stores, and reading a cursor
//     is an acquire load. There is no other ordering.
//   - Each side keeps in its handle its own position and a copy of the other side's. It reads the
//     other side's line only when that copy allows no further slot.
//   - In an MPSC position p is published exactly when its lap word is
//     p>>log2(capacity) + 1, in 32 bits. Neighbouring laps differ, which is enough.
//   - The producer of a Fanout never writes further than half a lap beyond what
//     is published, so slots of the half lap before that are whole.
//
// # Streams and single messages
//
// A cache line that two cores use travels there and back in 50 to 500 ns. In a stream, where many
// lines are on their way at a time, a line arrives every 3 to 6 ns. These rules keep an SPSC near
// the second figure:
//
//   - A producer asks for the lines of the slots to come, for writing, while it still fills others
//     (producer.warmUp). Stores leave a core in order, so a store to a line that the other core
//     holds delays all stores after it.
//   - A publication is one inlined store (storeRelease). The core hides the travel time of the
//     cursor's line behind the stores that it can buffer, so every store saved per message leaves
//     room in that buffer.
//   - A consumer that finds only a few slots at every look keeps its looks half a microsecond apart
//     while messages flow (pace.go). Without this distance it takes the cursor's line away after
//     every few publications, and both sides become slow. A look that finds nothing ends the
//     distance: a single message is never delayed, and a message in a flow at most half a
//     microsecond.
//   - ClaimSome, At and PublishTo save one private store in every message and a call once in many
//     messages: use them for many messages. Claim and Publish are for single messages.
//
// Floor and figures, two cores 360 to 470 ns apart (line there and back), 64-byte slots,
// nanoseconds a message, in private and in shared memory alike. The same steps in C, paced: 5.2 to
// 6.9 published singly, 5.0 to 5.4 in batches of 64. This ring by ClaimSome: 5.4 to 5.9 and 4.9 to
// 6.4; by Claim and Publish, singly: 8 to 10. A channel: 126. A round trip of single messages takes
// 1.1 to 1.45 times the line's, here and in C: first the cursor's line travels, then the slot's,
// which speculation mostly hides. The ring row of the performance run measures all of them.
//
// # Callers
//
// Every handle is for one producer goroutine and one consumer goroutine, or for many producers
// where the type says so; Depth, Cap, Published, Corrupt and Wake are for any goroutine. New…
// formats the region; OpenSPSC attaches another process. The owner that made a
// Region closes it after both sides have stopped.
//
// # Parking without lost wake-ups
//
// The publisher pays for a wake only when the consumer is parked. Otherwise it pays for two plain
// instructions:
//
//	publisher                          consumer
//	P1  store head (release)           C1  waiter = parked
//	P2  load waiter                    C2  barrier on all cores
//	P3  if parked: exchange, wake      C3  load head; if it moved: awake, return
//	                                   C4  futex wait while waiter == parked
//
// A wake-up is lost only if P2 reads "awake" and C3 reads the old head. On arm64 and under the race
// detector P1, P2, C1 and C3 are sequentially consistent, so in every order of the four one of the
// loads comes after both stores, and no wake-up is lost. On amd64 P1 is a plain MOV that P2 may
// overtake. There C2 is membarrier(2): it makes every core that runs a thread of this process pass
// a full barrier between C1 and C3. If that core's barrier comes after P1, P1 is visible before C3.
// If it comes before P1, then P2, which is later than P1, follows C1 and reads "parked". A process
// registers when it makes or opens a ring. So a StoreLoad barrier, some 20 cycles, is paid for once
// per park and not once per publication.
//
// The barrier for several processes (global expedited) may pass over a core: one that rested on a
// thread of the publisher's process when that process registered, until another process runs on the
// core. A test shows this. So where another process publishes (Idler.Shared, MultiWaiter), and
// where the kernel refuses membarrier, a sleep of 0.1 ms follows, far longer than a store buffer
// takes to drain, and C3 comes after it. A publisher that reads "parked" ends this sleep too.
//
// Between P3 and C4 the kernel compares the word under its own lock. Every sleep also ends by
// itself after 50 ms, in case a peer crashes or misbehaves. IdleStats.Rescues counts the sleeps
// that ended in this way although there was work; between correct peers it stays 0.
//
// A consumer with a Lease is lent from its last look (C3) until the sleep ends (C4). A producer of
// the same process then does not wake it: it borrows the consumer and does the work itself, which
// takes less time than a wake-up. lease.go describes the protocol. The matcher's Stage.Drive
// describes what this means for an order.
//
// # Peers that lie
//
// A region that another process can write is sealed against shrinking, so no access faults. Its
// header is checked once, field by field, from single loads. Addresses come from the checked copies
// and positions are masked, so no value in the region leads outside it. A cursor that no correct
// peer can have written stops the ring: Claim is nil, Ready is empty, Corrupt of an SPSC is true.
// The reader checks the content of a slot after copying it out. By leaving the waiter's word at
// "parked", a peer can make each of our publications pay for a wake of one thread.
//
// # Threads
//
// A goroutine that spins here holds its P while it spins. One that sleeps holds its P until the
// runtime's monitor notices the sleep, up to some 10 ms. So a process sets GOMAXPROCS to its
// default (the number of cores or the CPU limit) plus the number of such goroutines. Otherwise its
// other goroutines wait for them. The same holds for a thread of low priority that has work: it
// holds its P also while the kernel runs other threads.
//
// # The race detector
//
// The race detector watches Go memory only. Under -race, Anonymous and small slabs are Go memory,
// so the detector sees every slot. Memfds and files stay invisible to it, and data that one
// goroutine hands to another through them looks unsynchronised.
//
// # What it does not do
//
// No blocking calls with a deadline, no resizing, no variable-size messages, no recovery of an MPSC
// in which a producer died between claim and publish, no check of a slot's content.
package ring
