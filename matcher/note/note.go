package note

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"unicode/utf8"

	"posttrade/matcher"
	"posttrade/matcher/desk"
)

// The kinds of acts. The texts are stored in the journal and shown by the interfaces, so they are
// never changed.
const (
	KillSwitch = "kill-switch" // a policy that sets or lifts the kill switch
	Limits     = "limits"      // a change of risk limits
	Enable     = "enable"      // of an account or a security
	Disable    = "disable"
	Halt       = "halt" // a security is halted, or no longer
	Restrict   = "restriction"
	Price      = "price"      // set by hand
	ForceFill  = "force-fill" // of an order
	Capacity   = "capacity"   // a start has raised a capacity
	Settlement = "settlement" // forced, before its date
	Repair     = "repair"     // rows made again from the journal
	Statement  = "statement"  // of the bookings from outside
	Epoch      = "epoch"      // a source has begun a new one
	MemberAdd  = "member-add"
	MemberGone = "member-remove"
	MemberSwap = "member-replace" // a member takes part with another disk
	Revoke     = "token-revoke"
	ActRefused = "refused" // any of them that was sequenced, and changed nothing
)

// Kinds are all of them.
var Kinds = []string{KillSwitch, Limits, Enable, Disable, Halt, Restrict, Price, ForceFill,
	Capacity, Settlement, Repair, Statement, Epoch, MemberAdd, MemberGone, MemberSwap, Revoke,
	ActRefused}

// Bounds of a note. A piece is what fits beside one command.
const (
	MaxReason = 500 // characters
	pieceSize = desk.MaxClientIDBytes
)

// Errors. ErrSize is about the whole note, ErrReason about the text that an operator gave.
var (
	ErrSize   = errors.New("the note is too long")
	ErrReason = errors.New("is not 1 to 500 characters of UTF-8 without control characters")
)

// Note is what is put on record with an act. The three values are JSON texts; nil is null. Its
// members are stored in the order of the fields, those that are empty left out.
type Note struct {
	Kind    string `json:"kind"`
	Subject string `json:"subject,omitempty"` // of the token; "" for an act of the machine
	Address string `json:"address,omitempty"` // that the act came from
	Reason  string `json:"reason,omitempty"`  // as CheckReason allows it
	// Object names what the act is about by members such as accountId, security, orderId, tradeId.
	Object json.RawMessage `json:"object,omitempty"`
	// Old and New are the values before and after. Of a note of kind Price about several commands,
	// Old is an array with the price before each of them.
	Old json.RawMessage `json:"old,omitempty"`
	New json.RawMessage `json:"new,omitempty"`
}

// Value returns v as the JSON text of an object or value. v is of plain types; others panic. The
// characters of HTML are not escaped: the text is for people and is escaped where it is shown.
func Value(v any) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic("note: a value of plain types does not marshal: " + err.Error())
	}
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'})
}

// Written is a note as text in pieces, ready for a ticket. Its pieces share the memory of the text.
type Written struct{ pieces [][]byte }

// Write makes the text of a note. ErrSize when it needs more than matcher.MaxNoteParts commands.
func (n *Note) Write() (Written, error) {
	pieces := cut(Value(n))
	if len(pieces) > matcher.MaxNoteParts {
		return Written{}, fmt.Errorf("note: kind=%s parts=%d: %w", n.Kind, len(pieces), ErrSize)
	}
	return Written{pieces}, nil
}

// cut divides a text in UTF-8 into pieces of at most pieceSize bytes, between two characters, so
// that every piece is valid UTF-8 by itself. A text of no bytes is one empty piece.
func cut(text []byte) (pieces [][]byte) {
	for len(text) > pieceSize {
		end := pieceSize
		for !utf8.RuneStart(text[end]) {
			end--
		}
		pieces, text = append(pieces, text[:end]), text[end:]
	}
	return append(pieces, text)
}

// Len is the number of commands that the note takes, 1 to matcher.MaxNoteParts. The ticket needs as
// many places in front of the acts.
func (w Written) Len() int { return len(w.pieces) }

// Put writes the note into the first Len places of a ticket. All places behind are commands that
// the note is about: they are complete, the event times too, and stay as they are. nowMillis is the
// event time of the parts, in epoch milliseconds.
//
// It comes last before Submit, because the parts carry a hash of the commands.
func (w Written) Put(t *desk.Ticket, nowMillis int64) {
	acts := t.Len() - w.Len()
	binds := int64(0)
	if acts > 0 {
		all := make([]matcher.Command, acts)
		for i := range all {
			all[i] = *t.Command(w.Len() + i)
		}
		binds = matcher.ActsHash(all)
	}
	for i, piece := range w.pieces {
		c := t.Command(i)
		*c = matcher.NewOperatorNote(i, w.Len(), acts, binds)
		c.EventTimeMillis = nowMillis
		t.SetClientID(i, piece)
	}
}

// Log writes the one log line of an act. inputSeq is that of the act, or of the note when the act
// is no command. 0: the outcome is unknown.
func (n *Note) Log(log *slog.Logger, inputSeq uint64) {
	if inputSeq == 0 {
		n.log(log, slog.LevelWarn, "operator act: its outcome is unknown", inputSeq)
		return
	}
	n.log(log, slog.LevelInfo, "operator act", inputSeq)
}

// LogRefused writes the one log line of an act that was sequenced, and that the engine has refused.
func (n *Note) LogRefused(log *slog.Logger, inputSeq uint64, code string) {
	n.log(log, slog.LevelWarn, "operator act: refused", inputSeq, "code", code)
}

// log writes the same members for every outcome, so that a search for an act finds all its lines.
func (n *Note) log(log *slog.Logger, level slog.Level, text string, inputSeq uint64, more ...any) {
	log.Log(context.Background(), level, text, append([]any{"kind", n.Kind, "sequence", inputSeq,
		"subject", n.Subject, "address", n.Address, "reason", n.Reason, "object", string(n.Object),
		"old", string(n.Old), "new", string(n.New)}, more...)...)
}
