// Package verify checks what the transparency log of a journal proves: that one record is in the
// log, that an older head of the log is a prefix of a newer one, and that the files of a log agree
// with each other and with the head. It also has the byte layouts of the log, which package
// evidence writes.
//
//	record ─ salt ─► small tree of a leaf ─► leaf, 48 bytes ─► big tree ─► root ─┐
//	                        │                                                    ▼
//	                        └── while the leaf is open: line "head" ────► signed checkpoint
//
// A leaf covers 256 commands, wherever a member has cut its blocks. Its small tree (RFC 6962) holds
// a record for each command with its decision and one for each fill. A record is hashed with a salt
// of its own, so a proof of one record says nothing of the records beside it. The big tree (RFC
// 6962) is over the leaves and is published as C2SP tlog-tiles with a C2SP signed note.
//
// The package needs no journal, no network and no operating system: it also compiles to
// WebAssembly. It trusts nothing that it reads. An error is a Refusal, which says what is not
// proven and what is at fault, or wraps ErrRead when there was nothing to judge. All functions may
// be called from any goroutine.
//
// Where to read what:
//
//	record.go, line.go     the bytes of records and leaves, and of the lines in them
//	hash.go, tree.go       salts and hashes; the big tree and its tiles
//	checkpoint.go          heads and their keys; cosign.go has the keys of witnesses
//	proof.go, check.go     one record: the file, and the check
//	prefix.go, tiles.go    an older head against a newer one
//	folder.go              a whole log
//	decoded.go             a record in words; refusal.go and say.go word the results
package verify
