package bundle

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"posttrade/journal/evidence/verify"
)

// Version is the version of bundle.json. Another one is refused.
const Version = 1

// The files of a bundle. Tiles have the names that verify.TilePath gives.
const (
	ManifestName   = "bundle.json"
	GenesisName    = "genesis.json"
	SnapshotName   = "snapshot.zst"
	AttestedName   = "snapshot.checkpoint"
	RecordsName    = "records.zst"
	EdgesName      = "edges"
	CheckpointName = "checkpoint"
	maxRecordsLen  = verify.MaxRecord
)

// Digest is how many of something there are, and the SHA-256 of all of them, side by side, in hex.
type Digest struct {
	Count  uint64 `json:"count"`
	SHA256 string `json:"sha256"`
}

// Manifest is bundle.json. It is not signed: Verify computes everything that it says again.
type Manifest struct {
	Version int `json:"version"`
	// Origin is the name of the log, which the signed head must have too.
	Origin string `json:"origin"`
	// From is the first command of fills, blotter and report. The records may begin before it.
	From uint64 `json:"from"`
	// To is the last command of the bundle.
	To uint64 `json:"to"`
	// Snapshot: the records begin behind it; 0: at the genesis.
	Snapshot uint64 `json:"snapshot"`

	// Fills are the 64-byte fills of the range, Blotter its blotter rows, a line of JSON each, and
	// Report the lines of its regulatory report.
	Fills   Digest `json:"fills"`
	Blotter Digest `json:"blotter"` // its blotter rows, a line of JSON each
	Report  Digest `json:"report"`  // the lines of its regulatory report

	// Files has the SHA-256 of the parts, in hex, by name.
	Files map[string]string `json:"files"`
}

// Text is bundle.json. There is one text of a manifest, so that parseManifest can compare.
func (m *Manifest) Text() []byte {
	text, err := json.MarshalIndent(m, "", " ")
	if err != nil {
		panic(err) // plain numbers and strings
	}
	return append(text, '\n')
}

// parseManifest reads bundle.json. There is one text of a manifest, so no bit of it is without
// meaning.
//
// The error is a *verify.Refusal. Whether the files exist is not looked at.
func parseManifest(text []byte) (*Manifest, error) {
	m := &Manifest{}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(m); err != nil {
		return nil, refuse(fmt.Sprintf("%s byte %d", ManifestName, d.InputOffset()), "%v", err)
	}
	if again := m.Text(); !bytes.Equal(again, text) {
		return nil, refuse(fmt.Sprintf("%s byte %d", ManifestName, differs(again, text)),
			"it is not written as bundles are")
	}
	if m.Version != Version {
		return nil, refuse(ManifestName, "version %d, this program reads %d", m.Version, Version)
	}
	if m.From == 0 || m.To < m.From || m.Snapshot >= m.From {
		return nil, refuse(ManifestName, "a range of %d to %d behind a snapshot at %d", m.From, m.To,
			m.Snapshot)
	}
	parts := m.parts()
	for _, name := range slices.Sorted(maps.Keys(m.Files)) {
		if !slices.Contains(parts, name) {
			return nil, refuse(ManifestName, "it names %q, which is no part of such a bundle", name)
		}
	}
	for _, sum := range append(slices.Sorted(maps.Values(m.Files)), m.Fills.SHA256, m.Blotter.SHA256,
		m.Report.SHA256) {
		if raw, err := hex.DecodeString(sum); err != nil || len(raw) != verify.HashBytes ||
			Sum([32]byte(raw)) != sum {
			return nil, refuse(ManifestName, "%q is no SHA-256 in hex", sum)
		}
	}
	return m, nil
}

// parts are the files that a manifest names: all but itself and the tiles, which the signed head
// binds.
func (m *Manifest) parts() []string {
	parts := []string{GenesisName, RecordsName, EdgesName, CheckpointName}
	if m.Snapshot > 0 {
		parts = append(parts, SnapshotName, AttestedName)
	}
	return parts
}

// refuse words a refusal that blames the bundle.
func refuse(where, format string, args ...any) error {
	return &verify.Refusal{Where: where, Why: fmt.Sprintf(format, args...),
		Blames: verify.BlameBundle}
}

// Sum is a hash as manifests write it.
func Sum(hash [32]byte) string { return hex.EncodeToString(hash[:]) }

// differs is the first byte in which a and b differ.
func differs(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}
