// Package bookings takes trades from the message broker into the projection, for programs
// that have no journal to follow.
//
// The journal's own path and this one may bring the same trade in any order; the projection
// books it once. A message is acknowledged when its trade is in the database, terminated
// when no retry could make it a trade, and left for a later delivery when the database
// cannot be reached. One goroutine runs it.
package bookings
