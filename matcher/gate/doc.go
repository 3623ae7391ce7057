// Package gate decides at the edge, from memory alone, whether a command is
// worth sequencing, and who its caller is.
//
//	          edge goroutines (any number)                  writers (one at a time, Gate.mu)
//	Verify ─► claims ─► Ready ─► Screen ─┐        ┌── SetAccount, SetSecurity, … : start, control feeds
//	                             ▲       │        ├── Observe : the recorder, from the engine's own events
//	                             └── image of atomic words ◄┘
//
// The image holds what screening needs of the engine's state: accounts,
// securities with their tickers, limits, policy, and the last price of each
// security. The engine is the authority and judges everything again; the gate
// only spares it what is hopeless, and its verdict travels inside the command
// (Command.OrderRef), so that a replay repeats it. The record of an OTC booking
// has no room for a verdict: it is handed in as it is, and what the engine says
// about it stands, whatever the gate said.
//
// What holds:
//   - Readers take no lock, allocate nothing, and do a bounded amount of work
//     whatever writers do, also while one is preempted in the middle of a write.
//   - A reader never sees a price with the time of another.
//   - After Observe of the events up to a sequence, prices, flags and tickers are
//     those of the engine at that sequence; older events change nothing.
//   - Tickers are only ever added. An id that Security has returned keeps its meaning.
//   - Ready is false as long as one source is not ready.
//
// Screen leaves out what only the engine knows: positions, credit, the book, how
// many contracts there are. A
// MARKET order without a market price passes, because the book may price it. A purchase at
// the market is judged at the end of the collar, a sale at the market price; the engine
// judges a sale at the best bid too.
//
// Verifier checks tokens (JWT, HS256) with the standard library's cryptography;
// a token that it has verified before costs a look-up. The package stores
// nothing and starts no goroutine.
package gate
