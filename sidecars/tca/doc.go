// Package tca is transaction-cost analysis. For every executed trade it finds the price that was in
// force when its order arrived, the time-weighted average price (TWAP) of the window before its
// execution, and the cost of the trade against both, signed, in basis points.
//
//	shadow engine ─► Run ─► index ─┬─► samples     price history, a tree of blocks
//	  its events             │     ├─► arrivals    one entry a fill, by tradeSeq
//	                         │     └─► checkpoint  what is open, and the lengths
//	                         ▼
//	SQL row (store.Trade) ─► Report, Summary
//
// Everything is derived from the journal: the index follows a second engine that replays the
// durable commands. So the index survives a restart, and lost or damaged parts are made again. It
// never delays an order.
//
// Definitions:
//
//   - A sample is a PRICE_TICK that was applied or the price of a fill, unless the engine has
//     marked it as older than the market price (matcher.EventLate): then it never was the price in
//     force. Samples have the order of the sequence. A sample takes force at its own event time.
//     When its clock ran backwards, which is possible only for records of version 1, it takes force
//     at the time of the sample before it. So the price in force is a function of time. Of several
//     samples at one millisecond only the last is ever in force for any time.
//   - The TWAP is taken over [executedAt - Window, executedAt]. The weight of a price is the number
//     of milliseconds that it was in force inside the window; the price in force at the window's
//     start is included. Time before a security's first sample has no weight; when nothing has
//     weight there is no TWAP. Commands that are sequenced after a trade cannot move its TWAP.
//   - The arrival price is the price of the latest sample by sequence when the command that
//     accepted the order was decided, before that command's own fills; of a market trade, when it
//     was booked. arrivalAt is that command's event time. A replace does not move an arrival, and
//     neither does a force fill: the order arrived once.
//   - Slippage is (execution - benchmark) / benchmark x 10000, negated for a sale, so positive is
//     worse. It is computed from the exact TWAP, not from the rounded one, and rounded once, after
//     the sign, to two decimals, half up: a tie goes towards plus infinity, 0.125 to 0.13 and
//     -0.125 to -0.12.
//   - A report describes the SQL row. The row is not a fill of the journal when it was inserted by
//     hand, or when its account, security, side, quantity, price or time was edited. Then the
//     report is computed from the row and has no arrival.
//
// All arithmetic is on integers; there is no float.
//
// What holds:
//
//   - Memory does not grow with the history: it is one partly filled block per level and security
//     (4 KiB, three or four levels at most), an entry for every open order, and a cache of fixed
//     size.
//   - Blocks are immutable and checksummed; files only ever grow after the part that the checkpoint
//     covers. A checkpoint appears whole or not at all, after the blocks that it depends on are
//     synced.
//   - A checkpoint that is damaged, of another genesis, or of a history that the journal does not
//     have is not used: the index is built again from the first command. The same happens when a
//     block of the checkpoint turns out to be damaged when it is read.
//
// Run has one goroutine and is the only writer; it should run on a thread of low priority
// (journal.Politely). Any goroutine may ask for reports and summaries, while Run follows.
package tca
