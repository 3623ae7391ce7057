package riskextract

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"posttrade/matcher/strictjson"
	"posttrade/sidecars/store"
)

// MaxReferenceBytes bounds a reference file.
//
// A file is read whole and parsed in memory for every extract.
const MaxReferenceBytes = 16 << 20

// The errors of a line, for the text of an error.
//
// table wraps them in ErrRefused with the file and the line.
var (
	errHeader  = errors.New("the first line is not the header")
	errEnd     = errors.New("the last line does not end")
	errColumns = errors.New("not the number of columns")
	errByte    = errors.New("a byte that is no printable ASCII, a quote, or a space at an edge")
	errValue   = errors.New("not a value")
	errTwice   = errors.New("is there twice")
	errSize    = errors.New("too large")
)

// table reads CSV strictly: ASCII, no quotes, \n after every line, the exact header first, the same
// number of columns in every line. row receives each line's columns, which share the memory of
// text.
//
// The slice that row gets is used again for the next line. An error of row ends the reading.
func table(name, header, text string, row func(columns []string) error) error {
	fail := func(line int, err error) error {
		return fmt.Errorf("riskextract: read %s line=%d: %w: %w", name, line, err, ErrRefused)
	}
	rest, found := strings.CutPrefix(text, header+"\n")
	switch {
	case len(text) > MaxReferenceBytes:
		return fail(1, errSize)
	case !found:
		return fail(1, errHeader)
	}
	columns := make([]string, strings.Count(header, ",")+1)
	for line := 2; rest != ""; line++ {
		var this string
		if this, rest, found = strings.Cut(rest, "\n"); !found {
			return fail(line, errEnd)
		}
		if err := split(this, columns); err != nil {
			return fail(line, err)
		}
		if err := row(columns); err != nil {
			return fail(line, err)
		}
	}
	return nil
}

// split splits a line into exactly len(columns) columns.
//
// Blanks around a column are refused and not cut: two readers of such a file could differ.
func split(line string, columns []string) error {
	for i := range len(line) {
		if c := line[i]; c < ' ' || c > '~' || c == '"' {
			return errByte
		}
	}
	for i := range columns {
		var more bool
		columns[i], line, more = strings.Cut(line, ",")
		if more != (i < len(columns)-1) {
			return errColumns
		}
		if columns[i] != strings.TrimSpace(columns[i]) {
			return errByte
		}
	}
	return nil
}

// whole reads a whole number from least to most, in its shortest form.
//
// name is the column's, for the error.
func whole(name, text string, least, most uint64) (uint64, error) {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || strconv.FormatUint(n, 10) != text || n < least || n > most {
		return 0, fmt.Errorf("%s=%q: %w", name, text, errValue)
	}
	return n, nil
}

// decimal reads a number of at most six decimals as millionths, 0 or more.
//
// A sign or an exponent is refused.
func decimal(name, text string) (int64, error) {
	n, err := strictjson.ParseDecimal([]byte(text))
	if err != nil || strings.ContainsAny(text, "-eE") {
		return 0, fmt.Errorf("%s=%q: %w", name, text, errValue)
	}
	return n, nil
}

// day reads a date of the years 1900 to 9999.
//
// The comparison of the texts is one of years: the form has been checked before.
func day(name, text string) (store.Date, error) {
	d, err := store.ParseDate(text)
	if err != nil || text < "1900" {
		return 0, fmt.Errorf("%s=%q: %w", name, text, errValue)
	}
	return d, nil
}

// identifier reads a name of 1 to 64 of A-Z a-z 0-9 . _ -
func identifier(name, text string) (string, error) {
	const most = 64
	bad := text == "" || len(text) > most
	for i := range len(text) {
		c := text[i]
		bad = bad || !('A' <= c && c <= 'Z' || 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '.' ||
			c == '_' || c == '-')
	}
	if bad {
		return "", fmt.Errorf("%s=%q: %w", name, text, errValue)
	}
	return text, nil
}

// member reads one of a few words and returns its index.
func member(name, text string, words []string) (int, error) {
	for i, w := range words {
		if text == w {
			return i, nil
		}
	}
	return 0, fmt.Errorf("%s=%q: %w", name, text, errValue)
}
