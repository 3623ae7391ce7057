package engine

import (
	"context"
	"crypto/sha256"
	"errors"

	"posttrade/journal"
	"posttrade/matcher"
)

// History is the journal as a start has found it.
type History struct {
	Genesis            [sha256.Size]byte // zero: the journal has none yet
	InputSeq, TradeSeq uint64
	Source             *journal.Journal // that has at least this history
}

// HistoryOf is the stable history of an open journal. While the journal is open for reading only,
// that is all it has.
func HistoryOf(j *journal.Journal) History {
	h := History{Source: j}
	if _, created := j.Genesis(); created {
		h.Genesis = j.Seed()
		h.InputSeq, h.TradeSeq = j.StableHead()
	}
	return h
}

// Command returns the command of a sequence.
func (h *History) Command(ctx context.Context, inputSeq uint64) (c matcher.Command, err error) {
	take := func(commands []matcher.Command, _ journal.ClientIDs) error {
		c = commands[0]
		return nil
	}
	err = h.Source.ReplayTo(ctx, inputSeq, inputSeq, take)
	return c, err
}

// Fill returns the fill of a trade sequence.
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
