package verify

import (
	"errors"
	"fmt"
)

// ErrRead: what should be judged cannot be read. Nothing is proven, and nothing is refuted.
var ErrRead = errors.New("cannot be read")

// What a refusal may blame: the thing to look at first. It is part of the message, and callers
// compare it to name the right file.
const (
	BlameProof   = "the proof"
	BlameNote    = "the note"
	BlameOld     = "the older note"
	BlameLog     = "the log"
	BlameTiles   = "the tiles"
	BlameBundle  = "the bundle"
	BlameReport  = "the report"
	BlameRange   = "the range of the export"
	BlameJournal = "the journal"
)

// Refusal says that something is not proven. Test for it with errors.As.
type Refusal struct {
	Where string // the first sequence, leaf or byte that differs
	// Why says what differs, with both sides where there are two.
	Why    string
	Blames string // what is at fault
}

// Error implements error.
func (r *Refusal) Error() string {
	text := r.Why
	if r.Where != "" {
		text = r.Where + ": " + text
	}
	return fmt.Sprintf("%s; at fault: %s", text, r.Blames)
}

// refuse words a refusal.
func refuse(where, blames, format string, args ...any) error {
	return &Refusal{Where: where, Why: fmt.Sprintf(format, args...), Blames: blames}
}
