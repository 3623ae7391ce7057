// Package client is the Go end of a shared-memory session: it hands in commands and
// reads answers without a system call and without allocating, as long as both sides
// are awake.
//
// One goroutine sends (Order, Cancel, Replace, Trade, Send, Flush) and one reads (Poll,
// Next); they may be the same. Close, Err, Security and Renew are for any goroutine.
//
// Every command that was flushed gets exactly one Answer, with the correlation id that
// it was sent with, unless the session ends before: then its outcome is unknown, and
// the same client id sent again, in any session or over HTTP, tells it. Answers to
// commands that were handed in come in the order of the commands; a command that was
// turned down is answered at once, ahead of earlier ones.
//
// Load is a small harness: it keeps a window of commands on their way and takes the
// time of each.
package client
