package matcher

import "crypto/sha256"

// StateHash is the SHA-256 of the snapshot that WriteSnapshot would write now.
// Engines that have applied the same commands have the same hash, whether they
// lived through them, replayed them or were restored in between. Cost: that of
// a snapshot. Owner only.
func (e *Engine) StateHash() [sha256.Size]byte {
	h := sha256.New()
	if err := e.WriteSnapshot(h); err != nil {
		panic("matcher: state hash: " + err.Error()) // a hash does not refuse to be written to
	}
	return [sha256.Size]byte(h.Sum(nil))
}
