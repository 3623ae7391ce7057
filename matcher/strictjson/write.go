//perf:hot

package strictjson

import "unicode/utf8"

const hexDigits = "0123456789abcdef"

// AppendString appends text as a JSON string, in the form that RFC 8785 asks for: the escapes of
// two characters where they exist, \u00xx for other control characters, and every other character
// as it is. What is not valid UTF-8 becomes U+FFFD. Nothing is escaped for HTML.
//
// Printable ASCII, which is nearly everything, is copied in one piece.
func AppendString[T string | []byte](b []byte, text T) []byte {
	n := 0
	for n < len(text) && unescaped(text[n]) {
		n++
	}
	b = append(b, '"')
	b = append(b, text[:n]...)
	if n < len(text) {
		b = appendEscaped(b, text[n:])
	}
	return append(b, '"')
}

// unescaped reports a byte of ASCII that stands for itself within a JSON string.
func unescaped(ch byte) bool {
	return ch >= ' ' && ch < utf8.RuneSelf && ch != '"' && ch != '\\'
}

// appendEscaped appends the content of a JSON string, without its quotes.
func appendEscaped[T string | []byte](b []byte, text T) []byte {
	for i := 0; i < len(text); {
		ch := text[i]
		if ch >= utf8.RuneSelf {
			end := min(len(text), i+utf8.UTFMax)
			r, width := utf8.DecodeRuneInString(string(text[i:end]))
			b = utf8.AppendRune(b, r)
			i += width
			continue
		}
		i++
		switch {
		case unescaped(ch):
			b = append(b, ch)
		case ch == '"' || ch == '\\':
			b = append(b, '\\', ch)
		case ch == '\b':
			b = append(b, '\\', 'b')
		case ch == '\t':
			b = append(b, '\\', 't')
		case ch == '\n':
			b = append(b, '\\', 'n')
		case ch == '\f':
			b = append(b, '\\', 'f')
		case ch == '\r':
			b = append(b, '\\', 'r')
		default:
			b = append(b, '\\', 'u', '0', '0', hexDigits[ch>>4], hexDigits[ch&15])
		}
	}
	return b
}
