package matcher

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Marshal returns the record's text: JSON with the fields in the order of the
// struct, the same bytes for the same record.
func (g *Genesis) Marshal() []byte {
	text, err := json.Marshal(g)
	if err != nil {
		panic(fmt.Sprintf("matcher: marshal genesis: %v", err)) // plain numbers and strings: cannot happen
	}
	return text
}

// ParseGenesis reads a record that Marshal wrote. A field it does not know would
// be a limit that this build cannot keep, so it is an error.
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

// PublicGenesis is a record's text as callers may see it: without its secret. That of a
// record that has none is the text itself.
func PublicGenesis(text []byte) []byte {
	g, err := ParseGenesis(text)
	if err != nil || g.ClientKey == "" {
		return text
	}
	g.ClientKey = ""
	return g.Marshal()
}
