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
//	Order, Cancel ... -> slot of the command ring -- Flush -> server -> event ring -> Poll, Next
//	Security, Renew   -> socket -> server -> socket
//
// What holds:
//
//   - Commands that are not flushed are invisible to the server, and lost with the session.
//   - The client never writes the event ring; its cursor there is in the command region.
//   - A reader that does not read stops the server from taking its commands, and nothing else.
//   - After the end of a session every record that came before it can still be read.
//
// The package reconnects nothing, repeats nothing and keeps no list of what is on its way: the
// caller does, by correlation id and client id.
package client
