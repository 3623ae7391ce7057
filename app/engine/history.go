package engine

import (
	"context"
	"crypto/sha256"
	"errors"

	"posttrade/journal"
	"posttrade/matcher"
)

// History is the journal as a start has found it.
//
// It is compared with everything outside of the journal that knows how far the history went. A
// value says what was true when it was made; the journal may have grown since.
type History struct {
	// SHA-256 of the genesis record; zero when the journal has none yet.
	Genesis [sha256.Size]byte
	// The last command and the last trade on stable storage.
	InputSeq, TradeSeq uint64
	// The journal, which has at least this history.
	Source *journal.Journal
}

// HistoryOf is the stable history of an open journal. While the journal is open for reading only,
// that is all it has.
//
// The stable part is taken, and not the durable one: a neighbour follows only stable commands, so
// one that knows more than this proves that the journal was replaced or cut.
func HistoryOf(j *journal.Journal) History {
	h := History{Source: j}
	if _, created := j.Genesis(); created {
		h.Genesis = j.Seed()
		h.InputSeq, h.TradeSeq = j.StableHead()
	}
	return h
}

// Command returns the command of a sequence.
//
// inputSeq is 1 to h.InputSeq. The error journal.ErrArchived says that the command was moved out
// and its archive is not at hand.
func (h *History) Command(ctx context.Context, inputSeq uint64) (c matcher.Command, err error) {
	take := func(commands []matcher.Command, _ journal.ClientIDs) error {
		c = commands[0]
		return nil
	}
	err = h.Source.ReplayTo(ctx, inputSeq, inputSeq, take)
	return c, err
}

// Fill returns the fill of a trade sequence.
//
// tradeSeq is 1 to h.TradeSeq; the errors are those of Command. Beyond the end the zero fill is
// returned without an error.
func (h *History) Fill(tradeSeq uint64) (f matcher.Fill, err error) {
	enough := errors.New("enough")
	err = h.Source.Fills(tradeSeq, func(fills []matcher.Fill) error {
		f = fills[0]
		return enough
	})
	if errors.Is(err, enough) {
		err = nil
	}
	return f, err
}
