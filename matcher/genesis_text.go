package matcher

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Marshal returns the record's text: JSON with the fields in the order of the struct. The same
// record gives the same bytes.
func (g *Genesis) Marshal() []byte {
	text, err := json.Marshal(g)
	if err != nil {
		// Plain numbers and strings: this cannot happen.
		panic(fmt.Sprintf("matcher: marshal genesis: %v", err))
	}
	return text
}

// ParseGenesis reads a record that Marshal wrote. An unknown field is an error, because it would be
// a limit that this build cannot keep.
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
	return g, nil
}

// PublicGenesis returns a record's text without its secret, for callers. A record without a secret
// gives the text itself.
func PublicGenesis(text []byte) []byte {
	g, err := ParseGenesis(text)
	if err != nil || g.ClientKey == "" {
		return text
	}
	g.ClientKey = ""
	return g.Marshal()
}
