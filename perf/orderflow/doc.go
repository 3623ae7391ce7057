// Package orderflow reads and makes streams of orders to send through a venue.
//
//	LOBSTER files ──► Lobster ──► Event{Steps, Want}   a day of a real book, with the answer
//	our CSV form ───► Reader ───► Step                 what Writer wrote
//	a seed ─────────► Synthetic ► Step                 as many as asked for, in bounded memory
//
// A Step is one request in the terms of the HTTP contract: a new order, a cancel, a replace, a
// market trade or a price. Orders are named by their client order id, because the venue's own id is
// known only once the venue has answered. The sender of the steps keeps the table from one to the
// other.
//
// # From LOBSTER's messages to orders
//
// LOBSTER publishes what became visible in the first L levels of a book: one
// message an event and one row of 2L levels after it. The translation must reach
// each published row by sending ordinary orders to a venue that really matches.
//
//  1. Start. Row 1 is the book after message 1. Each of its levels is sent as one
//     order, the seed of that level; if message 1 added an order, that order is
//     sent by its own id behind the rest of its level.
//  2. Message 1 (add) is a limit order. Message 2 (partial cancel) shrinks the named
//     order by a replace at its price, so it keeps its place. Message 3 (delete)
//     cancels it. Message 4 (execution) is an immediate-or-cancel order of the other
//     side, for the message's size at the message's price, from another account. 5
//     (hidden execution), 6 (auction) and 7 (halt) move no visible order: no step.
//  3. An id that no message has added rested before the file began, or was added while
//     its level was out of sight. It is part of its level's seed, so 2 and 3 shrink the
//     seed by the message's size. Where the named order has less left than the message
//     takes (because the venue rightly filled an older order first), the rest
//     comes off the level's other orders, seeds first. Such messages are counted.
//  4. The window's edge. Messages tell nothing about levels worse than the L-th, so
//     when a level within is used up, row k shows one that no message explains. Before
//     event k each level of row k that is strictly worse than the L-th level of row k-1
//     is made to hold what row k says: a missing quantity is sent as a further seed, a
//     quantity too many is taken off its orders, a level that should not be there is
//     cancelled. That is invisible in row k-1 by construction. Nothing at or better than
//     the L-th level of row k-1 is ever read from the book file: those levels are what
//     the venue must have computed itself. Stats counts what rule 4 did.
//
// The translation keeps a small price-time book of its own, only to know which order an execution
// filled. It does not judge the venue: Want does.
//
// This package sends nothing and measures nothing. Each value of its types belongs to one
// goroutine.
package orderflow
