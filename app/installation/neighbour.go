package installation

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"posttrade/app/engine"
	"posttrade/journal"
)

// Every follower of the journal knows how far it has come, and follows only what is on stable
// storage. So, whatever happens to the machine, no follower knows more than the journal. When one
// does, the journal's folder is not the original one, and its next orders and trades would get ids
// that already stand for others. So a start asks each of these neighbours of the journal before it
// admits anything.

// The errors of a comparison; test them with errors.Is.
//
// Each is a refusal with a row in docs/operations.md. --accept-older-journal overrides the
// first two.
var (
	// errOlderJournal: something beside the journal knows more of the history than the journal.
	errOlderJournal = errors.New("the journal is missing or older than what lies beside it; " +
		"put the right one back, or give up what only the others know with --accept-older-journal")
	// errOtherHistory: something beside the journal is of another history.
	errOtherHistory = errors.New(
		"that is another history than the journal's; put the right journal back, " +
			"or move away what is not its own")
	// errOtherGenesis is an errOtherHistory that began with another genesis: nothing of it is the
	// journal's, so there is nothing to give up.
	errOtherGenesis = fmt.Errorf("%w; --accept-older-journal does not accept it", errOtherHistory)
)

// coverage is how far a neighbour knows the history.
//
// A coverage with both sequences 0 agrees with every journal.
type coverage struct {
	// SHA-256 of the genesis that the neighbour has noted; zero when it does not say.
	genesis [sha256.Size]byte
	// The genesis of the history that fills a database, in hex; empty when the database has none.
	mark string
	// foreign reports, without reading the journal, that the neighbour is of another genesis; nil: it
	// does not know one, or says it by genesis or mark.
	foreign func(h *engine.History) bool
	// The last command and the last trade that the neighbour knows; 0: none, or it does not say.
	inputSeq, tradeSeq uint64
	// of reports whether the neighbour's last sequence is the same in this history, which goes that
	// far; nil: the neighbour cannot tell.
	of func(h *engine.History) (bool, error)
}

// neighbour is one thing that knows how far the history went.
type neighbour struct {
	// Names the file or the address in messages, without a password.
	name string
	// Reads the coverage and changes nothing. What does not exist has the zero coverage.
	look func(ctx context.Context) (coverage, error)
	// keeps is the reason for which the neighbour gives nothing up; nil: it has none. It is asked
	// before any neighbour accepts.
	keeps func() error
	// accept makes the neighbour forget what an older journal does not have, and says what it forgot.
	//
	// It is called only with --accept-older-journal, after a comparison that has failed.
	accept func(ctx context.Context, h *engine.History) (what string, err error)
}

// compare returns an error when a neighbour and the journal do not agree.
//
// The order of the checks is from what needs no journal to what reads it: the genesis, how far both
// go, then the last entry itself. So a journal of another installation is found as such, whatever
// its length. Errors wrap errOlderJournal or errOtherHistory, or are those of reading.
func compare(h *engine.History, name string, s *coverage) error {
	known := h.Genesis != [sha256.Size]byte{}
	switch {
	case s.inputSeq == 0 && s.tradeSeq == 0:
		return nil
	case known && s.mark != "" && s.mark != hex.EncodeToString(h.Genesis[:]):
		return fmt.Errorf("%s is marked as that of genesis %.12s, the journal has %x: %w",
			name, s.mark, h.Genesis[:6], errOtherGenesis)
	case known && s.genesis != [sha256.Size]byte{} && s.genesis != h.Genesis:
		return fmt.Errorf("%s is of genesis %x, the journal of %x: %w",
			name, s.genesis[:8], h.Genesis[:8], errOtherGenesis)
	case known && s.foreign != nil && s.foreign(h):
		return fmt.Errorf("%s is of another genesis than the journal's, %x: %w",
			name, h.Genesis[:8], errOtherGenesis)
	case s.inputSeq > h.InputSeq || s.tradeSeq > h.TradeSeq:
		return fmt.Errorf("%s knows the history up to %s, the journal ends at sequence %d, trade %d: %w",
			name, s.reach(), h.InputSeq, h.TradeSeq, errOlderJournal)
	case s.of == nil:
		return nil
	}
	same, err := s.of(h)
	if errors.Is(err, journal.ErrArchived) {
		return nil // what is archived cannot be compared here; the journal's chain goes through it
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if !same {
		return fmt.Errorf("%s has another entry at %s than the journal: %w", name, s.reach(),
			errOtherHistory)
	}
	return nil
}

// reach describes what a neighbour knows.
//
// It is empty for a neighbour that knows nothing, which compare never describes.
func (s *coverage) reach() string {
	var parts []string
	if s.inputSeq > 0 {
		parts = append(parts, fmt.Sprintf("sequence %d", s.inputSeq))
	}
	if s.tradeSeq > 0 {
		parts = append(parts, fmt.Sprintf("trade %d", s.tradeSeq))
	}
	return strings.Join(parts, ", ")
}
