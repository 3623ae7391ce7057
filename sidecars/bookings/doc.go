// Package bookings takes trades from the message broker into the projection, for programs
// that have no journal to follow.
//
//	trades.booking -> durable consumer "trade-processor" -> projection.BookLegacy -> table trades
//
// The journal's own path and this one may bring the same trade in any order; the projection
// books it once. What becomes of a message:
//
//   - acknowledged when its trade is in the database, or will be by the journal's own path;
//   - terminated when no retry could make it a trade, counted with the reason;
//   - left for a later delivery when the database cannot be reached.
//
// So a crash at any moment loses no trade and books none twice. One goroutine runs it, until its
// context ends.
package bookings
