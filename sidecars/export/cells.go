package export

import (
	"strconv"
	"strings"
	"time"

	"posttrade/matcher/strictjson"
	"posttrade/matcher/timetext"
	"posttrade/sidecars/store"
)

// cells appends the cells of CSV lines.
//
// Each method appends one cell, with the comma before it. The zero value is ready for the first
// line.
type cells struct {
	text []byte
	some bool // the line has a cell
}

// next begins a cell.
func (c *cells) next() {
	if c.some {
		c.text = append(c.text, ',')
	}
	c.some = true
}

// endLine ends a line. A line of one empty cell would read as an empty line; no table has one
// column.
func (c *cells) endLine() {
	c.text, c.some = append(c.text, '\n'), false
}

// null is a cell without a value.
//
// It reads like an empty text: CSV cannot tell the two apart.
func (c *cells) null() { c.next() }

func (c *cells) number(n int64) {
	c.next()
	c.text = strconv.AppendInt(c.text, n, 10)
}

// decimal is a number of millionths.
//
// The text has no more decimals than it needs (strictjson.FormatDecimal).
func (c *cells) decimal(n int64) {
	c.next()
	c.text = strictjson.FormatDecimal(c.text, n)
}

// moment is a time in epoch milliseconds.
//
// It is UTC with Z and always three decimals.
func (c *cells) moment(millis int64) {
	c.next()
	c.text = timetext.Append(c.text, millis)
}

func (c *cells) date(d store.Date) {
	c.next()
	c.text = d.Time().AppendFormat(c.text, time.DateOnly)
}

// words is a cell of text: quoted where RFC 4180 asks for it, and with a ' where a spreadsheet
// would take it for a formula.
//
// Blanks at either end lead to quotes as well: some readers trim cells without them.
func (c *cells) words(s string) {
	c.next()
	formula := s != "" && strings.ContainsRune("=+-@\t\r", rune(s[0]))
	if !strings.ContainsAny(s, ",\"\r\n") && strings.TrimSpace(s) == s {
		if formula {
			c.text = append(c.text, '\'')
		}
		c.text = append(c.text, s...)
		return
	}
	c.text = append(c.text, '"')
	if formula {
		c.text = append(c.text, '\'')
	}
	for i := range len(s) {
		if s[i] == '"' {
			c.text = append(c.text, '"')
		}
		c.text = append(c.text, s[i])
	}
	c.text = append(c.text, '"')
}
