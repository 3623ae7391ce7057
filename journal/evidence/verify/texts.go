package verify

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Proofs reads the proofs in a text: one after the other, or in an array. The error wraps ErrRead
// when the text has no proof in it, and is a Refusal when it has one that is not whole.
//
// One bad proof makes the whole text an error: a file with a damaged proof is not what was written.
func Proofs(text []byte) (list []*Proof, err error) {
	defer func() {
		var refused *Refusal
		if errors.As(err, &refused) && !LooksLike(text, "inputSeq", "record",
			"recordIndex", "recordPath", "leafIndex", "treeSize", "checkpoint") {
			err = fmt.Errorf("%w: it is not a proof: %s", ErrRead, refused.Why)
		}
	}()
	raws, err := split(text)
	if err != nil {
		return nil, err
	}
	for _, raw := range raws {
		p, err := ParseProof(raw)
		if err != nil {
			return nil, err
		}
		list = append(list, p)
	}
	if len(list) == 0 {
		return nil, refuse("", BlameProof, "there is no proof in it")
	}
	return list, nil
}

// LooksLike reports a text that has been of a kind: at least half of the names of its own members
// are in it. So a damaged proof is "not proven", and any other file is "nothing to judge".
func LooksLike(text []byte, names ...string) bool {
	found := 0
	for _, name := range names {
		if bytes.Contains(text, []byte(`"`+name+`"`)) {
			found++
		}
	}
	return 2*found >= len(names)
}

// LooksLikeNote reports a text that has been a signed note: one has a line head and lines of
// signatures, and no change of one byte takes both away.
func LooksLikeNote(text []byte) bool {
	for line := range bytes.Lines(text) {
		if bytes.HasPrefix(line, []byte(wordHead+" ")) || bytes.HasPrefix(line, []byte("\u2014 ")) {
			return true
		}
	}
	return false
}

// split takes values apart that stand one after the other, and the items of arrays. Broken JSON is
// a *Refusal with its byte.
func split(text []byte) (list []json.RawMessage, err error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	for {
		var raw json.RawMessage
		err := decoder.Decode(&raw)
		if errors.Is(err, io.EOF) {
			return list, nil
		}
		if err == nil && strings.HasPrefix(string(raw), "[") {
			var items []json.RawMessage
			if err = json.Unmarshal(raw, &items); err == nil {
				list = append(list, items...)
				continue
			}
		}
		if err != nil {
			where := fmt.Sprintf("byte %d", decoder.InputOffset())
			return nil, refuse(where, BlameProof, "not JSON: %v", err)
		}
		list = append(list, raw)
	}
}
