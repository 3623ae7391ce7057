// Package matcher makes the decisions: a deterministic engine that turns sequenced commands into
// events. The same commands give the same events on every machine.
//
//	             ┌────────────────────────── Engine ──────────────────────────┐
//	Command ───► │ idempotency ► screening ► ladder of the security ► fills   │ ───► Event …
//	64 bytes     │     keys       accounts      orders, levels      positions │      128 bytes
//	             └──────────────┬──────────────────────────────────▲──────────┘
//	                     WriteSnapshot                        ReadSnapshot
//
// An Engine is a library with no globals. New makes an engine from a Genesis. Apply sequences and
// decides one command; Replay decides one that already has its sequence. ApplyBatch and ReplayBatch
// do the same for many commands, and faster. None of them reads a clock, does I/O, takes a lock,
// iterates a map or allocates; time arrives inside the command. The engine writes events straight
// into the slots of an Outlet: the output ring of the live engine, or a private buffer of a replay.
// Stage is the live engine's loop between the two rings.
//
// One goroutine owns an Engine. A reader of its state asks that goroutine, follows the engine's
// events, or restores a second Engine from a snapshot.
//
// What must hold after every command (Engine.check asserts this list but for invariant 1, which
// needs the history of fills; the model of package matchertest compares positions):
//
//  1. Per security the positions over all accounts sum to the net quantity of market trades and
//     force fills, which have one side only; crossed trades sum to zero.
//  2. No order is filled beyond its quantity: leaves are the unexecuted quantity, 0 exactly
//     when the order is filled; a cancelled order keeps the leaves that it did not execute.
//  3. No book is crossed at rest, and an order rests exactly when it is open.
//  4. Reservations of every account and position equal what its open orders need.
//  5. Every remembered key is found under its family, and the oldest are forgotten first.
//  6. The retained terminal orders are exactly the terminal orders in the pool.
//  7. Contracts ascend by id, up to the last sequence applied.
//  8. A position has an average price, above 0, exactly when it is not flat.
//
// A record's version names the rules that decide it (rules.go), so a journal of an older build
// replays to the state that it had. An order or trade that version 2 admits takes no account beyond
// a judged limit: position and use of credit count everything that is open on a side at the highest
// price that it can execute at, and an order's own notional counts in the same way. Concentration
// is valued at the price that is judged, and in version 3 at those of the account's open orders
// that can execute behind the command; a market price that rises later can carry a position over
// that limit. These three limits do not apply to an order that only reduces a position, and none of
// them applies to a force fill.
//
// Money is whole millionths in an int64. The engine checks every sum and product that a decision
// depends on. One that does not fit is a refusal with the reason of the limit that was being
// judged. Only the cash that an account has paid or received saturates at the end of the int64
// range: both sides' credit checks refuse from there on.
//
// Capacities begin as the genesis record says. A CAPACITY_CONTROL raises them and moves the tables
// to larger ones. No other command allocates; its cost follows what the tables hold.
//
// An OTC booking makes a contract and nothing else: no order, no position, no use of credit. The
// engine keeps the terms of a contract permanently and does not value, net or exercise them. The
// cost of a booking does not depend on the number of contracts.
//
// Older builds, which did not decide bookings, knew their records and refused each as INVALID. No
// edge of those builds could write one. A journal without such a record replays to the same events
// and state as in those builds. A journal into which another program put such a record does not,
// and the comparison with its snapshots reports it.
//
// The package does not verify tokens, keep client order ids, know names of accounts, or store
// anything: the edge, the recorder and the journal do.
package matcher
