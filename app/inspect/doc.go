// Package inspect is what posttrade inspect, why and what-if print: the past of a journal, read
// from its files, also while a server has it open. It changes nothing.
//
//	journal's files -> Past -+-> the documents of the HTTP service at a sequence -> table or JSON
//	                         +-> why: one decision explained
//	                         +-> what-if: a range decided again, and what differs
//
// A place in the past is an input sequence; none stands for the head at the moment of Open. The
// documents are made by the code that answers HTTP, so both show the same of the same sequence.
//
// Errors name what the caller asked for: a sequence beyond the head, an id that is not known there.
// Damage of the journal is the journal's own error and ends the command. One goroutine.
package inspect
