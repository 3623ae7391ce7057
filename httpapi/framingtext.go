package httpapi

// The text of a head, as RFC 9110 defines it.

// parseLength reads 1*DIGIT, at most 15 of them. So the number fits an int64 with room for sums.
// Signs, blanks and lists of equal lengths are refused.
func parseLength(b []byte) (int64, bool) {
	if len(b) == 0 || len(b) > 15 {
		return 0, false
	}
	var n int64
	for _, ch := range b {
		if ch < '0' || ch > '9' {
			return 0, false
		}
		n = n*10 + int64(ch-'0')
	}
	return n, true
}

// trimSpace cuts the optional white space of RFC 9110 section 5.6.3, blank and tab, at both ends.
// It copies nothing.
func trimSpace(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t') {
		b = b[1:]
	}
	for len(b) > 0 && (b[len(b)-1] == ' ' || b[len(b)-1] == '\t') {
		b = b[:len(b)-1]
	}
	return b
}

// equalFold compares b with a lower-case ASCII word, ignoring case.
//
// It allocates nothing, and knows no Unicode: a name with another byte than ASCII never equals one.
func equalFold(b []byte, lower string) bool {
	if len(b) != len(lower) {
		return false
	}
	for i, ch := range b {
		if ch >= 'A' && ch <= 'Z' {
			ch |= 0x20
		}
		if ch != lower[i] {
			return false
		}
	}
	return true
}

// tokenBytes marks the bytes of an RFC 9110 token. It is constant.
var tokenBytes = func() (t [256]bool) {
	for ch := byte('0'); ch <= '9'; ch++ {
		t[ch] = true
	}
	for ch := byte('a'); ch <= 'z'; ch++ {
		t[ch], t[ch&^0x20] = true, true
	}
	for _, ch := range []byte("!#$%&'*+-.^_`|~") {
		t[ch] = true
	}
	return t
}()

// isToken reports a method or a header name as RFC 9110 section 5.6.2 writes it: not empty, without
// white space and separators.
func isToken(b []byte) bool {
	for _, ch := range b {
		if !tokenBytes[ch] {
			return false
		}
	}
	return len(b) > 0
}
