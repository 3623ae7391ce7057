package verify

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
)

// ProofVersion is the version of a proof. Check refuses any other.
const ProofVersion = 1

// Proof shows that one record is in a log: nothing else of the log, and of the records beside it
// only hashes.
//
// It is one line of JSON: binary members in base64, the note as text.
//
// The members, in their order:
//
//	{"version":1,"origin":"...","kind":"fill","id":"trd-1","inputSeq":12,"record":"<base64>",
//	"salt":"<base64>","recordIndex":3,"recordPath":["<base64>"],"leaf":"<base64>","leafIndex":1,
//	"treeSize":9,"path":["<base64>"],"checkpoint":"<note>","decoded":{...},"check":"<hex>"}
type Proof struct {
	// Version is ProofVersion. Origin and TreeSize repeat what the note says.
	Version int
	Origin  string
	// Kind is command or fill.
	Kind string
	// ID is trd-N, ord-N, SW-N, SWPT-N or the sequence: what the record was asked for by.
	ID       string
	InputSeq uint64

	// Record has the bytes that record.go says; Salt is what makes its hash unguessable.
	Record []byte
	Salt   [SaltBytes]byte
	// RecordIndex is its place in the small tree of its leaf, RecordPath the hashes beside its way to
	// the root of that tree, lowest first.
	RecordIndex uint64
	RecordPath  []Hash

	// Leaf has the 48 bytes of the leaf; nil: the record is in the open leaf, which the note's line
	// head is about.
	Leaf []byte
	// LeafIndex, TreeSize and Path lead from the leaf to the root in the note. Path is empty without
	// Leaf.
	LeafIndex uint64
	TreeSize  uint64
	Path      []Hash
	// Checkpoint is the note: the signed head, with all its signatures.
	Checkpoint []byte
	// Decoded is the record as JSON for people.
	Decoded []byte

	// check is the member of that name as it was read; nil: there was none.
	check []byte
}

// Append appends the proof as one line of JSON. Its last member, check, is the SHA-256 of the text
// before it: it finds accidents where no hash of the tree does, such as in an index.
func (p *Proof) Append(b []byte) []byte {
	m := p.members()
	sum := sha256.Sum256(m)
	m.text("check", hex.EncodeToString(sum[:]))
	return append(append(b, m...), "}\n"...)
}

// members is the text of all members but the last, in the order that proofs have. The SHA-256 of
// check is over exactly this text, without the closing brace.
func (p *Proof) members() members {
	var m members
	m.int("version", int64(p.Version))
	m.text("origin", p.Origin)
	m.text("kind", p.Kind)
	m.text("id", p.ID)
	m.uint("inputSeq", p.InputSeq)
	m.text("record", base64.StdEncoding.EncodeToString(p.Record))
	m.text("salt", base64.StdEncoding.EncodeToString(p.Salt[:]))
	m.uint("recordIndex", p.RecordIndex)
	m.hashes("recordPath", p.RecordPath)
	if p.Leaf != nil {
		m.text("leaf", base64.StdEncoding.EncodeToString(p.Leaf))
	}
	m.uint("leafIndex", p.LeafIndex)
	m.uint("treeSize", p.TreeSize)
	m.hashes("path", p.Path)
	m.text("checkpoint", string(p.Checkpoint))
	m.raw("decoded", p.Decoded)
	return m
}

// hashes writes a list of hashes in base64.
func (m *members) hashes(name string, list []Hash) {
	text := []byte{'['}
	for i := range list {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(base64.StdEncoding.AppendEncode(append(text, '"'), list[i][:]), '"')
	}
	m.raw(name, append(text, ']'))
}
