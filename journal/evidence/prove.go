package evidence

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"

	"golang.org/x/mod/sumdb/tlog"

	"posttrade/journal"
	"posttrade/journal/asof"
	"posttrade/journal/evidence/leaf"
	"posttrade/journal/evidence/verify"
	"posttrade/matcher"
)

// The errors of a Prover; test them with errors.Is.
var (
	// ErrUnknown: there is no such command, trade, order or contract.
	ErrUnknown = errors.New("no such record")
	// ErrNotYet: the record is not in a published head yet.
	ErrNotYet = errors.New("not in a published head yet")
	// ErrBusy: too many proofs are being made.
	ErrBusy = errors.New("too many proofs at a time")
)

// DefaultMaxProofs is how many proofs are made at a time. Each holds an engine of its own.
const DefaultMaxProofs = 2

// Prover makes proofs from a journal and the files of its log. Any goroutine may use it.
//
// It signs nothing and changes nothing, so it also works in a process that reads the folder of a
// log beside a running server.
type Prover struct {
	j *journal.Journal
	// past gives the shadow that stands before the leaf of a record.
	past *asof.History
	dir  folder
	// key is the evidence key of the journal: the salts follow from it.
	key verify.Key
	// places has a place for each proof that may be made at a time.
	places chan struct{}
}

// NewProver returns a Prover of the log in dir. It goes to a record from the nearest checkpoint of
// the history, so the age of the record does not matter.
func NewProver(past *asof.History, dir string) (*Prover, error) {
	j := past.Journal()
	text, created := j.Genesis()
	if !created {
		return nil, errors.New("evidence: the journal has no genesis")
	}
	g, err := matcher.ParseGenesis(text)
	if err != nil {
		return nil, err
	}
	key, err := leaf.SaltKey(g, j.Seed())
	return &Prover{j: j, past: past, dir: folder{dir: dir}, key: key,
		places: make(chan struct{}, DefaultMaxProofs)}, err
}

// enter takes a place for a proof, without waiting: ErrBusy when all are taken.
func (p *Prover) enter() (leave func(), err error) {
	select {
	case p.places <- struct{}{}:
		return func() { <-p.places }, nil
	default:
		return nil, fmt.Errorf("evidence: %w", ErrBusy)
	}
}

// ReadHead reads the newest published head of a log from its folder. A caller that opens the
// journal as it is at one moment reads the head before: then the journal has all that the head
// covers.
//
// ErrNotYet, and the error of the file, when there is none.
func ReadHead(dir string) ([]byte, error) {
	text, err := os.ReadFile(folder{dir: dir}.path(checkpointName))
	if err != nil {
		return nil, fmt.Errorf("evidence: %w: %w", ErrNotYet, err)
	}
	return text, nil
}

// Prove makes the proof of a record against a published head, whose tiles are on the disk. It
// replays the leaf of the record, at a low priority. An ErrContradiction says that the journal is
// not what the head says.
//
// Errors: ErrNotYet for a record beyond the head; ErrBusy; ErrUnknown when the leaf has no such
// record; ErrContradiction.
func (p *Prover) Prove(ctx context.Context, at Place,
	note []byte) (proof *verify.Proof, err error) {
	head, err := ParseNote(note)
	if err != nil {
		return nil, err
	}
	if at.InputSeq > head.Head {
		return nil, fmt.Errorf("evidence: sequence %d, the head is %d: %w", at.InputSeq, head.Head,
			ErrNotYet)
	}
	leave, err := p.enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	err = journal.Politely(journal.Background, func() (err error) {
		proof, err = p.replay(ctx, at, &head)
		return err
	})
	if err == nil && proof.Leaf != nil {
		proof.Path, err = p.path(&head, proof.LeafIndex, proof.Leaf)
	}
	if err != nil {
		return nil, err
	}
	proof.Origin, proof.TreeSize, proof.Checkpoint = head.Origin, head.Size, note
	return proof, nil
}

// replay finds the record in its leaf. It decides at most 256 commands beyond the state before the
// leaf, and stops at the head: the leaf may be open there.
func (p *Prover) replay(ctx context.Context, at Place,
	head *verify.Checkpoint) (proof *verify.Proof, err error) {
	first, count := verify.LeafRange(verify.LeafOf(at.InputSeq))
	sh, err := p.past.Bare(ctx, first-1)
	if err != nil {
		return nil, fmt.Errorf("evidence: %w", err)
	}
	defer func() { err = errors.Join(err, sh.Close()) }()
	s := search{at: at, leaf: leaf.Builder{Key: p.key}}
	s.leaf.StartAt(first - 1)
	s.leaf.Full = func(data []byte) error {
		s.data = append([]byte(nil), data...)
		return nil
	}
	s.leaf.Whole = func(hashes []verify.Hash) { s.hashes = append([]verify.Hash(nil), hashes...) }
	s.leaf.Seen = s.see
	err = sh.Follow(ctx, min(first+count-1, head.Head), func(events []matcher.Event) error {
		for i := range events {
			if err := s.leaf.Take(&events[i], sh.ClientID); err != nil {
				return err
			}
		}
		return s.err
	})
	if err != nil {
		return nil, err
	}
	return s.finish(head)
}

