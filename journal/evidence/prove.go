package evidence

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/tlog"

	"posttrade/journal"
	"posttrade/journal/evidence/verify"
	"posttrade/matcher"
)

// The errors of a Prover.
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

// Wanted names a record. Exactly one of its fields is set.
type Wanted struct {
	InputSeq uint64
	TradeSeq uint64
	Order    uint64 // an order's number
	Contract string // SW-N or SWPT-N
}

// Prover makes proofs from a journal and the files of its log. Any goroutine may use it.
type Prover struct {
	j      *journal.Journal
	dir    folder
	engine func(state io.Reader) (journal.Engine, error)
	key    verify.Key
	places chan struct{}
}

// NewProver returns a Prover. engine is that of Options.
func NewProver(j *journal.Journal, dir string,
	engine func(state io.Reader) (journal.Engine, error)) (*Prover, error) {
	text, created := j.Genesis()
	if !created {
		return nil, errors.New("evidence: the journal has no genesis")
	}
	g, err := matcher.ParseGenesis(text)
	if err != nil {
		return nil, err
	}
	key, err := SaltKey(g, j.Seed())
	return &Prover{j: j, dir: folder(dir), engine: engine, key: key,
		places: make(chan struct{}, DefaultMaxProofs)}, err
}

// Find returns the command of a record and the account that it is of. For a control or a tick, which
// is of no account, ok is false.
func (p *Prover) Find(ctx context.Context, w Wanted) (at Place, err error) {
	switch {
	case w.TradeSeq != 0:
		return p.findTrade(w.TradeSeq)
	case w.Order != 0:
		return p.findOrder(ctx, w.Order)
	case w.Contract != "":
		swaption, seq, ok := matcher.ParseContractID(w.Contract)
		if !ok {
			return at, fmt.Errorf("evidence: %q: %w", w.Contract, ErrUnknown)
		}
		at, err = p.command(ctx, seq)
		if want := contractType(swaption); err == nil && at.kind != want {
			err = fmt.Errorf("evidence: %s: %w", w.Contract, ErrUnknown)
		}
		at.ID = w.Contract
		return at, err
	}
	return p.command(ctx, w.InputSeq)
}

func contractType(swaption bool) matcher.CommandType {
	if swaption {
		return matcher.SwaptionBook
	}
	return matcher.SwapBook
}

// Place is where a record is.
type Place struct {
	InputSeq  uint64
	TradeSeq  uint64 // of a fill, else 0
	AccountID uint32
	Owned     bool // the record is of AccountID
	ID        string
	kind      matcher.CommandType
}

func (p *Prover) findTrade(tradeSeq uint64) (at Place, err error) {
	if _, last := p.j.Head(); tradeSeq > last {
		return at, fmt.Errorf("evidence: trd-%d: %w", tradeSeq, ErrUnknown)
	}
	enough := errors.New("enough")
	err = p.j.Fills(tradeSeq, func(fills []matcher.Fill) error {
		at = Place{InputSeq: fills[0].InputSeq, TradeSeq: tradeSeq, AccountID: fills[0].AccountID,
			Owned: true, ID: fmt.Sprintf("trd-%d", tradeSeq)}
		return enough
	})
	if errors.Is(err, enough) {
		err = nil
	}
	return at, err
}

// command is the place of a command's record.
func (p *Prover) command(ctx context.Context, inputSeq uint64) (at Place, err error) {
	if head, _ := p.j.Head(); inputSeq == 0 || inputSeq > head {
		return at, fmt.Errorf("evidence: sequence %d: %w", inputSeq, ErrUnknown)
	}
	err = p.j.ReplayTo(ctx, inputSeq, inputSeq, func(c []matcher.Command, _ journal.ClientIDs) error {
		at = placeOf(&c[0])
		return nil
	})
	return at, err
}

// placeOf is the place of a command's record. A command of an operator or of a feed has no owner.
func placeOf(c *matcher.Command) Place {
	at := Place{InputSeq: c.InputSeq}
	if c.TemplateID != matcher.TemplateCommand {
		return at
	}
	switch at.kind = c.Type; c.Type {
	case matcher.OrderNew, matcher.OrderCancel, matcher.OrderReplace, matcher.ForceFill,
		matcher.TradeNew, matcher.SwapBook, matcher.SwaptionBook:
		at.AccountID, at.Owned = c.AccountID, true
	}
	return at
}

