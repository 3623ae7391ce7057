//go:build !amd64

package twin

// fast: other processors leave the work to crypto/sha256.
const fast = false

// blocks2 is not called.
func blocks2(*lanes, *byte, *byte, int) {}
