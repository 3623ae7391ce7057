package verify

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
)

// Checkpoint is a head of a log, as its signed note states it.
//
// Head is the last command of the full leaves, or one of the 255 behind it.
type Checkpoint struct {
	// Origin is the name of the log: a head of another log is never compared with this one.
	Origin string
	// Size is the number of leaves of the big tree, the one of the genesis included. Root is its root.
	Size uint64
	Root Hash

	// Head is the last command that the note covers.
	Head uint64
	// HeadRoot is the root of the small tree over the records of the open leaf: those that no full
	// leaf covers. When there are none it is the root of an empty tree.
	HeadRoot Hash

	// Snapshot is the sequence of the newest snapshot at or before Head, 0: there is none.
	// SnapshotSHA256 is the hash of its file.
	Snapshot       uint64
	SnapshotSHA256 Hash // of its file
}

// Names reports that two heads name one file of one snapshot.
func (c *Checkpoint) Names(o *Checkpoint) bool {
	return c.Snapshot == o.Snapshot && c.SnapshotSHA256 == o.SnapshotSHA256
}

// The words that open the lines behind the root.
const (
	wordHead     = "head"
	wordSnapshot = "snapshot"
)

// maxLeaves bounds the size of a tree: the sequences that the leaves cover have 63 bits.
const maxLeaves = 1 << 63 / LeafCommands

// maxNote bounds a note that is read, in bytes: it comes from strangers.
const maxNote = 1 << 20

// Text is the text that is signed: a line each for origin, size, root in base64, head, and snapshot
// if there is one. C2SP tlog-checkpoint has the first three; the lines behind are extensions.
//
// With its signatures, a line each behind an empty line, the text is a note:
//
//	posttrade/1f2e3d4c5b6a7988     origin
//	3908                           leaves of the tree
//	<root, base64>
//	head 1000200 <root of the open leaf, hex>
//	snapshot 999936 <SHA-256, hex>
func (c *Checkpoint) Text() string {
	b := fmt.Appendf(nil, "%s\n%d\n%s\n%s %d %x\n", c.Origin, c.Size,
		base64.StdEncoding.EncodeToString(c.Root[:]), wordHead, c.Head, c.HeadRoot)
	if c.Snapshot > 0 {
		b = fmt.Appendf(b, "%s %d %x\n", wordSnapshot, c.Snapshot, c.SnapshotSHA256)
	}
	return string(b)
}

// ParseText reads the text of a note. Lines behind the root that it does not know are passed over,
// so a newer build may add some. It checks no signature: Keys.Open does.
func ParseText(text string) (c Checkpoint, err error) {
	lines := strings.Split(text, "\n")
	if len(lines) < 5 || lines[len(lines)-1] != "" {
		return c, errors.New("the note has not the lines origin, size, root and head")
	}
	c.Origin = lines[0]
	if c.Size, err = whole(lines[1]); err != nil || c.Origin == "" {
		return c, fmt.Errorf("line 2 of the note, the tree size: %q", lines[1])
	}
	root, err := base64.StdEncoding.Strict().DecodeString(lines[2])
	if err != nil || len(root) != HashBytes {
		return c, fmt.Errorf("line 3 of the note, the root: %q", lines[2])
	}
	if c.Root = Hash(root); c.Size == 0 && c.Root != Root(nil) {
		return c, fmt.Errorf("line 3 of the note is the root of no empty tree: %q", lines[2])
	}
	seen := false
	for i, l := range lines[3 : len(lines)-1] {
		word, rest, _ := strings.Cut(l, " ")
		seq, hash := &c.Head, &c.HeadRoot
		switch {
		case word == wordHead && !seen:
			seen = true
		case word == wordSnapshot && c.Snapshot == 0:
			seq, hash = &c.Snapshot, &c.SnapshotSHA256
		default:
			continue
		}
		digits, sum, _ := strings.Cut(rest, " ")
		raw, err := hex.DecodeString(sum)
		if *seq, err = first(whole(digits))(err); err != nil || len(raw) != HashBytes ||
			hex.EncodeToString(raw) != sum {
			return c, fmt.Errorf("line %d of the note: %q", 4+i, l)
		}
		*hash = Hash(raw)
	}
	if !seen {
		return c, errors.New("the note has no line head")
	}
	if c.Size > maxLeaves {
		return c, fmt.Errorf("line 2 of the note, the tree size: no sequences fill %d leaves", c.Size)
	}
	low := headFloor(c.Size)
	if c.Head < low || c.Head >= low+LeafCommands {
		return c, fmt.Errorf("the note's head is %d, a tree of %d leaves ends at %d", c.Head, c.Size, low)
	}
	if c.Head == low && c.HeadRoot != Root(nil) {
		return c, fmt.Errorf("the note's head %d has no open leaf, and a root of one", c.Head)
	}
	return c, nil
}

