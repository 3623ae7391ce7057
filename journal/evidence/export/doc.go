// Package export writes a range of a journal into a folder that proves itself; package bundle has
// the folder's files, and checks it.
//
// Write replays the range, writes its records and the hashes at its edges, copies the signed head
// and the tiles that a proof needs, and then checks the folder as a stranger would, with no other
// input. A folder that does not pass is an error that wraps evidence.ErrContradiction: the journal
// is not what was signed. The folder must be empty or not there. After an error it holds an export
// that is not whole and that no check accepts.
//
// A call blocks for the whole replay and holds one engine in memory.
//
// Steps, in order: the signed head and the genesis record; the newest snapshot before the range
// that a signed head names; records and edges from a replay that begins at the start of a leaf; the
// manifest; and the tiles, which the final check asks for one by one.
package export
