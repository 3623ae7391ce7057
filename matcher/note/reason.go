package note

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// CheckReason returns a reason without surrounding blanks, or ErrReason. A reason is shown to
// people in logs, tables and terminals. So it holds no control character, no line separator and no
// mark that turns the direction of the text around it.
func CheckReason(text string) (string, error) {
	if !utf8.ValidString(text) {
		return "", ErrReason
	}
	text = strings.TrimSpace(text)
	if n := utf8.RuneCountInString(text); n < 1 || n > MaxReason {
		return "", ErrReason
	}
	for _, r := range text {
		if !shown(r) {
			return "", ErrReason
		}
	}
	return text, nil
}

// shown reports a character that stays within its line and its place: no control, no line or
// paragraph separator, no byte order mark, none of the marks of Unicode's bidirectional algorithm.
func shown(r rune) bool {
	switch {
	case unicode.IsControl(r), r == '\u2028', r == '\u2029', r == '\ufeff', r == utf8.RuneError:
		return false
	case r >= '\u202a' && r <= '\u202e', r >= '\u2066' && r <= '\u2069', r == '\u200e', r == '\u200f':
		return false
	}
	return true
}
