package matcher

import "crypto/sha256"

// StateHash is the SHA-256 of the snapshot that WriteSnapshot would write now. Engines that have
// applied the same commands have the same hash, whether they applied them live, replayed them or
// were restored in between. It costs as much as a snapshot. Only the owner may call it.
func (e *Engine) StateHash() [sha256.Size]byte {
	h := sha256.New()
	if err := e.WriteSnapshot(h); err != nil {
		panic("matcher: state hash: " + err.Error()) // a hash never fails a write
	}
	return [sha256.Size]byte(h.Sum(nil))
}
