// Package prices sequences the market prices that other programs publish on the message
// broker, one subject a ticker, as POST /prices does those that it is sent.
//
// The broker calls Take for each message, and Take never waits: a message that cannot be
// used, or that finds the feed full, is counted and dropped, because a later price replaces
// it. One goroutine, Run, hands the prices to the desk in batches.
package prices
