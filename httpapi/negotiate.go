package httpapi

import (
	"strings"

	"github.com/valyala/fasthttp"
)

// prefer returns the index of the offer that a request's header of the Accept family prefers.
// offers are in the server's own order of preference, which decides between equals. The answer is
// -1 when the header is absent or accepts none.
//
// An offer is matched by its own name before a range (application/*) and by a range before a
// wildcard, as RFC 9110 orders them. Parameters other than q are ignored, and an unreadable q
// counts as 0.
//
// It allocates for the header's text: it is for cold endpoints.
func prefer(h *fasthttp.RequestHeader, name string, offers ...string) int {
	best, bestQ := -1, 0
	for i, offer := range offers {
		q, rank := 0, 0
		for _, line := range h.PeekAll(name) {
			for element := range strings.SplitSeq(string(line), ",") {
				r, weight := acceptElement(element)
				if m := matchRank(r, offer); m > rank {
					q, rank = weight, m
				}
			}
		}
		if q > bestQ {
			best, bestQ = i, q
		}
	}
	return best
}

// acceptElement splits one element of such a header into its name, in lower case, and its weight in
// thousandths.
func acceptElement(element string) (name string, q int) {
	name, parameters, _ := strings.Cut(element, ";")
	q = 1000
	for p := range strings.SplitSeq(parameters, ";") {
		key, value, ok := strings.Cut(strings.TrimSpace(p), "=")
		if ok && strings.EqualFold(strings.TrimSpace(key), "q") {
			q = thousandths(strings.TrimSpace(value))
		}
	}
	return strings.ToLower(strings.TrimSpace(name)), q
}

// thousandths reads a weight: 0 or 1, with at most three decimals.
func thousandths(text string) int {
	whole, fraction, _ := strings.Cut(text, ".")
	if whole != "0" && whole != "1" || len(fraction) > 3 {
		return 0
	}
	n, ok := parseUint([]byte("1" + fraction + "000"[len(fraction):]))
	n -= 1000
	if !ok || whole == "1" && n > 0 {
		return 0
	}
	if whole == "1" {
		return 1000
	}
	return int(n)
}

// matchRank is how closely a name or range matches an offer, 0 for not at all.
func matchRank(name, offer string) int {
	kind, _, typed := strings.Cut(offer, "/")
	switch {
	case name == offer:
		return 3
	case typed && name == kind+"/*":
		return 2
	case name == "*" && !typed, name == "*/*" && typed:
		return 1
	}
	return 0
}