// search collects a leaf and the record that a proof is of, while a shadow replays the leaf.
type search struct {
	at   Place
	leaf leaf.Builder
	// proof is nil until the record has passed by
	proof *verify.Proof
	// data is that of the leaf when it is full; nil: it is the open leaf of the head.
	data []byte
	// hashes are those of the leaf's records: the way of the record to the leaf's root is made of
	// them.
	hashes []verify.Hash
	// err is what NewProof found wrong with the record; Seen cannot return it.
	err error
}

// see keeps the record that is looked for, and its salt. It is leaf.Builder's Seen, so it copies
// what it keeps.
func (s *search) see(inputSeq, index uint64, salt [verify.SaltBytes]byte, record []byte) {
	if inputSeq != s.at.InputSeq || s.proof != nil || !isRecord(record, s.at.TradeSeq) {
		return
	}
	if s.proof, s.err = verify.NewProof(append([]byte(nil), record...), s.at.ID); s.err == nil {
		s.proof.Salt, s.proof.RecordIndex = salt, index
	}
}

// isRecord reports the record of a trade, or of a command when tradeSeq is 0. The first byte is the
// kind, and a fill begins with its trade sequence.
func isRecord(record []byte, tradeSeq uint64) bool {
	if tradeSeq == 0 {
		return record[0] == verify.KindCommand
	}
	return record[0] == verify.KindFill && binary.LittleEndian.Uint64(record[1:]) == tradeSeq
}

// finish adds the way to the leaf's root. A record of the open leaf leads to the head's own line;
// that the journal still has what was signed is compared here, because no tile has it.
func (s *search) finish(head *verify.Checkpoint) (*verify.Proof, error) {
	if s.proof == nil {
		return nil, fmt.Errorf("evidence: sequence %d: %w", s.at.InputSeq, ErrUnknown)
	}
	if s.data == nil {
		if root := s.leaf.Root(); root != head.HeadRoot {
			return nil, fmt.Errorf("evidence: sequence %d: the signed head is %x, the journal's %x: %w",
				head.Head, head.HeadRoot, root, ErrContradiction)
		}
		s.hashes = s.leaf.Hashes()
	}
	s.proof.Leaf = s.data
	s.proof.RecordPath = verify.Path(s.hashes, int(s.proof.RecordIndex))
	return s.proof, nil
}

// path is the way of a leaf to the root of a head, from the tiles. They prove themselves against
// the head, so what is left to compare is the leaf.
func (p *Prover) path(head *verify.Checkpoint, index uint64, leaf []byte) ([]verify.Hash, error) {
	hashes := tlog.TileHashReader(tlog.Tree{N: int64(head.Size), Hash: tlog.Hash(head.Root)},
		tileReader{p.dir})
	path, err := tlog.ProveRecord(int64(head.Size), int64(index), hashes)
	if err != nil {
		return nil, fmt.Errorf("evidence: leaf %d: %w", index, err)
	}
	if err := tlog.CheckRecord(path, int64(head.Size), tlog.Hash(head.Root), int64(index),
		tlog.Hash(verify.LeafHash(leaf))); err != nil {
		return nil, fmt.Errorf("evidence: leaf %d, sequences %d to %d, is another in the signed log: %w",
			index, (index-1)*verify.LeafCommands+1, index*verify.LeafCommands, ErrContradiction)
	}
	list := make([]verify.Hash, len(path))
	for i := range path {
		list[i] = verify.Hash(path[i])
	}
	return list, nil
}

// tileReader reads the tiles of a folder for package tlog.
type tileReader struct{ dir folder }

// Height implements tlog.TileReader.
func (tileReader) Height() int { return verify.TileBits }

// SaveTiles implements tlog.TileReader.
func (tileReader) SaveTiles([]tlog.Tile, [][]byte) {}

// ReadTiles implements tlog.TileReader.
func (r tileReader) ReadTiles(tiles []tlog.Tile) ([][]byte, error) {
	list := make([][]byte, len(tiles))
	for i, t := range tiles {
		data, err := r.dir.tile(t.L, uint64(t.N), t.W)
		if err != nil {
			return nil, err
		}
		list[i] = data
	}
	return list, nil
}

// ParseNote reads a note without a check of its signatures.
//
// For heads of this log's own files only; a head from outside is opened with verify.Keys.
func ParseNote(text []byte) (verify.Checkpoint, error) {
	body, _, _ := bytes.Cut(text, []byte("\n\n"))
	c, err := verify.ParseText(string(body) + "\n")
	if err != nil {
		err = fmt.Errorf("evidence: %w", err)
	}
	return c, err
}