// findOrder looks for the command that made an order: there is no index, so the shadow engine goes
// to the last command of which it is known that the order did not exist.
func (p *Prover) findOrder(ctx context.Context, number uint64) (at Place, err error) {
	leave, err := p.enter()
	if err != nil {
		return at, err
	}
	defer leave()
	found := errors.New("found")
	err = journal.Politely(journal.Background, func() (err error) {
		sh, err := p.beforeOrder(number)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, sh.Close()) }()
		head, _ := p.j.Head()
		return sh.Follow(ctx, head, func(events []matcher.Event) error {
			for i := range events {
				ev := &events[i]
				if ev.Flags&matcher.EventFirst == 0 || ev.Cmd().TemplateID != matcher.TemplateCommand ||
					ev.Cmd().Type != matcher.OrderNew || ev.Order() != number ||
					ev.Reason == matcher.Duplicate {
					continue
				}
				at = placeOf(ev.Cmd())
				at.ID = fmt.Sprintf("ord-%d", number)
				return found
			}
			return nil
		})
	})
	switch {
	case errors.Is(err, found):
		return at, nil
	case err == nil:
		err = fmt.Errorf("evidence: ord-%d: %w", number, ErrUnknown)
	}
	return at, err
}

// numbered is what findOrder needs of an engine besides its events.
type numbered interface{ NextOrder() uint64 }

// beforeOrder is a shadow at the newest snapshot at which the order did not exist.
func (p *Prover) beforeOrder(number uint64) (*journal.Shadow, error) {
	list, err := p.j.Snapshots()
	if err != nil {
		return nil, fmt.Errorf("evidence: %w", err)
	}
	for i := 0; i <= len(list); i++ {
		before := uint64(0)
		if i < len(list) {
			before = list[i].InputSeq
		}
		early := true
		sh, err := journal.NewShadow(p.j, func(state io.Reader) (journal.Engine, error) {
			e, err := p.engine(state)
			if n, ok := e.(numbered); ok && err == nil {
				early = n.NextOrder() <= number
			}
			return e, err
		}, before)
		if err != nil {
			return nil, fmt.Errorf("evidence: %w", err)
		}
		if early {
			return sh, nil
		}
		if err := sh.Close(); err != nil {
			return nil, err
		}
	}
	return nil, ErrUnknown // not reached: at genesis there is no order
}

func (p *Prover) enter() (leave func(), err error) {
	select {
	case p.places <- struct{}{}:
		return func() { <-p.places }, nil
	default:
		return nil, fmt.Errorf("evidence: %w", ErrBusy)
	}
}

// Newest reads the newest published head from the files.
func (p *Prover) Newest() ([]byte, error) {
	text, err := os.ReadFile(p.dir.path(checkpointName))
	if err != nil {
		return nil, fmt.Errorf("evidence: %w: %w", ErrNotYet, err)
	}
	return text, nil
}

