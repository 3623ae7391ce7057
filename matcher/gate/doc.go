// Package gate decides at the edge, from memory alone, whether a command is worth sequencing, and
// identifies its caller.
//
//	          edge goroutines (any number)                  writers (one at a time, writers.mu)
//	Verify ─► claims ─► Ready ─► Screen ─┐        ┌── SetAccount, SetSecurity …: start, control feeds
//	                             ▲       │        ├── Observe: the recorder, from engine events
//	                             └── image of atomic words ◄┘
//
// The image holds what screening needs of the engine's state: accounts, securities with their
// tickers, limits, policy, and the last price of each security. The engine is the authority and
// judges every command again; the gate only keeps hopeless commands away from it. The gate's
// verdict travels inside the command (Command.OrderRef), so that a replay repeats it. The record of
// an OTC booking has no room for a verdict: the edge hands it in without one, and the engine's
// verdict stands, whatever the gate's verdict was.
//
// What holds:
//   - Readers take no lock, allocate nothing, and do a bounded amount of work whatever writers
//     do, also while a writer is preempted in the middle of a write.
//   - A reader never sees a price with the time of another.
//   - After Observe of the events up to a sequence, prices, flags and tickers are those of the
//     engine at that sequence; older events change nothing.
//   - Tickers are only ever added. An id that Security has returned keeps its meaning.
//   - Ready is false while any source is not ready.
//
// Screen does not check what only the engine knows: positions, credit, the book, the number of
// contracts. A MARKET order without a market price passes, because the book may price it. The gate
// judges a purchase at the market at the end of the collar, and a sale at the market price; the
// engine also judges a sale at the best bid.
//
// Verifier checks tokens (JWT, HS256) with the standard library's cryptography. A token that it has
// verified before costs a look-up. The package stores nothing and starts no goroutine.
package gate
