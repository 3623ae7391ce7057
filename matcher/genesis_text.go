package matcher

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
)

// Marshal returns the record's text: JSON with the fields in the order of the struct. The same
// record gives the same bytes. The text has the secrets: it is for the journal, not for a client
// (PublicGenesis).
func (g *Genesis) Marshal() []byte {
	text, err := json.Marshal(g)
	if err != nil {
		// Plain numbers and strings: this cannot happen.
		panic(fmt.Sprintf("matcher: marshal genesis: %v", err))
	}
	return text
}

// ParseGenesis reads a record that Marshal wrote. An unknown field is an error, because it would be
// a limit that this build cannot keep. The form and the secrets are checked here, the values by
// New.
func ParseGenesis(text []byte) (*Genesis, error) {
	g := &Genesis{}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(g); err != nil {
		return nil, fmt.Errorf("matcher: genesis: %w", err)
	}
	if g.Format != GenesisFormat {
		return nil, fmt.Errorf("matcher: genesis format %d, this build reads %d", g.Format, GenesisFormat)
	}
	if _, err := ParseClientKey(g.ClientKey); err != nil {
		return nil, err
	}
	if key, err := hex.DecodeString(g.EvidenceKey); err != nil ||
		len(key) != 0 && len(key) != evidenceKeyBytes {
		return nil, fmt.Errorf("matcher: genesis evidenceKey is not %d bytes in hex", evidenceKeyBytes)
	}
	return g, nil
}

// evidenceKeyBytes is the length of Genesis.EvidenceKey before it is written in hex.
const evidenceKeyBytes = 32

// NewEvidenceKey returns the EvidenceKey for the genesis record of a new journal: 32 bytes of the
// system's random numbers, in hex.
func NewEvidenceKey() string {
	var key [evidenceKeyBytes]byte
	rand.Read(key[:]) // never fails
	return hex.EncodeToString(key[:])
}

// PublicGenesis returns a record's text without its secrets, for callers. A record without secrets
// gives the text itself. A text that ParseGenesis does not read gives null, because what it holds
// is not known.
func PublicGenesis(text []byte) []byte {
	g, err := ParseGenesis(text)
	switch {
	case err != nil:
		return []byte("null")
	case g.ClientKey == "" && g.EvidenceKey == "":
		return text
	}
	g.ClientKey, g.EvidenceKey = "", ""
	return g.Marshal()
}
