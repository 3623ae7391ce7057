package ring

import "fmt"

// mustBeReady panics unless slot position pos lies in [lo, hi): only those slots may be read or
// written. The text is formatted here so that the hot calls stay inlinable.
func mustBeReady(what string, pos, lo, hi int64) {
	if pos < lo || pos >= hi {
		panic(fmt.Sprintf("ring: %s of position %d outside [%d, %d)", what, pos, lo, hi))
	}
}

// mustNotPass panics unless lo <= pos <= hi: a cursor never goes back and never
// passes what it follows.
func mustNotPass(what string, pos, lo, hi int64) {
	if pos < lo || pos > hi {
		panic(fmt.Sprintf("ring: %s up to %d, allowed are %d to %d", what, pos, lo, hi))
	}
}

// mustBePositive panics unless a count is at least one.
func mustBePositive(what string, n int) {
	if n < 1 {
		panic(fmt.Sprintf("ring: %s of %d slots, at least 1 is needed", what, n))
	}
}
