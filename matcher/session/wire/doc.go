// Package wire is what a session's two sides agree on: the records in the shared
// rings, the frames on the socket, the numbers in both, and the two mapped
// regions. The bytes are drawn in package session's doc.go, for clients in any
// language; these are the same bytes as Go structs.
//
// It decides nothing, starts nothing and keeps no state but the cursors of a ring's
// end. Every integer is little endian, which is the byte order of the machines that
// this runs on.
package wire
