// Package wire defines what the two sides of a session share: the records in the shared rings, the
// frames on the socket, the numbers in both, and the two mapped regions. The doc.go of package
// session draws the bytes for clients in any language; this package has the same bytes as Go
// structs.
//
// The package decides nothing, starts no goroutine and keeps no state except the cursors of a
// ring's end. Every integer is little endian, the byte order of the machines on which it runs.
package wire
