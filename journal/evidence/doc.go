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
//
// The way of a head, and what each step makes sure of:
//
//	step        the shadow has decided up to the stable head; full tiles are on the disk
//	sign        the partial tiles of this size are on the disk, the note is signed
//	witnesses   with a quorum: enough of them have cosigned; without one the next steps come first
//	checkpoints the note is appended and synced: it cannot be forgotten
//	checkpoint  the file that readers and restarts look at first
//	show        proofs that wait for the head go on
//
// Goroutines of a Log:
//
//   - Run follows the journal, writes the files and signs. It alone changes the tree.
//   - After a resume, a second one compares the whole history with the files, once.
//   - With witnesses, one asks them and publishes what they have cosigned.
//   - Source, Prover, State and MemberTree may be called from anywhere; Peers.Run is a loop of its
//     own.
//
// Two kinds of errors: a contradiction (ErrContradiction) stops the log for good; anything else,
// such as a full disk or a witness that is away, is kept in State.Failed and tried again.
package evidence
