package store

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
)

// Mark is the closing price of one security.
//
// Quality is stored and published as it is. This package gives it no meaning.
type Mark struct {
	Security string
	Price    int64  // x 1e6, above 0
	Quality  string // the publisher's name for it: at most 32 of A-Z a-z 0-9 . _ -; "" = none
}

// The errors of PutMarks and Marks.
var (
	// ErrMark reports marks that cannot be a set: a bad value, or a security twice.
	ErrMark = errors.New("not a set of closing marks")
	// ErrConflict reports that this date and version already has other marks. Those stay.
	ErrConflict = errors.New("other closing marks are published under this date and version")
	// ErrMarksChanged reports that a published set differs from what was published.
	ErrMarksChanged = errors.New("the published closing marks were changed")
)

// MaxQualityBytes bounds Mark.Quality.
const MaxQualityBytes = 32

// maxSecurityBytes bounds Mark.Security; the engine has the same bound for tickers.
const maxSecurityBytes = 32

// PutMarks publishes the closing marks of a session under a version, in any order. A published set
// never changes: the same marks again are accepted and change nothing, other marks are ErrConflict.
// A value that cannot be a mark is ErrMark.
//
// version counts from 1; no marks at all are a set too. It sorts a copy, and checks every mark
// before it writes the first row. nowMillis is stored as the time of publishing and is not part of
// the set. Cost: a statement per mark.
func (t *Tx) PutMarks(session Date, version uint32, marks []Mark, nowMillis int64) error {
	sorted := slices.SortedFunc(slices.Values(marks), func(a, b Mark) int {
		return cmp.Compare(a.Security, b.Security)
	})
	if version == 0 {
		return fmt.Errorf("store: put marks version=0: %w", ErrMark)
	}
	for i, m := range sorted {
		switch {
		case !markTicker(m.Security):
			return fmt.Errorf("store: put marks security=%q: %w", m.Security, ErrMark)
		case m.Price <= 0:
			return fmt.Errorf("store: put marks security=%s price=%d: %w", m.Security, m.Price, ErrMark)
		case !markQuality(m.Quality):
			return fmt.Errorf("store: put marks security=%s quality=%q: %w", m.Security, m.Quality, ErrMark)
		case i > 0 && sorted[i-1].Security == m.Security:
			return fmt.Errorf("store: put marks security=%s is there twice: %w", m.Security, ErrMark)
		}
	}
	sum := marksSHA256(sorted)
	// Two writers meet at this row: the second waits for the first, and then finds the row.
	added, err := t.Exec(
		"insert into eod_price_sets (session_date, version, marks, sha256, published_at) "+
			"values ($1, $2, $3, $4, $5) on conflict do nothing",
		session, version, len(sorted), sum, nowMillis)
	if err != nil {
		return err
	}
	if added == 0 {
		_, published, _, err := t.marksHeader(session, version)
		if err == nil && published != sum {
			err = fmt.Errorf("store: put marks sessionDate=%s version=%d: %w", session, version, ErrConflict)
		}
		return err
	}
	for _, m := range sorted {
		_, err := t.Exec("insert into eod_prices (session_date, version, security, price, quality) "+
			"values ($1, $2, $3, $4, $5)", session, version, m.Security, m.Price, m.Quality)
		if err != nil {
			return err
		}
	}
	return nil
}

// Marks returns the closing marks published under a session date and version, by ascending
// security; found is false when there are none. A set that was changed in the database is
// ErrMarksChanged.
//
// The digest is computed anew on every call, over all marks. It finds an edit of a row, a row that
// was removed and one that was added.
func (t *Tx) Marks(session Date, version uint32) (marks []Mark, found bool, err error) {
	count, published, found, err := t.marksHeader(session, version)
	if err != nil || !found {
		return nil, false, err
	}
	marks = make([]Mark, 0, min(count, 1<<16))
	err = t.Query(
		"select security, price, quality from eod_prices where session_date = $1 and version = $2",
		func(r *Row) error {
			marks = append(marks, Mark{Security: r.Text(0), Price: r.Int64(1), Quality: r.Text(2)})
			return nil
		}, session, version)
	if err != nil {
		return nil, false, err
	}
	slices.SortFunc(marks, func(a, b Mark) int { return cmp.Compare(a.Security, b.Security) })
	if int64(len(marks)) != count || marksSHA256(marks) != published {
		return nil, false, fmt.Errorf("store: marks sessionDate=%s version=%d: %w",
			session, version, ErrMarksChanged)
	}
	return marks, true, nil
}

// marksHeader reads how many marks a set has and the digest that PutMarks stored with it.
func (t *Tx) marksHeader(session Date,
	version uint32) (count int64, sum string, found bool, err error) {
	err = t.Query("select marks, sha256 from eod_price_sets where session_date = $1 and version = $2",
		func(r *Row) error {
			count, sum, found = r.Int64(0), r.Text(1), true
			return nil
		}, session, version)
	return count, sum, found, err
}

// marksSHA256 returns the digest of a set's canonical text: one line "security,price,quality" per
// mark, by ascending security.
//
// The text ends each line with "\n" and has no header. No field needs quotes: markTicker and
// markQuality keep comma, quote and line breaks out, so two sets never have the same text.
func marksSHA256(sorted []Mark) string {
	h := sha256.New()
	var line []byte
	for _, m := range sorted {
		line = append(append(line[:0], m.Security...), ',')
		line = append(strconv.AppendInt(line, m.Price, 10), ',')
		line = append(append(line, m.Quality...), '\n')
		h.Write(line)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// markTicker reports whether a text can be a ticker and needs no quotes in a line of CSV.
func markTicker(text string) bool {
	for i := range len(text) {
		if c := text[i]; c <= ' ' || c > '~' || c == ',' || c == '"' {
			return false
		}
	}
	return text != "" && len(text) <= maxSecurityBytes
}

// markQuality reports whether a text can be a quality. The empty text can.
func markQuality(text string) bool {
	for i := range len(text) {
		c := text[i]
		if !('A' <= c && c <= 'Z' || 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '.' ||
			c == '_' || c == '-') {
			return false
		}
	}
	return len(text) <= MaxQualityBytes
}
