package timetext

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

func TestTimesAreRFC3339(t *testing.T) {
	const seed = 20260302
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	times := []int64{0, -1, 1, 951782400000, 951868799999, 4107542399999, 253402300799999,
		-62167219200000, 1772445600000}
	for range 20_000 {
		times = append(times, rng.Int64N(253402300799999+62167219200000)-62167219200000)
	}
	for _, ms := range times {
		want := time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z")
		if got := Of(ms); got != want {
			t.Fatalf("%d: %s, want %s", ms, got, want)
		}
	}
	for ms, want := range map[int64]string{math.MaxInt64: "9999-12-31T23:59:59.999Z",
		math.MinInt64: "0000-01-01T00:00:00.000Z"} {
		if got := Of(ms); got != want {
			t.Errorf("%d: %s, want %s", ms, got, want)
		}
	}
}

// TestParseMatchesTheStandardLibrary compares over random times, offsets and one-byte damage.
func TestParseMatchesTheStandardLibrary(t *testing.T) {
	const seed = 20261128
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	layouts := []string{time.RFC3339, "2006-01-02T15:04:05.000Z07:00",
		"2006-01-02T15:04:05.0Z07:00", time.RFC3339Nano}
	taken := 0
	for range 100_000 {
		at := time.Unix(0, rng.Int64N(math.MaxInt64))
		if rng.IntN(2) == 0 {
			at = at.Truncate(time.Millisecond)
		}
		text := []byte(at.In(time.FixedZone("", 60*(rng.IntN(2879)-1439))).Format(layouts[rng.IntN(4)]))
		if rng.IntN(2) == 0 {
			text[rng.IntN(len(text))] = "0123456789-+:.,TZtz "[rng.IntN(20)]
		}
		if compareParse(t, string(text)) {
			taken++
		}
	}
	if taken < 50_000 {
		t.Errorf("%d of 100000 taken", taken)
	}
}

// compareParse compares one text with time.Parse, which accepts more in a few known ways. It
// reports whether Parse has taken it.
func compareParse(t *testing.T, text string) bool {
	t.Helper()
	millis, exact, ok := Parse(text)
	if again, exactToo, okToo := Parse([]byte(text)); again != millis || exact != exactToo ||
		ok != okToo {
		t.Fatalf("%q: as bytes %d, %v, %v", text, again, exactToo, okToo)
	}
	lib, err := time.Parse(time.RFC3339, text)
	switch {
	case ok && (err != nil || lib.UnixMilli() != millis || exact != (lib.Nanosecond()%1e6 == 0)):
		t.Fatalf("%q: got %d, %v, time.Parse says %v, %v", text, millis, exact, lib, err)
	case !ok && err == nil && !strings.ContainsAny(text, ",tz") && !laxer(text):
		t.Fatalf("%q: refused, time.Parse takes it as %v", text, lib)
	}
	return ok
}

// laxer reports a text that time.Parse accepts and RFC 3339 does not: an hour of one digit, offsets
// beyond a day.
func laxer(text string) bool {
	if len(text) < 20 || text[13] != ':' {
		return true
	}
	zone := text[max(len(text)-6, 0):]
	return zone[0] == '+' || zone[0] == '-' && (zone[1:3] > "23" || zone[4:] > "59")
}

func TestParseOfHalfATime(t *testing.T) {
	const whole = "2026-03-02T14:30:00.5+01:00"
	for n := range len(whole) {
		if _, _, ok := Parse(whole[:n]); ok {
			t.Errorf("%q is taken", whole[:n])
		}
	}
	for text, want := range map[string]struct {
		millis    int64
		exact, ok bool
	}{
		"2026-03-02T14:30:00.1239999999999Z": {1772461800123, false, true},
		"2026-03-02T14:30:00.1230000000000Z": {1772461800123, true, true},
		"1969-12-31T23:59:59.9999Z":          {-1, false, true},
		"2026-03-02T14:30:00,5Z":             {},
		"2026-02-29T14:30:00Z":               {},
	} {
		millis, exact, ok := Parse(text)
		if ok != want.ok || ok && (millis != want.millis || exact != want.exact) {
			t.Errorf("%q: %d, %v, %v", text, millis, exact, ok)
		}
	}
}
