package settings

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Plain is a writer of lines to a terminal: what is not printable in them stands there as an
// escape, such as \x1b. Text from outside could otherwise move the cursor or set colours.
//
// Each Write has whole characters.
type Plain struct{ W io.Writer }

// Write implements io.Writer.
func (p Plain) Write(text []byte) (int, error) {
	if _, err := io.WriteString(p.W, plain(string(text))); err != nil {
		return 0, err
	}
	return len(text), nil
}

// plain is a text of lines with an escape for each character that is not printable.
func plain(text string) string {
	var b strings.Builder
	for len(text) > 0 {
		r, n := utf8.DecodeRuneInString(text)
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, text[0])
		case r == '\n' || unicode.IsPrint(r):
			b.WriteString(text[:n])
		case r < utf8.RuneSelf:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
		text = text[n:]
	}
	return b.String()
}
