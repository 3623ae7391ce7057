// Package flow makes the order flow with which books are measured, and the bare ladder with which
// they are compared.
//
//	Generate   one half new orders, four tenths cancels, one tenth takers around a
//	           wandering mid: the flow that the published figures were taken on
//	Realistic  mostly cancels and modifies on deep books, in five market regimes
//	Ladder     direct-indexed prices, no safety, no self-trade prevention: the floor
//
// Both generators are functions of their options and seed: the result is the same on every machine.
// They run their commands through a Ladder as they go, so that a cancel names a live order, a taker
// fills completely, and Result is what any correct book must produce.
//
// Only one goroutine at a time may use anything here. Nothing checks its input: this is not a book
// to trade on.
package flow
