package journal

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
)

// Point is the end of a commit: a place in the history. The zero Point is before the first, in any
// journal: it has no chain.
type Point struct {
	InputSeq uint64
	TradeSeq uint64
	Chain    [chainBytes]byte
}

// pointText is a Point in the JSON of manifests: of backups, and of archives.
type pointText struct {
	InputSeq uint64 `json:"inputSequence"`
	TradeSeq uint64 `json:"tradeSequence"`
	Chain    string `json:"chain"` // hex
}

// MarshalJSON gives both sequences and the chain in hex.
func (p Point) MarshalJSON() ([]byte, error) {
	return json.Marshal(pointText{p.InputSeq, p.TradeSeq, hex.EncodeToString(p.Chain[:])})
}

// UnmarshalJSON is the inverse of MarshalJSON. It refuses a chain of another length.
func (p *Point) UnmarshalJSON(text []byte) error {
	var t pointText
	if err := json.Unmarshal(text, &t); err != nil {
		return err
	}
	b, err := hex.DecodeString(t.Chain)
	if err != nil || len(b) != chainBytes {
		return fmt.Errorf("chain %q: %w", t.Chain, errSizes)
	}
	*p = Point{InputSeq: t.InputSeq, TradeSeq: t.TradeSeq, Chain: [chainBytes]byte(b)}
	return nil
}

// point and exported convert between the two forms, which hold the same.
func (p Point) point() point {
	return point{inputSeq: p.InputSeq, tradeSeq: p.TradeSeq, chain: p.Chain}
}

func (p point) exported() Point {
	return Point{InputSeq: p.inputSeq, TradeSeq: p.tradeSeq, Chain: p.chain}
}

// baseBytes is the size of a Point in a stream.
const baseBytes = 8 + 8 + chainBytes

// putPoint is the body of the frame that says what a stream goes on from.
func putPoint(p point) []byte {
	b := make([]byte, baseBytes)
	binary.LittleEndian.PutUint64(b, p.inputSeq)
	binary.LittleEndian.PutUint64(b[8:], p.tradeSeq)
	copy(b[16:], p.chain[:])
	return b
}

// parsePoint is the inverse of putPoint. b has baseBytes.
func parsePoint(b []byte) (p point) {
	p.inputSeq, p.tradeSeq = binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
	copy(p.chain[:], b[16:])
	return p
}

// ErrBase reports a stream that does not go on from where it should: it follows another commit, or
// the journal has no such commit.
var ErrBase = errors.New("not what follows that commit of this journal")

// TransferAfter is Transfer of what comes after a commit, the zero Point for all. Its end is
// StableEnd: what is kept elsewhere must never have what a power cut may take from the journal, nor
// end where no commit ends after one. It returns ErrBase when the journal has no commit that ends
// there, with that chain: another journal, or one whose history was replaced.
func (j *Journal) TransferAfter(p Point) (*Transfer, error) { return j.transfer(p, j.stableEnd) }

// follow makes the stream go on from a commit, which the journal must have: with that sequence,
// that tradeSeq and that chain, or ErrBase. One that has been moved into an archive counts, if it
// is the archive's last, without the archive.
func (t *Transfer) follow(p point) error {
	none := fmt.Errorf("journal: transfer after inputSeq=%d chain=%x: %w", p.inputSeq, p.chain[:4],
		ErrBase)
	if p.inputSeq > t.head.inputSeq {
		return none
	}
	w := newWalker(t.j.db, t.j.seed)
	defer w.close()
	if err := w.startAt(p.inputSeq + 1); err != nil {
		return err
	}
	if w.at != p {
		return none
	}
	t.base = p
	return nil
}
