package riskextract

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"posttrade/matcher"
	"posttrade/ring"
	"posttrade/sidecars/store"
)

// position is a row of a cut.
//
// quantity is signed: below 0 for a short position. average is the running average cost.
type position struct {
	account    uint32
	security   string
	quantity   int64
	average    int64 // x 1e6
	multiplier uint32
	lastTrade  int64 // x 1e6; 0: none
}

// cutRows are the rows of a cut's text.
type cutRows struct {
	Marker
	positions []position
	contracts []matcher.ContractInfo
}

// parseCut reads the text of a cut. The caller checks by its SHA-256 that the text is the one that
// was rendered; parseCut only refuses text that no cut can hold.
//
// A text that it accepts has exactly one form: rendering its rows again would give the same bytes.
// The error is ErrRefused with the line.
func parseCut(text string) (*cutRows, error) {
	return newCutReader(text).rows()
}

// newCutReader begins at the first line.
func newCutReader(text string) *cutReader {
	return &cutReader{rest: text, breath: ring.NewBreather()}
}

// rows reads the whole text. The numbers in the header bound the rows, and never the memory beyond
// the length of the text.
func (r *cutReader) rows() (*cutRows, error) {
	text := r.rest
	var cut cutRows
	rows, contracts := r.header(&cut.Marker)
	r.expect(cutColumns)
	cut.positions = make([]position, 0, min(rows, len(text)))
	for range rows {
		p, ok := r.position()
		if !ok {
			break
		}
		cut.positions = append(cut.positions, p)
	}
	r.expect(cutSection)
	r.expect(cutTerms)
	cut.contracts = make([]matcher.ContractInfo, 0, min(contracts, len(text)))
	last := uint64(0)
	for range contracts {
		c, ok := r.contract(last)
		if !ok {
			break
		}
		cut.contracts, last = append(cut.contracts, c), c.ID
	}
	if r.err == nil && r.rest != "" {
		r.fail("more than the rows it announces")
	}
	if r.err != nil {
		return nil, r.err
	}
	return &cut, nil
}

// cutReader reads a cut's text line by line. It keeps the first error.
type cutReader struct {
	rest string
	line int // the current line
	err  error

	breath ring.Breather
}

func (r *cutReader) fail(what string) {
	if r.err == nil {
		r.err = fmt.Errorf("riskextract: read cut line=%d: %s: %w", r.line, what, ErrRefused)
	}
}

// next returns the next line.
func (r *cutReader) next() string {
	r.line++
	r.breath.Step(rowsPerBreath)
	line, rest, found := strings.Cut(r.rest, "\n")
	if !found {
		r.fail("the text ends")
		return ""
	}
	r.rest = rest
	return line
}

// expect reads a line that must be this one, which ends with \n.
func (r *cutReader) expect(line string) {
	if got := r.next(); r.err == nil && got+"\n" != line {
		r.fail("not " + strings.TrimSuffix(line, "\n"))
	}
}

// header reads the first line: it compares it with the line that its values give.
//
// So signs, leading zeros and blanks that Sscanf accepts are refused.
func (r *cutReader) header(m *Marker) (rows, contracts int) {
	line := r.next()
	var session int64
	_, err := fmt.Sscanf(line,
		"#cut schema=3 seq=%d sessionDateEpochDay=%d priceVersion=%d rows=%d contracts=%d",
		&m.Seq, &session, &m.PriceVersion, &rows, &contracts)
	m.SessionDate = store.Date(session)
	if err != nil || rows < 0 || contracts < 0 || int64(m.SessionDate) != session ||
		m.check() != nil ||
		string(m.appendHeader(nil, rows, contracts)) != line+"\n" {
		r.fail("not the header of a cut of schema 3")
		return 0, 0
	}
	return rows, contracts
}

// position reads a line of cutColumns. Whether the ticker is one of the reference data is decided
// when the files are rendered.
func (r *cutReader) position() (p position, ok bool) {
	c := columns{rest: r.next()}
	p.account = uint32(c.unsigned(math.MaxUint32))
	p.security = c.text()
	p.quantity = c.signed()
	p.average = c.signed()
	p.multiplier = uint32(c.unsigned(math.MaxUint32))
	p.lastTrade = c.signed()
	if !c.done() || !plainTicker(p.security) || p.lastTrade < 0 || p.multiplier == 0 {
		r.fail("not a position")
	}
	return p, r.err == nil
}

// contract reads a line of cutTerms and checks its terms as the rendering did.
func (r *cutReader) contract(last uint64) (info matcher.ContractInfo, ok bool) {
	c := columns{rest: r.next()}
	info.ID = c.unsigned(math.MaxUint64)
	info.AccountID = uint32(c.unsigned(math.MaxUint32))
	info.Side = matcher.Side(c.unsigned(uint64(matcher.Sell)))
	info.Notional = int32(c.unsigned(math.MaxInt32))
	info.FixedRate = c.signed()
	info.Convention = uint32(c.unsigned(math.MaxUint32))
	info.Effective = uint16(c.unsigned(math.MaxUint16))
	info.Maturity = uint16(c.unsigned(math.MaxUint16))
	info.Swaption = c.unsigned(1) == 1
	info.Expiry = uint16(c.unsigned(math.MaxUint16))
	info.Style = matcher.ExerciseStyle(c.unsigned(math.MaxUint8))
	if !c.done() {
		r.fail("not a contract")
	} else if err := checkContract(&info, last); err != nil && r.err == nil {
		r.err = err
	}
	return info, r.err == nil
}

// columns reads one line column by column. A number has one form only, the shortest.
type columns struct {
	rest string
	over bool // the last column has been read
	bad  bool
}

func (c *columns) text() string {
	if c.over {
		c.bad = true
		return ""
	}
	column, rest, more := strings.Cut(c.rest, ",")
	c.rest, c.over = rest, !more
	return column
}

// unsigned reads a number from 0 to most without a sign or a leading zero.
func (c *columns) unsigned(most uint64) uint64 {
	text := c.text()
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n > most || len(text) > 1 && text[0] == '0' || text[0] == '+' {
		c.bad = true
		return 0
	}
	return n
}

// signed reads a number with a minus sign or none.
func (c *columns) signed() int64 {
	text := c.text()
	n, err := strconv.ParseInt(text, 10, 64)
	digits := strings.TrimPrefix(text, "-")
	if err != nil || digits[0] == '0' && text != "0" || text[0] == '+' {
		c.bad = true
		return 0
	}
	return n
}

// done reports whether the line had all its columns, all readable, and no more.
func (c *columns) done() bool { return c.over && !c.bad }
