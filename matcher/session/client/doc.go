// Package client is the Go client of a shared-memory session. It hands in commands and reads
// answers without a system call and without allocating, as long as both sides are awake.
//
// One goroutine sends (Order, Cancel, Replace, Trade, Send, Flush) and one reads (Poll,
// Next); they may be the same. Close, Err, Security and Renew are for any goroutine.
//
// Every flushed command gets exactly one Answer, with the correlation id of the command, unless the
// session ends before. Then its outcome is unknown. The client learns it by sending the same client
// id again, in any session or over HTTP. Answers to commands that were handed in come in the order
// of the commands. A command that was turned down is answered at once, ahead of earlier ones.
//
// Load is a small harness: it keeps a window of commands on their way and measures the time of
// each.
package client
