// Package note writes and reads operators' notes: what stands in the journal beside an operator's
// act, so that every member and every replay can say by whose hand, from where and why.
//
//	act that is a command     note part 0, part 1, ... | the commands of the act
//	act that is none          note part 0, part 1, ...
//	                          +-------- one submission: all of it is sequenced, or nothing --------+
//
// A part is an OPERATOR_NOTE command. The text of a note is one JSON object in UTF-8; it is cut
// into pieces of at most 64 bytes, between two characters, and travels where client order ids do:
// into the journal's blocks, the tail, the consensus log and the transfer to another member.
//
// The note comes first. So a crash of a single node in the middle of a commit can leave a note
// without its act, but no act without its note. Each part carries a hash of the commands that it is
// about (matcher.ActsHash), and a reader believes a note only when they follow.
//
// The engine changes nothing when it decides a part. Old value and new value are what the edge knew
// when the act was submitted.
//
// Any goroutine may use the package; a Reader belongs to one.
package note
