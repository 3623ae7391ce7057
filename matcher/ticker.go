package matcher

// The two lengths of a ticker: what a record has room for, and what a security may be called.
const (
	// TickerBytes is the longest ticker a symbol registration can carry, in bytes.
	TickerBytes = 32
	// MaxTickerChars is the longest name of a security. Its characters have one byte each.
	MaxTickerChars = 16
)

// ValidTicker reports whether text is the name of a security, [A-Z0-9.-]{1,16}.
//
// What names a security follows this rule. A record may carry another ticker: see fitsRecord.
func ValidTicker(text string) bool {
	for i := range len(text) {
		switch ch := text[i]; {
		case ch >= 'A' && ch <= 'Z', ch >= '0' && ch <= '9', ch == '.', ch == '-':
		default:
			return false
		}
	}
	return len(text) >= 1 && len(text) <= MaxTickerChars
}

// fitsRecord reports whether a symbol registration could carry the ticker.
func fitsRecord(ticker string) bool {
	var b [TickerBytes]byte
	return len(ticker) <= TickerBytes && copy(b[:], ticker) == len(ticker) &&
		tickerLen(&b) == len(ticker) &&
		ticker != ""
}
