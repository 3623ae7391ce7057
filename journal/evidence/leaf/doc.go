// Package leaf makes the leaves of the transparency log out of what an engine decides. It knows no
// journal: the log follows one with it, and a verifier of an export replays records with it, in a
// browser as well.
//
//	events -> Builder -> a record each, with its salt -> hashes -> small tree's root -> Full
//
// What holds: leaf 0 has the genesis record alone. Each later leaf has verify.LeafCommands
// commands, wherever a member has cut its blocks, each command's record before those of its fills.
// The bytes of a record and of its salt are a function of the events and of the journal's evidence
// key, so every member makes the same leaves. A Builder goes on from the hashes of an open leaf
// (Resume), without its records.
//
// Take wants the events of whole commands in order; anything else is a bug of its caller. A Builder
// belongs to one goroutine.
package leaf
