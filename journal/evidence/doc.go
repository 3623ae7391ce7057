// Package evidence keeps the transparency log of a journal: a Merkle tree over the commands, their
// decisions and their fills, whose head is signed. With the public key of the log an outsider can
// check that a trade is what the engine decided, and that history has not been rewritten since an
// earlier head, even by the owner of disk and program.
//
//	journal, stable part ─► shadow engine ─► records ─► leaf of 256 commands ─► tree ─► tiles
//	                                            │ open leaf                        │
//	                                            └──────────► head, signed ◄────────┘──► witnesses
//
// The bytes are in package verify, which checks what this package writes. Here are the files below
// the folder evidence:
//
//	log.key, log.pub   the signer and its public key
//	checkpoint         the newest signed head
//	checkpoints        every head that was published, one after the other; append only
//	tile/...           C2SP tlog-tiles: hash tiles and entry bundles
//
// All but the key and checkpoints follow from the journal: what is deleted or half written comes
// back byte by byte. A file that says something else than the journal stops the log: nothing is
// signed from then on, the engine goes on, and State names the file.
//
// A Log has one goroutine (Run), at a low priority, on what is already on stable storage. It never
// slows an order; under a flow that takes the whole machine it falls behind, and catches up. A
// resumed Log reads its leaves from the tiles and starts its shadow at the newest snapshot; a
// second pass then compares the whole history once, at the lowest priority.
//
// A Prover makes proofs, on any goroutine: it replays the leaf of the record that was asked for.
package evidence
