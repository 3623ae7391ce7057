package verify

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
)

// algCosignature is the type of a witness key (C2SP tlog-cosignature, version 1).
const algCosignature = 4

// errCosigner reports text that is no witness key.
var errCosigner = errors.New("not a witness key: <name>+<hash>+<base64 of 4 and the public key>")

// cosigner checks the cosignatures of one witness. It is a note.Verifier and does not change.
type cosigner struct {
	name string
	// hash tells keys of one name apart; it is the beginning of the SHA-256 of name and key.
	hash uint32
	key  ed25519.PublicKey
}

// NewCosigner reads the key of a witness. Package note reads only keys of its own type, so this is
// done here. Any other text than the one way to write the key is an error.
func NewCosigner(vkey string) (note.Verifier, error) {
	name, rest, _ := strings.Cut(vkey, "+")
	hash, encoded, _ := strings.Cut(rest, "+")
	number, err := strconv.ParseUint(hash, 16, 32)
	if err != nil || len(hash) != 8 || name == "" || strings.ContainsAny(name, " \n\t") {
		return nil, errCosigner
	}
	raw, err := base64.StdEncoding.Strict().DecodeString(encoded)
	if err != nil || len(raw) != 1+ed25519.PublicKeySize || raw[0] != algCosignature {
		return nil, errCosigner
	}
	sum := sha256.Sum256(append([]byte(name+"\n"), raw...))
	if want := binary.BigEndian.Uint32(sum[:]); want != uint32(number) {
		return nil, fmt.Errorf("%w: its hash is %08x", errCosigner, want)
	}
	return &cosigner{name: name, hash: uint32(number), key: raw[1:]}, nil
}

// Name implements note.Verifier.
func (c *cosigner) Name() string { return c.name }

// KeyHash implements note.Verifier.
func (c *cosigner) KeyHash() uint32 { return c.hash }

// Verify implements note.Verifier: eight bytes of time, then the signature over both and the note.
// The time is what the witness says; nothing compares it with a clock.
func (c *cosigner) Verify(text, sig []byte) bool {
	if len(sig) != 8+ed25519.SignatureSize {
		return false
	}
	signed := fmt.Appendf(nil, "cosignature/v1\ntime %d\n", binary.BigEndian.Uint64(sig))
	return ed25519.Verify(c.key, append(signed, text...), sig[8:])
}
