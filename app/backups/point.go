package backups

import (
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"posttrade/journal"
)

// The names of the members of the query of JournalPath: the commit that the stream goes on from.
const (
	queryGenesis  = "genesis"
	querySequence = "sequence"
	queryTrade    = "trade"
	queryChain    = "chain"
)

// after reads the point that the stream goes on from; the zero point without a query. An error
// without a field is about a genesis that is not the journal's.
//
// field is the name of the wrong member of the query; every member must be there, or none, each
// once. The genesis is compared here; whether the journal has that commit is for TransferAfter to
// say.
func (s *Server) after(q url.Values) (p journal.Point, field string, err error) {
	for name, values := range q {
		switch {
		case name != queryGenesis && name != querySequence && name != queryTrade && name != queryChain:
			return p, name, errors.New("unknown parameter")
		case len(values) > 1:
			return p, name, errors.New("given twice")
		}
	}
	if len(q) == 0 {
		return p, "", nil
	}
	p.InputSeq, err = strconv.ParseUint(q.Get(querySequence), 10, 62)
	if err != nil || p.InputSeq == 0 {
		return p, querySequence, errors.New("want a sequence from 1 on")
	}
	if p.TradeSeq, err = strconv.ParseUint(q.Get(queryTrade), 10, 62); err != nil {
		return p, queryTrade, errors.New("want a trade sequence")
	}
	for _, h := range []struct {
		name string
		into []byte
	}{{queryChain, p.Chain[:]}, {queryGenesis, make([]byte, len(p.Chain))}} {
		text := q.Get(h.name)
		if len(text) != hex.EncodedLen(len(h.into)) {
			return p, h.name, errors.New("want 64 hexadecimal digits")
		}
		if _, err := hex.Decode(h.into, []byte(text)); err != nil {
			return p, h.name, errors.New("want 64 hexadecimal digits")
		}
	}
	seed := s.o.Journal.Seed()
	if got := hex.EncodeToString(seed[:]); got != strings.ToLower(q.Get(queryGenesis)) {
		return p, "", fmt.Errorf("this journal is of genesis %s: %w", got, journal.ErrBase)
	}
	return p, "", nil
}