// Prove makes the proof of a record against a published head, whose tiles are on the disk. It
// replays the leaf of the record, at a low priority. An ErrContradiction says that the journal is
// not what the head says.
func (p *Prover) Prove(ctx context.Context, at Place, note []byte) (proof *verify.Proof, err error) {
	head, err := parseNote(note)
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

// replay finds the record in its leaf.
func (p *Prover) replay(ctx context.Context, at Place,
	head *verify.Checkpoint) (proof *verify.Proof, err error) {
	first, count := verify.LeafRange(verify.LeafOf(at.InputSeq))
	sh, err := journal.NewShadow(p.j, p.engine, first-1)
	if err != nil {
		return nil, fmt.Errorf("evidence: %w", err)
	}
	defer func() { err = errors.Join(err, sh.Close()) }()
	if err := sh.Follow(ctx, first-1, nil); err != nil {
		return nil, err
	}
	s := search{at: at, leaf: openLeaf{key: p.key}}
	s.leaf.startAt(first - 1)
	s.leaf.full = func(data []byte) error {
		s.data = append([]byte(nil), data...)
		return nil
	}
	s.leaf.whole = func(hashes []verify.Hash) { s.hashes = append([]verify.Hash(nil), hashes...) }
	s.leaf.seen = s.see
	err = sh.Follow(ctx, min(first+count-1, head.Head), func(events []matcher.Event) error {
		for i := range events {
			if err := s.leaf.take(&events[i], sh.ClientID); err != nil {
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

// search collects a leaf and the record that a proof is of.
type search struct {
	at     Place
	leaf   openLeaf
	proof  *verify.Proof
	data   []byte        // of the leaf when it is full
	hashes []verify.Hash // of its records
	err    error
}

func (s *search) see(inputSeq, index uint64, salt salted, record []byte) {
	if inputSeq != s.at.InputSeq || s.proof != nil || !isRecord(record, s.at.TradeSeq) {
		return
	}
	if s.proof, s.err = verify.NewProof(append([]byte(nil), record...), s.at.ID); s.err == nil {
		s.proof.Salt, s.proof.RecordIndex = salt, index
	}
}

// isRecord reports the record of a trade, or of a command when tradeSeq is 0.
func isRecord(record []byte, tradeSeq uint64) bool {
	if tradeSeq == 0 {
		return record[0] == verify.KindCommand
	}
	return record[0] == verify.KindFill && binary.LittleEndian.Uint64(record[1:]) == tradeSeq
}

// finish adds the way to the leaf's root.
func (s *search) finish(head *verify.Checkpoint) (*verify.Proof, error) {
	if s.proof == nil {
		return nil, fmt.Errorf("evidence: sequence %d: %w", s.at.InputSeq, ErrUnknown)
	}
	if s.data == nil {
		if root := s.leaf.root(); root != head.HeadRoot {
			return nil, fmt.Errorf("evidence: sequence %d: the published head is %x, the journal's is %x: %w",
				head.Head, head.HeadRoot, root, ErrContradiction)
		}
		s.hashes = append([]verify.Hash(nil), s.leaf.hashes...)
	}
	s.proof.Leaf = s.data
	s.proof.RecordPath = verify.Path(s.hashes, int(s.proof.RecordIndex))
	return s.proof, nil
}

// path is the way of a leaf to the root of a head, from the tiles. They prove themselves against the
// head, so what is left to compare is the leaf.
func (p *Prover) path(head *verify.Checkpoint, index uint64, leaf []byte) ([]verify.Hash, error) {
	hashes := tlog.TileHashReader(tlog.Tree{N: int64(head.Size), Hash: tlog.Hash(head.Root)},
		tileReader{p.dir})
	path, err := tlog.ProveRecord(int64(head.Size), int64(index), hashes)
	if err != nil {
		return nil, fmt.Errorf("evidence: leaf %d: %w", index, err)
	}
	if err := tlog.CheckRecord(path, int64(head.Size), tlog.Hash(head.Root), int64(index),
		tlog.Hash(verify.LeafHash(leaf))); err != nil {
		return nil, fmt.Errorf("evidence: leaf %d, sequences %d to %d, is another one in the signed log: %w",
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
func (tileReader) Height() int { return tileBits }

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

// parseNote reads a note whose signature need not be checked.
func parseNote(text []byte) (verify.Checkpoint, error) {
	body, _, _ := bytes.Cut(text, []byte("\n\n"))
	c, err := verify.ParseText(string(body) + "\n")
	if err != nil {
		err = fmt.Errorf("evidence: %w", err)
	}
	return c, err
}

// ParseWanted reads an id: trd-N, ord-N, SW-N, SWPT-N or an input sequence.
func ParseWanted(id string) (w Wanted, ok bool) {
	number := func(prefix string) uint64 {
		digits, found := strings.CutPrefix(id, prefix)
		n, err := strconv.ParseUint(digits, 10, 63)
		if !found || err != nil || strconv.FormatUint(n, 10) != digits {
			return 0
		}
		return n
	}
	w.TradeSeq, w.Order = number("trd-"), number("ord-")
	if _, _, isContract := matcher.ParseContractID(id); isContract {
		w.Contract = id
	}
	w.InputSeq = number("")
	return w, w != (Wanted{})
}
