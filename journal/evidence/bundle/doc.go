// Package bundle has the files of a folder with everything that an auditor needs to check a range
// of a journal alone, and checks such folders; package export writes them. It needs neither a
// journal nor a file system, so it runs in a browser too.
//
//	bundle.json          the range, what it holds, and the SHA-256 of every other file
//	genesis.json         the genesis record
//	snapshot.zst         the engine's state before the first record; not in a bundle from sequence 1
//	snapshot.checkpoint  the signed head that names the snapshot
//	records.zst          every record of the range: length u16, then the record of package verify
//	edges                hashes of the records that share a leaf with the range and are not in it
//	checkpoint, tile/    the signed head, and the tiles that bind the range to it
//
// A bundle discloses all of its range, and with the genesis record the secret of the log's salts.
//
// Verify replays the records through the engine: every decision and fill is computed again and
// compared byte by byte, every leaf is compared with the tree of the signed head, and the blotter
// rows and the regulatory report of the range are made from what the engine has decided. A bundle
// that begins at sequence 1 proves everything; one that begins at a snapshot proves everything
// behind it, and the snapshot is what the signer says.
//
// All functions block, hold one engine, and may be called from any goroutine.
//
// The bytes of the two files that are no JSON and no note; numbers are big endian:
//
//	records.zst  each command: u16 length, record; then each of its fills: u16 length, record
//	edges        u32 n, n hashes of 32 bytes: the records before the range in its first leaf
//	             u32 m, m hashes: the records behind the range in its last leaf
//
// Order of the checks: the signed head, the manifest's range against it, an older head if one is
// given, the genesis record as leaf 0, the snapshot, then the records as the engine decides them,
// the last leaf and at the end the digests of the manifest. The first that fails is the Refusal.
package bundle
