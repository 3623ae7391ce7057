package riskextract

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"posttrade/sidecars/store"
)

// Marks returns the closing marks published for a session under a version, in any order; found is
// false when none are.
//
// An error is one of the database or store.ErrMarksChanged; the extract waits and tries again.
type Marks interface {
	Marks(ctx context.Context, session store.Date, version uint32) (marks []store.Mark,
		found bool, err error)
}

// SQLMarks are the closing marks in the database.
//
// Any goroutine may use it.
type SQLMarks struct {
	DB  *store.DB
	Now func() time.Time // nil: time.Now
}

// Marks implements Marks, from one snapshot of the database.
func (s *SQLMarks) Marks(ctx context.Context, session store.Date,
	version uint32) (marks []store.Mark, found bool, err error) {
	err = s.DB.Read(ctx, func(tx *store.Tx) error {
		marks, found, err = tx.Marks(session, version)
		return err
	})
	return marks, found, err
}

// PutMarks publishes closing marks, once. The same marks again are nil; different marks are
// store.ErrConflict, and an invalid mark is store.ErrMark.
func (s *SQLMarks) PutMarks(ctx context.Context, session store.Date, version uint32,
	marks []store.Mark) error {
	if err := s.DB.Mine(ctx); err != nil {
		return err
	}
	now := time.Now
	if s.Now != nil {
		now = s.Now
	}
	return s.DB.Write(ctx, func(tx *store.Tx) error {
		return tx.PutMarks(session, version, marks, now().UnixMilli())
	})
}

// markSet is the marks of one extract, with their stored text.
//
// It does not change after parseMarks.
type markSet struct {
	text       string
	bySecurity map[string]store.Mark
}

// The qualities of a mark in the positions file.
const (
	sourceSnapshot    = "EOD_SNAPSHOT"
	sourceLastTrade   = "CLUSTER_LAST_TRADE_AT_N"
	qualityOfficial   = "OFFICIAL"
	qualityIndicative = "INDICATIVE"
)

// marksColumns is the second line of the stored marks; prices are whole millionths.
const marksColumns = "security,priceTicks,quality"

// markSetOf renders the marks of a session. found is false when the session has none.
//
// It reads its own text back, so that the first rendering and every rebuild use one parser. "None
// published" and "an empty set published" give different texts.
func markSetOf(session store.Date, version uint32, marks []store.Mark,
	found bool) (markSet, error) {
	marks = slices.SortedFunc(slices.Values(marks),
		func(a, b store.Mark) int { return strings.Compare(a.Security, b.Security) })
	b := appendMarksHeader(nil, session, version, found, len(marks))
	b = append(b, marksColumns+"\n"...)
	for _, m := range marks {
		b = append(append(b, m.Security...), ',')
		b = append(strconv.AppendInt(b, m.Price, 10), ',')
		b = append(append(b, m.Quality...), '\n')
	}
	return parseMarks(session, version, string(b))
}

func appendMarksHeader(b []byte, session store.Date, version uint32, found bool, rows int) []byte {
	return fmt.Appendf(b, "#marks schema=1 sessionDate=%s priceVersion=%d published=%t rows=%d\n",
		session, version, found, rows)
}

// parseMarks reads the text of markSetOf, strictly.
//
// ErrRefused for any text that markSetOf would not give for this session and version.
func parseMarks(session store.Date, version uint32, text string) (markSet, error) {
	set := markSet{text: text, bySecurity: make(map[string]store.Mark)}
	header, body, _ := strings.Cut(text, "\n")
	last := ""
	err := table("marks", marksColumns, body, func(columns []string) error {
		m := store.Mark{Security: columns[0], Quality: columns[2]}
		price, err := whole("priceTicks", columns[1], 1, math.MaxInt64)
		if err != nil {
			return err
		}
		if m.Price = int64(price); m.Quality != "" {
			if _, err := identifier("quality", m.Quality); err != nil {
				return err
			}
		}
		if !plainTicker(m.Security) || m.Security <= last {
			return fmt.Errorf("security=%q: %w", m.Security, errValue)
		}
		last = m.Security
		set.bySecurity[m.Security] = m
		return nil
	})
	if err != nil {
		return markSet{}, err
	}
	for _, published := range []bool{true, false} {
		want := appendMarksHeader(nil, session, version, published, len(set.bySecurity))
		if header+"\n" == string(want) && (published || len(set.bySecurity) == 0) {
			return set, nil
		}
	}
	return markSet{}, refuse("marks are headed %q", header)
}

// closing returns the closing mark of a position's security.
//
// price is in millionths. ErrRefused when there is neither a mark nor a last trade: a position is
// never stated without a price, not even a flat one.
func (s *markSet) closing(p *position) (price int64, source, quality string, err error) {
	if m, there := s.bySecurity[p.security]; there {
		if m.Quality == "" {
			return m.Price, sourceSnapshot, qualityOfficial, nil
		}
		return m.Price, sourceSnapshot, m.Quality, nil
	}
	if p.lastTrade > 0 {
		return p.lastTrade, sourceLastTrade, qualityIndicative, nil
	}
	return 0, "", "", refuse("security=%s has neither a closing mark nor a last trade", p.security)
}
