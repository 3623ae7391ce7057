package leaf

import (
	"encoding/hex"
	"errors"

	"posttrade/journal/evidence/verify"
	"posttrade/matcher"
)

// SaltKey is the evidence key of a journal: that of its genesis record, or the hash of a genesis
// record that has none. A record without a key is of an older build; its hash is no secret to a
// reader that has the record.
func SaltKey(g *matcher.Genesis, seed [32]byte) (verify.Key, error) {
	if g.EvidenceKey == "" {
		return verify.Key(seed), nil
	}
	raw, err := hex.DecodeString(g.EvidenceKey)
	if err != nil || len(raw) != len(verify.Key{}) {
		return verify.Key{}, errors.New("evidence: evidenceKey of the genesis is not 32 bytes in hex")
	}
	return verify.Key(raw), nil
}

// Genesis is the data of leaf 0, whose only record is the genesis record's text. Its count is 1 and
// its first sequence 0.
func Genesis(key *verify.Key, genesis []byte) []byte {
	leaf := verify.Leaf{Count: 1, Root: verify.RecordHash(key.Salt(0, 0), genesis)}
	return leaf.Append(nil)
}
