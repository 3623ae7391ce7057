// Package matcher is the deciding part: a deterministic engine that turns
// sequenced commands into events. Same commands in, same events out, on every
// machine, forever.
//
//	             ┌────────────────────────── Engine ──────────────────────────┐
//	Command ───► │ idempotency ► screening ► ladder of the security ► fills   │ ───► Event …
//	64 bytes     │     keys       accounts      orders, levels      positions │      128 bytes
//	             └──────────────┬──────────────────────────────────▲──────────┘
//	                     WriteSnapshot                        ReadSnapshot
//
// An Engine is a library with no globals. New makes one from a Genesis, Apply
// sequences and decides one command, Replay decides one that already has its
// sequence; ApplyBatch and ReplayBatch do the same for many, and faster. None of
// them reads a clock, does I/O, takes a lock, iterates a map or allocates; time
// arrives inside the command. Events are written straight into the slots of an
// Outlet: the output ring of the live engine, a private buffer of a replay. Stage
// is the live engine's loop between the two rings.
//
// One goroutine owns an Engine. Whoever wants to read its state asks that
// goroutine, follows its events, or restores a second Engine from a snapshot.
//
// What must hold after every command (Engine.check asserts exactly this list):
//
//  1. Per security the positions over all accounts sum to what market trades and
//     force fills, which have one side only, put there; crossed trades sum to zero.
//  2. No order is filled beyond its quantity: leaves are what is left of it, 0 exactly
//     when it is filled, and of a cancelled order what was not executed.
//  3. No book is crossed at rest, and an order rests exactly when it is open.
//  4. Reservations of every account and position equal what its open orders need.
//  5. Every remembered key is found under its family, and the oldest are forgotten first.
//  6. The retained terminal orders are exactly the terminal orders in the pool.
//  7. Contracts ascend by id, up to the last sequence applied.
//
// A record's version says which rules decide it (rules.go), so a journal of an older build
// replays to what it was. What version 2 admits leaves no account beyond a limit that was
// judged: position and use of credit count all that is open on a side at the most that it
// can execute at, and so does an order's own notional. Concentration is valued at the
// price that is judged; a price that rises later can carry a position over it. What only
// takes from a position is not judged by these three, and a force fill by none.
//
// Money is whole millionths in an int64. Every sum and product that a decision
// depends on is checked, and one that does not fit is a refusal with the reason
// of the limit that was being judged. Only the cash that an account has paid or
// received stands at the end of the int64 range instead of passing it: both
// sides' credit checks refuse from there on.
//
// Capacities begin as the genesis record says. A CAPACITY_CONTROL raises them, which moves
// tables to larger ones: the one command that allocates, and that costs what the tables hold.
//
// An OTC booking makes a contract and nothing else: no order, no position, no use
// of credit. Contracts are terms that are kept for good; nothing values, nets or
// exercises them. The cost of a booking does not depend on how many there are.
//
// Builds before bookings were decided knew their records and refused each as
// INVALID, and no edge of theirs could write one. A journal without any replays
// to the same events and state as it did there; one that somebody else put such
// a record into does not, and the comparison with its snapshots says so.
//
// The package does not verify tokens, keep client order ids, know names of
// accounts, or store anything: the edge, the recorder and the journal do.
package matcher
