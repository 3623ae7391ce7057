package verify

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"golang.org/x/mod/sumdb/tlog"
)

// Proven is what a proof has shown. Every field has been compared with the record or the note.
type Proven struct {
	ID       string
	InputSeq uint64
	// Text is what the record says, in words.
	Text string
	// Signer is the log's key that has signed: its name and its number.
	Signer string
	// Checkpoint is the head that covers the record.
	Checkpoint Checkpoint
}

// String is one line for people.
func (p *Proven) String() string {
	return fmt.Sprintf("%s: %s; in the log %s up to sequence %d, signed by %s", p.ID, p.Text,
		p.Checkpoint.Origin, p.Checkpoint.Head, p.Signer)
}

// Check proves that the record of a proof is in the log that one of the keys has signed. The error
// is a *Refusal.
//
// Three things are compared: the members with the note and with what follows from the record; the
// record's hash, by the two trees, with the signed root; and the member check, if there is one. The
// members that are for people (kind, id, decoded) are compared too, so a changed one is found.
func (k *Keys) Check(p *Proof) (*Proven, error) {
	where := fmt.Sprintf("sequence %d", p.InputSeq)
	no := func(format string, args ...any) (*Proven, error) {
		return nil, refuse(where, BlameProof, format, args...)
	}
	if p.Version != ProofVersion {
		return no("a proof of version %d, this program reads %d", p.Version, ProofVersion)
	}
	c, signer, err := k.Open(p.Checkpoint)
	if err != nil {
		return nil, err
	}
	if err := checkRecord(p.Record); err != nil {
		return no("%v", err)
	}
	r := record(p.Record)
	decoded, err := Decoded(p.Record)
	switch {
	case err != nil:
		return no("%v", err)
	case p.Origin != c.Origin:
		return no("its origin is %q, its note's is %q", p.Origin, c.Origin)
	case p.TreeSize != c.Size:
		return no("its tree has %d leaves, its note's has %d", p.TreeSize, c.Size)
	case p.InputSeq != r.inputSeq():
		return no("its record is of sequence %d", r.inputSeq())
	case p.InputSeq == 0, p.InputSeq > c.Head:
		return no("its note ends at sequence %d", c.Head)
	case p.Kind != r.kind():
		return no("its kind is %q, its record is a %s", p.Kind, r.kind())
	case !r.names(p.ID):
		return no("its id is %q, its record is %s", p.ID, r.id())
	case !bytes.Equal(decoded, p.Decoded):
		return no("the member decoded says something else than the record: %s", decoded)
	case LeafOf(p.InputSeq) != p.LeafIndex:
		return no("it names leaf %d, the command is in leaf %d", p.LeafIndex, LeafOf(p.InputSeq))
	}
	if least := r.leastIndex(); p.RecordIndex < least {
		return no("its record is number %d of the leaf, it can be number %d at the least", p.RecordIndex,
			least)
	}
	if err := p.checkTrees(&c, where); err != nil {
		return nil, err
	}
	if p.check != nil {
		if sum := sha256.Sum256(p.members()); hex.EncodeToString(sum[:]) != string(p.check) {
			return no("its member check is not that of the other members")
		}
	}
	return &Proven{ID: p.ID, InputSeq: p.InputSeq, Text: r.sentence(), Signer: signer,
		Checkpoint: c}, nil
}

// leastIndex is the smallest index that the record can have among those of its leaf: each command
// before it has at least one record there, and a fill stands behind its own command's.
func (r record) leastIndex() uint64 {
	first, _ := LeafRange(LeafOf(r.inputSeq()))
	least := r.inputSeq() - first
	if r[0] == KindFill {
		least++
	}
	return least
}

// checkTrees climbs the small tree and then the big one. A record of the open leaf has no big tree
// to climb: its small tree's root is in the note itself.
//
// A path is believed only where its index is: climb refuses a path of a length that no tree has,
// and the leaf states which commands it covers, so a record cannot be shown as that of another
// sequence.
func (p *Proof) checkTrees(c *Checkpoint, where string) error {
	root, ok := climb(RecordHash(p.Salt, p.Record), p.RecordIndex, p.RecordPath)
	if !ok {
		return refuse(where, BlameProof, "no tree has a path of %d hashes for record %d",
			len(p.RecordPath), p.RecordIndex)
	}
	if p.Leaf == nil {
		switch {
		case p.LeafIndex != c.Size || len(p.Path) > 0:
			return refuse(where, BlameProof, "it has no leaf; leaf %d is not the open one of a tree of %d",
				p.LeafIndex, c.Size)
		case root != c.HeadRoot:
			return refuse(where, BlameProof, "its record and path lead to %x, the note's head is %x", root,
				c.HeadRoot)
		}
		return nil
	}
	leaf, err := ParseLeaf(p.LeafIndex, p.Leaf)
	if err != nil {
		return refuse(where, BlameProof, "%v", err)
	}
	if leaf.Root != root {
		return refuse(where, BlameProof, "its record and path lead to %x, its leaf is %x", root,
			leaf.Root)
	}
	if p.LeafIndex >= c.Size {
		return refuse(where, BlameProof, "leaf %d is not in a tree of %d", p.LeafIndex, c.Size)
	}
	path := make(tlog.RecordProof, len(p.Path))
	for i := range p.Path {
		path[i] = tlog.Hash(p.Path[i])
	}
	if err := tlog.CheckRecord(path, int64(c.Size), tlog.Hash(c.Root), int64(p.LeafIndex),
		tlog.Hash(LeafHash(p.Leaf))); err != nil {
		return refuse(where, BlameProof, "leaf %d does not lead to the note's root", p.LeafIndex)
	}
	return nil
}

// NewProof fills in what follows from a record. id is empty when it was asked for by its sequence.
// The caller adds salt, paths, leaf and note. The error says what is wrong with the form of the
// record.
func NewProof(data []byte, id string) (*Proof, error) {
	decoded, err := Decoded(data)
	if err != nil {
		return nil, err
	}
	r := record(data)
	if id == "" {
		id = r.id()
	}
	return &Proof{
		Version: ProofVersion, Kind: r.kind(), ID: id, InputSeq: r.inputSeq(), Record: data,
		LeafIndex: LeafOf(r.inputSeq()), Decoded: decoded, RecordPath: []Hash{}, Path: []Hash{},
	}, nil
}
