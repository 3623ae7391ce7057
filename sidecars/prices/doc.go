// Package prices sequences the market prices that other programs publish on the message broker, one
// subject per ticker, in the same way as POST /prices.
//
// The broker calls Take for each message, and Take never waits. A message that cannot be used, or
// for which the feed has no room, is counted and dropped, because a later price replaces it. One
// goroutine, Run, passes the prices to the desk in batches.
package prices
