package verify

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"

	"posttrade/matcher/strictjson"
)

// The bounds of what is read of a proof: its bytes, and the hashes of a path. A tree with more than
// 2^64 leaves does not exist.
const (
	maxProof = 1 << 20
	maxPath  = 64
)

// ParseProof reads a proof strictly: every member once and no other, nothing behind it. The error
// is a *Refusal. It checks the form only; Check decides whether the proof holds.
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

// proofReader reads the members. The first mistake stays in json, and everything after it is passed
// over, so the methods return no errors.
type proofReader struct {
	json *strictjson.Reader
	// size is the length of the whole text: with it the place of a raw value is found.
	size int
}

// What a member may be at fault for, beside what package strictjson finds.
var (
	errMember = errors.New("a member that no proof has")
	errBase64 = errors.New("not base64, or of the wrong length")
	errPath   = errors.New("a path that no tree has")
)

// member reads the value of one member. That no member comes twice is strictjson's to find.
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

// uint reads a number that is not negative.
func (r *proofReader) uint() uint64 {
	n := r.json.Int()
	if n < 0 {
		r.json.Fail(strictjson.ErrRange)
		return 0
	}
	return uint64(n)
}

// raw is the text of the value that is due, without blanks around it; nil after a mistake. It stays
// in the memory of the proof's text.
func (r *proofReader) raw() []byte {
	ahead := r.json.Ahead()
	r.json.Skip()
	if r.json.Err() != nil {
		return nil
	}
	return bytes.TrimSpace(ahead[:len(ahead)-(r.size-r.json.Offset())])
}

// text reads a string, which may hold line breaks.
//
// A note is such a string. Package strictjson refuses line breaks in its own strings, so the text
// is taken raw and read by encoding/json.
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

// bytes reads base64; size 0 is any length. There is one way to write bytes, so that no bit of a
// proof is without meaning.
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

// hashes reads a list of at most maxPath hashes. An empty list is not nil.
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
//
// Only the member decoded is one. Check compares its text byte by byte, so it must have no blanks.
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
