// Package leaf makes the leaves of the transparency log out of what an engine decides. It knows no
// journal: the log follows one with it, and a verifier of an export replays records with it, in a
// browser as well.
//
// A Builder belongs to one goroutine.
package leaf
