// Package why explains one decision of the engine: which check made it, the two sides of that
// check, and the commands that put them there.
//
//	journal ──► shadow before the command ──► the checks' judgement ──► rule, observed, limit
//	   │                    └──► replayed ──► decision, fills, queue
//	   └──► read backwards ──► because: the control, the price, orders and fills
//
// What holds:
//
//   - The reason is the one that the history has. Rule, observed and limit come from the engine's
//     own checks (matcher.Judge), in the state before the command. Nothing is judged twice.
//   - An explanation is a function of the history up to the head: the same on every member.
//   - Everything in it is of the command's account, of the whole market (prices, securities) or of
//     the installation (limits, controls). The order on the other side of a fill is of another
//     account: Hide removes those that a caller may not see.
//
// Any goroutine. The package does not know of tokens or HTTP.
//
// What an explanation costs: the moment before the command (package asof), some moments more for an
// accepted order, and reading backwards to each cause. Two are made at a time, each on a thread of
// low priority.
package why
