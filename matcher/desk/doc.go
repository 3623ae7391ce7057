// Package desk is how this process hands in commands and gets durable answers.
//
//	caller       Acquire ─► Command, SetClientID ─► Submit ─► Wait ················► Answer ─► Release
//	                                                  │ ClaimN, copy, Publish         ▲
//	                                             INPUT RING ─► matcher ─► OUTPUT RING │ wake
//	recorder                                              Observe (fills Answers) ─┐  │
//	committer                                                    doneQueue ◄───────┘  │
//	                                                             Durable(seq) ────────┘
//
// A Ticket carries 1 to MaxBatch commands through the engine. They are
// claimed in one piece, so they are sequenced one after the other with nothing
// between them. Each gets an Answer: the decision, and what became of the
// command's own order by the end of it. Wait returns when all are durable.
//
// The tickets are divided among the kinds of callers (Shares): requests of HTTP, sessions
// of shared memory, and the sidecars of this process. What one kind holds is never missing
// to another, and requests and sessions leave a part of the input ring free, so that a
// crowd of one kind cannot shut the others out. Of the buffers of large batches a pool
// keeps only so many; the rest goes with its use.
//
// Each command carries a correlation id, which the engine hands back with its
// first event (Event.Ref): ticket, place in the ticket, and the ticket's
// generation, so that an event of an earlier use means nothing. Ids with the top
// bit set belong to others; so does 0.
//
// Who calls what: any goroutine Acquire, Fail and the metrics; the ticket's
// holder everything on a Ticket; the recorder Observe and ClientID, for every
// event in order; the committer Durable, in order, for what the recorder has
// observed. Observe comes before Durable of the same sequence.
//
// What holds:
//   - A ticket is with exactly one of: the pool, its holder, the engine. One whose
//     holder gave up after ErrTimeout stays out until its answer has come, then
//     returns to the pool by itself.
//   - Wait returns nil only after Durable has reached the last command's sequence.
//   - After ErrFull, ErrClosed or ErrFailed of Submit nothing was sequenced. After
//     ErrTimeout or ErrFailed of Wait the outcome is unknown; after ErrRefused
//     nothing was sequenced, and never will be.
//   - After Fail nobody waits any more, nothing is submitted any more, and no
//     ticket that was out is used again.
//   - A round trip of a used ticket allocates nothing and sets no timer, but about one in
//     a time-out. Observe costs a few nanoseconds for a command that nobody waits
//     for, and takes no lock.
//
// The desk starts no goroutine but the short-lived ones of its timers, decides
// nothing and stores nothing.
package desk
