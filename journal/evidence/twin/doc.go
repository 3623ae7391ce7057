// Package twin makes the SHA-256 of two messages at once.
//
//	p ->  lane 1 |  four rounds of p, four of q, ...  -> a
//	q ->  lane 2 |                                    -> b
//
// A processor with instructions for SHA-256 waits for the result of each before it begins the next
// one of the same message. Two messages fill each other's waits: a block takes two thirds of the
// time. The transparency log hashes six short messages or more for each command, which need not
// wait for each other.
//
// What holds: the sums are those of crypto/sha256, which does the work on processors without these
// instructions, two by two. Nothing is kept between calls; any goroutine may call.
package twin
