// Package desk hands in commands of this process and returns their durable answers.
//
//	caller      Acquire ─► Command, SetClientID ─► Submit ─► Wait ················► Answer ─► Release
//	                                                 │ ClaimN, copy, Publish         ▲
//	                                            INPUT RING ─► matcher ─► OUTPUT RING │ wake
//	recorder                                             Observe (fills Answers) ─┐  │
//	committer                                                   doneQueue ◄───────┘  │
//	                                                            Durable(seq) ────────┘
//
// A Ticket carries 1 to MaxBatch commands through the engine. It claims their slots in one piece,
// so they are sequenced one after the other with nothing between them. Each command gets an Answer:
// the decision, and the result for the command's own order. Wait returns when all commands are
// durable.
//
// The tickets are divided among the kinds of callers (Shares): requests of HTTP, sessions of shared
// memory, and the sidecars of this process. Tickets that one kind holds are never missing to
// another. Requests and sessions leave a part of the input ring free, so that a crowd of one kind
// cannot shut the others out. A pool keeps a limited number of the buffers of large batches; it
// drops the others after their use.
//
// Each command carries a correlation id, which the engine returns with the command's first event
// (Event.Ref): ticket, place in the ticket, and the ticket's generation, so that the desk ignores
// an event of an earlier use. Ids with the top bit set do not belong to a desk, and neither does 0.
//
// Any goroutine may call Acquire, Fail and the metrics. The ticket's holder may call everything on
// a Ticket. The recorder calls Observe and ClientID, for every event in order. The releaser of the
// answers, one goroutine at a time, calls Durable, in order, for what the recorder has observed.
// Observe comes before Durable of the same sequence.
//
// What holds:
//   - A ticket is with exactly one of: the pool, its holder, the engine. A ticket that its holder
//     gave up after ErrTimeout stays out until its answer has come, then returns to the pool by
//     itself.
//   - Wait returns nil only after Durable has reached the last command's sequence.
//   - After ErrFull, ErrClosed or ErrFailed of Submit nothing was sequenced. After ErrTimeout or
//     ErrFailed of Wait the outcome is unknown. After ErrRefused nothing was sequenced, and never
//     will be.
//   - After Fail no goroutine waits any more, nothing is submitted any more, and no ticket that
//     was out is used again.
//   - A round trip of a used ticket allocates nothing. It sets no timer, except about once per
//     time-out. Observe costs a few nanoseconds for a command without a waiting holder, and takes
//     no lock.
//
// The desk starts no goroutine except the short-lived ones of its timers, decides nothing and
// stores nothing.
package desk
