package matcher

import "fmt"

// Bounds of an operator's note. A note and its acts are one submission, so together they also stay
// within a batch of the desk.
const (
	MaxNoteParts = 512 // commands of one note
	MaxNoteActs  = 512 // commands that one note is about
)

// NewOperatorNote returns one part of a note. The engine changes nothing when it decides it. The
// text of the part is not in the record: it is the client id beside it (package note).
//
//   - part is its number, from 0, of parts in all, at most MaxNoteParts; the parts are side by
//     side.
//   - acts is how many commands right behind the last part the note is about, at most MaxNoteActs;
//     0 for an act that is not a command. binds is ActsHash of them, 0 for none.
func NewOperatorNote(part, parts, acts int, binds int64) Command {
	c := NewCommand(OperatorNote)
	c.OrderRef, c.Qty, c.AccountID, c.LimitPx = uint32(part), int32(parts), uint32(acts), binds
	return c
}

// verifyNote is the form of an OPERATOR_NOTE: what it does not use is zero, and its numbers are in
// their bounds. It does not see the other parts; a reader of notes does.
func (c *Command) verifyNote() error {
	switch {
	case c.Qty < 1, c.Qty > MaxNoteParts, c.OrderRef >= uint32(c.Qty), c.AccountID > MaxNoteActs,
		c.AccountID == 0 && c.LimitPx != 0, c.PriceTicks != 0, c.SecurityID != 0, c.Side != 0,
		c.Flags != 0:
		return fmt.Errorf("matcher: decode note part=%d of %d acts=%d: %w", c.OrderRef, c.Qty,
			c.AccountID, ErrNote)
	}
	return nil
}

// ActsHash is what binds a note to the commands that it is about: FNV-1a of their bytes without
// what the sequencing fills in. A crash can leave a note whose commands were never sequenced; other
// commands that then follow it have another hash.
func ActsHash(acts []Command) int64 {
	h := uint64(14695981039346656037)
	for i := range acts {
		c := acts[i]
		c.InputSeq, c.LeaderEpoch, c.Version = 0, 0, min(c.Version, RecordVersion)
		for _, b := range c.Bytes() {
			h = (h ^ uint64(b)) * 1099511628211
		}
	}
	return int64(h)
}
