// Package flow makes the order flow that books are measured with, and the bare
// ladder they are measured against.
//
//	Generate   one half new orders, four tenths cancels, one tenth takers around a
//	           wandering mid: the flow that the published figures were taken on
//	Realistic  mostly cancels and modifies on deep books, in five market regimes
//	Ladder     direct-indexed prices, no safety, no self-trade prevention: the floor
//
// Both generators are functions of their options and seed: the same on every
// machine. They run their commands through a Ladder as they go, so that a cancel
// names a live order, a taker fills whole, and Result is what any correct book
// must yield.
//
// Nothing here is safe for use by more than one goroutine at a time, and nothing
// checks what it is given: this is not a book to trade on.
package flow
