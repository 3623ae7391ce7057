package httpapi

import (
	"context"
	"errors"
	"slices"
	"strings"

	"posttrade/httpapi/urlpath"
	"posttrade/sidecars/store"
)

// Marks keeps the closing marks; *riskextract.SQLMarks is one.
type Marks interface {
	// PutMarks publishes the marks of a session under a version, once: the same marks again change
	// nothing, different marks are store.ErrConflict.
	PutMarks(ctx context.Context, session store.Date, version uint32, marks []store.Mark) error
}

// The errors of closing marks whose JSON is well-formed.
var (
	errMarkSecurity = errors.New("not 1 to 32 of printable ASCII without space, comma and quote")
	errQuality      = errors.New("not 1 to 32 of A-Z a-z 0-9 . _ -")
	errMarkTwice    = errors.New("this security is in the body twice")
)

// putMarks is PUT /eod/prices/{sessionDate}/v{version}.
//
// The marks of a version are published once: the same marks again are 200, other ones 409. It is no
// operator's act on record.
func (q *inquiry) putMarks(id []byte) problem {
	if q.p.Marks == nil {
		return problemRoute
	}
	if p := q.admin(); p.status != 0 {
		return p
	}
	date, tail := cutSegment(id)
	session, dated := parseDay(date)
	version, numbered := number(tail[len("/v"):], 1, 1<<32-1)
	switch {
	case !dated:
		return problemSessionDate
	case !numbered:
		return problemPriceVersion
	}
	marks, p := q.readMarks()
	if p.status != 0 {
		return p
	}
	ctx, cancel := quick()
	defer cancel()
	err := q.p.Marks.PutMarks(ctx, store.Date(session), uint32(version), marks)
	switch {
	case errors.Is(err, store.ErrConflict):
		return problemMarks
	case errors.Is(err, store.ErrMark):
		q.body.field = ""
		return q.body.bodyProblem(store.ErrMark, -1)
	case err != nil:
		return q.p.changed(err)
	}
	b := append(q.begin(), `{"sessionDate":`...)
	b = appendDay(b, session)
	b = append(b, `,"priceVersion":`...)
	b = appendUint(b, version)
	b = append(b, `,"marks":`...)
	return q.send(200, append(appendUint(b, uint64(len(marks))), '}'))
}

// readMarks reads the body: at least one mark, and each security once.
//
// An error of a line has its index; one of the whole set has none.
func (q *inquiry) readMarks() (marks []store.Mark, p problem) {
	if p := q.readBody(); p.status != 0 {
		return nil, p
	}
	for q.body.json.BeginArray(); q.body.json.NextItem(); {
		marks = append(marks, q.body.mark())
	}
	if err := q.body.end(); err != nil {
		return nil, q.body.bodyProblem(err, len(marks)-1)
	}
	q.body.field = ""
	if len(marks) == 0 {
		return nil, q.body.bodyProblem(errNoItems, -1)
	}
	seen := make(map[string]bool, len(marks))
	for i := range marks {
		if seen[marks[i].Security] {
			q.body.field = "security"
			return nil, q.body.bodyProblem(errMarkTwice, i)
		}
		seen[marks[i].Security] = true
	}
	return marks, problem{}
}

// mark reads a {security, price, quality} object.
//
// Tickers are those of the artifacts of an extract, which are lines of comma-separated values: so
// no blank, comma or quote.
func (d *decoder) mark() (m store.Mark) {
	var security, price bool
	d.field = ""
	for key := range d.members {
		switch string(key) {
		case "security":
			m.Security, security = string(d.security()), true
			if strings.ContainsAny(m.Security, ` ,"`) {
				d.fail(errMarkSecurity)
			}
		case "price":
			m.Price, price = d.price("price"), true
		case "quality":
			m.Quality = d.quality()
		default:
			d.unknown(key)
		}
	}
	d.require("security", security)
	d.require("price", price)
	return m
}

// quality reads the publisher's quality of a mark. A mark without one leaves the member out. An
// empty text is refused.
func (d *decoder) quality() string {
	d.field = "quality"
	text := d.json.String()
	if d.json.Err() == nil && (len(text) == 0 || len(text) > store.MaxQualityBytes ||
		slices.ContainsFunc(text, func(ch byte) bool { return !urlpath.IDByte(ch) })) {
		d.fail(errQuality)
	}
	return string(text)
}
