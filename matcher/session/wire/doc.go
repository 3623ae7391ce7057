// Package wire defines what the two sides of a session share: the records in the shared rings, the
// frames on the socket, the numbers in both, and the two mapped regions. The doc.go of package
// session draws the bytes for clients in any language; this package has the same bytes as Go
// structs.
//
// What each side writes:
//
//	region 1   slots, published cursor    the client; the server copies a slot, then judges it
//	           consumed cursor            the server
//	           client's page              the client: how far it has read the events
//	region 2   all of it                  the server alone: the client maps it read-only
//	doorbells  one in each direction      both: one side parks on it, the other rings it
//	socket     one frame a message        both; the head of a frame is parsed before its body
//
// A change of a number, an offset or a size in this package is another protocol: raise Version with
// it.
//
// The package decides nothing, starts no goroutine and keeps no state except the cursors of a
// ring's end. Every integer is little endian, the byte order of the machines on which it runs.
package wire
