package verify

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"posttrade/matcher/strictjson"
)

// ProofVersion is the version of a proof.
const ProofVersion = 1

// Proof shows that one record is in a log: nothing else of the log, and of the records beside it
// only hashes.
type Proof struct {
	Version  int
	Origin   string
	Kind     string // command or fill
	ID       string // trd-N, ord-N, SW-N, SWPT-N or the sequence
	InputSeq uint64

	Record      []byte
	Salt        [SaltBytes]byte
	RecordIndex uint64 // in the small tree of its leaf
	RecordPath  []Hash

	Leaf       []byte // nil: the record is in the open leaf, which the note's line head is about
	LeafIndex  uint64
	TreeSize   uint64
	Path       []Hash
	Checkpoint []byte // the note
	Decoded    []byte // the record as JSON for people

	check []byte // as read; nil: there is none
}

// Append appends the proof as one line of JSON. Its last member, check, is the SHA-256 of the text
// before it: it finds accidents where no hash of the tree does, such as in an index.
func (p *Proof) Append(b []byte) []byte {
	m := p.members()
	sum := sha256.Sum256(m)
	m.text("check", hex.EncodeToString(sum[:]))
	return append(append(b, m...), "}\n"...)
}

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

// The bounds of what is read of a proof.
const (
	maxProof = 1 << 20
	maxPath  = 64
)

// ParseProof reads a proof strictly: every member once and no other, nothing behind it.
func ParseProof(text []byte) (*Proof, error) {
	if len(text) > maxProof {
		return nil, refuse("", BlameProof, "a proof of %d bytes", len(text))
	}
	p := &Proof{}
	r := proofReader{json: strictjson.NewReader(text), size: len(text)}
	seen := 0
	for r.json.BeginObject(); ; seen++ {
		key, ok := r.json.NextKey()
		if !ok {
			break
		}
		r.member(p, string(key))
	}
	if err := r.json.End(); err != nil {
		return nil, refuse(fmt.Sprintf("byte %d", r.json.Offset()), BlameProof, "%v", err)
	}
	want := 14
	if p.Leaf != nil {
		want++
	}
	if p.check != nil {
		want++
	}
	if seen != want {
		return nil, refuse("", BlameProof, "a member of the proof is missing")
	}
	return p, nil
}

type proofReader struct {
	json *strictjson.Reader
	size int
}

var (
	errMember = errors.New("a member that no proof has")
	errBase64 = errors.New("not base64, or of the wrong length")
	errPath   = errors.New("a path that no tree has")
)

func (r *proofReader) member(p *Proof, key string) {
	switch key {
	case "version":
		p.Version = int(r.uint())
	case "origin":
		p.Origin = r.text()
	case "kind":
		p.Kind = r.text()
	case "id":
		p.ID = r.text()
	case "inputSeq":
		p.InputSeq = r.uint()
	case "record":
		p.Record = r.bytes(0)
	case "salt":
		copy(p.Salt[:], r.bytes(SaltBytes))
	case "recordIndex":
		p.RecordIndex = r.uint()
	case "recordPath":
		p.RecordPath = r.hashes()
	case "leaf":
		p.Leaf = r.bytes(LeafBytes)
	case "leafIndex":
		p.LeafIndex = r.uint()
	case "treeSize":
		p.TreeSize = r.uint()
	case "path":
		p.Path = r.hashes()
	case "checkpoint":
		p.Checkpoint = []byte(r.text())
	case "decoded":
		p.Decoded = r.object()
	case "check":
		p.check = []byte(r.text())
	default:
		r.json.Fail(errMember)
	}
}

func (r *proofReader) uint() uint64 {
	n := r.json.Int()
	if n < 0 {
		r.json.Fail(strictjson.ErrRange)
		return 0
	}
	return uint64(n)
}

// raw is the text of the value that is due.
func (r *proofReader) raw() []byte {
	ahead := r.json.Ahead()
	r.json.Skip()
	if r.json.Err() != nil {
		return nil
	}
	return bytes.TrimSpace(ahead[:len(ahead)-(r.size-r.json.Offset())])
}

// text reads a string, which may hold line breaks.
func (r *proofReader) text() (s string) {
	if r.json.Peek() != strictjson.KindString {
		r.json.Fail(strictjson.ErrType)
		return ""
	}
	if raw := r.raw(); raw != nil {
		if err := json.Unmarshal(raw, &s); err != nil {
			r.json.Fail(strictjson.ErrSyntax)
		}
	}
	return s
}

// bytes reads base64; size 0 is any length.
func (r *proofReader) bytes(size int) []byte {
	text := r.text()
	if r.json.Err() != nil {
		return nil
	}
	b, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil || size > 0 && len(b) != size || base64.StdEncoding.EncodeToString(b) != text {
		r.json.Fail(errBase64)
		return nil
	}
	return b
}

func (r *proofReader) hashes() []Hash {
	list := []Hash{}
	for r.json.BeginArray(); r.json.NextItem(); {
		if b := r.bytes(HashBytes); b != nil {
			list = append(list, Hash(b))
		}
		if len(list) > maxPath {
			r.json.Fail(errPath)
		}
	}
	return list
}

// object reads an object as it is, without blanks.
func (r *proofReader) object() []byte {
	if r.json.Peek() != strictjson.KindObject {
		r.json.Fail(strictjson.ErrType)
		return nil
	}
	var b bytes.Buffer
	if raw := r.raw(); raw != nil {
		if err := json.Compact(&b, raw); err != nil {
			r.json.Fail(strictjson.ErrSyntax)
		}
	}
	return b.Bytes()
}
