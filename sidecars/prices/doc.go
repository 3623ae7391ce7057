// Package prices sequences the market prices that other programs publish on the message broker, one
// subject per ticker, in the same way as POST /prices.
//
//	pricing.<TICKER> -> Take -> at most 8192 ticks -> Run -> desk, a batch at a time -> engine
//
// The broker calls Take for each message, and Take never waits. Run, one goroutine, passes what has
// come to the desk and waits until it is durable.
//
// What holds:
//
//   - A price is dropped and counted when it cannot be used (Malformed, Unknown) or when there is
//     no room (Dropped): a later price replaces it. So is each price while orders get STORAGE_FULL
//     or HISTORY_AHEAD: no command may lengthen the journal then.
//   - Times are milliseconds since 1970. A price without a time, or of the future, gets the present
//     moment, so it does not stay fresh for too long. One that is older than the market price is
//     sequenced, counted Late and changes nothing.
//   - A leader that loses the leadership drops its batch. Run ends without an error when the engine
//     stops, and with one when the engine refuses a price, which is a bug.
package prices