// first joins the error of reading a number with an earlier one.
func first(n uint64, err error) func(error) (uint64, error) {
	return func(before error) (uint64, error) { return n, errors.Join(before, err) }
}

// headFloor is the last command that the full leaves of a tree cover.
//
// Leaf 0 is the genesis record and covers no command.
func headFloor(size uint64) uint64 {
	if size == 0 {
		return 0
	}
	return (size - 1) * LeafCommands
}

// whole reads a decimal number without sign or leading zeros, of at most 63 bits.
func whole(text string) (uint64, error) {
	n, err := strconv.ParseUint(text, 10, 63)
	if err == nil && strconv.FormatUint(n, 10) != text {
		err = strconv.ErrSyntax
	}
	return n, err
}

// Keys are the keys that a head must be signed with: by one of the log's, and by every witness.
// They do not change after ParseKeys, so any goroutine may use them.
type Keys struct {
	// log are the keys of which one must have signed, witnesses those that must all have cosigned.
	log       []note.Verifier
	witnesses []note.Verifier
}

// ParseKeys reads verifier keys as `posttrade evidence key` and witnesses print them. At least one
// key of the log is needed. Several are for a log that has changed its key, or whose members have
// each one. One that is given twice counts once.
func ParseKeys(log, witnesses []string) (k Keys, err error) {
	for _, text := range distinct(log) {
		v, err := note.NewVerifier(text)
		if err != nil {
			return k, fmt.Errorf("key %q: %w", text, err)
		}
		k.log = append(k.log, v)
	}
	for _, text := range distinct(witnesses) {
		v, err := NewCosigner(text)
		if err != nil {
			return k, fmt.Errorf("witness key %q: %w", text, err)
		}
		k.witnesses = append(k.witnesses, v)
	}
	if len(k.log) == 0 {
		return k, errors.New("no key of the log is given")
	}
	return k, nil
}

// distinct are the texts without the white space around them, each once.
func distinct(texts []string) (once []string) {
	for _, text := range texts {
		if text = strings.TrimSpace(text); !slices.Contains(once, text) {
			once = append(once, text)
		}
	}
	return once
}

// Open checks the signatures of a note and reads it. signer is the name and number of the log's key
// that has signed. The error is a *Refusal that blames the note. Signatures of other keys are
// passed over.
func (k *Keys) Open(text []byte) (c Checkpoint, signer string, err error) {
	if len(text) > maxNote {
		return c, "", refuse("", BlameNote, "the note has %d bytes", len(text))
	}
	if err := canonical(text); err != nil {
		return c, "", refuse("", BlameNote, "%v", err)
	}
	n, err := note.Open(text, note.VerifierList(append(k.log[:len(k.log):len(k.log)],
		k.witnesses...)...))
	if err != nil {
		return c, "", refuse("", BlameNote, "the note is not signed by any key that was given: %v", err)
	}
	signed := func(v note.Verifier) bool {
		for _, s := range n.Sigs {
			if s.Name == v.Name() && s.Hash == v.KeyHash() {
				return true
			}
		}
		return false
	}
	for _, v := range k.log {
		if signer == "" && signed(v) {
			signer = fmt.Sprintf("%s+%08x", v.Name(), v.KeyHash())
		}
	}
	if signer == "" {
		return c, "", refuse("", BlameNote, "the note is not signed by a key of the log")
	}
	for _, v := range k.witnesses {
		if !signed(v) {
			return c, "", refuse("", BlameNote, "the witness %s has not cosigned the note", v.Name())
		}
	}
	if c, err = ParseText(n.Text); err != nil {
		return c, "", refuse("", BlameNote, "%v", err)
	}
	return c, signer, nil
}

// canonical requires that every signature line is written in the one way that there is, so that no
// bit of it is without meaning. Base64 has several texts for some bytes, and package note reads all
// of them.
func canonical(text []byte) error {
	at := bytes.LastIndex(text, []byte("\n\n"))
	if at < 0 {
		return errors.New("the note has no signatures")
	}
	for i, l := range strings.Split(string(text[at+2:]), "\n") {
		if l == "" && i > 0 {
			break // behind the last line; note.Open refuses an empty one elsewhere
		}
		fields := strings.Split(l, " ")
		if len(fields) != 3 || fields[0] != "—" {
			return fmt.Errorf("signature line %d of the note: %q", i+1, l)
		}
		sig, err := base64.StdEncoding.Strict().DecodeString(fields[2])
		if err != nil || base64.StdEncoding.EncodeToString(sig) != fields[2] {
			return fmt.Errorf("signature line %d of the note: %q", i+1, l)
		}
	}
	return nil
}
