package urlpath

// Plain reports whether path, as it was sent, has plain segments only: no percent-encoding, no
// empty segment (but the last), no segment of one or two dots. So a segment can be compared as
// bytes.
func Plain(path []byte) bool {
	if len(path) == 0 || path[0] != '/' {
		return false
	}
	start := 1
	for i := 1; i <= len(path); i++ {
		if i < len(path) && path[i] != '/' {
			if !IDByte(path[i]) {
				return false
			}
			continue
		}
		switch segment := path[start:i]; {
		case len(segment) == 0 && i < len(path), string(segment) == ".", string(segment) == "..":
			return false
		}
		start = i + 1
	}
	return true
}

// IDByte reports a byte that a segment may have: the unreserved characters of RFC 3986 but the
// tilde.
func IDByte(ch byte) bool {
	return ch >= 'a' && ch <= 'z' || ch >= 'A' && ch <= 'Z' || ch >= '0' && ch <= '9' ||
		ch == '-' || ch == '_' || ch == '.'
}
