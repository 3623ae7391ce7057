package matcher

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"posttrade/ring/scenariotest"
)

// TestBookScenarios runs testdata/book/*.scn: commands, a line of dashes, and the events that they
// must give. The words min and max stand for the ends of int64. The model runs the same commands.
func TestBookScenarios(t *testing.T) {
	scenariotest.Run(t, "testdata/book/*.scn", playBook)
}

func playBook(t *testing.T, commands string) string {
	t.Helper()
	w := newTwins(t, 32)
	var out strings.Builder
	for n, line := range scenariotest.Lines(commands) {
		verb, rest, _ := strings.Cut(line, " ")
		if verb == "book" {
			writeBook(&out, w.book)
			continue
		}
		c, err := parseBookCommand(verb, strings.Fields(rest))
		if err != nil {
			t.Fatalf("line %d: %v", n, err)
		}
		got, err := w.apply(c)
		if err != nil {
			t.Fatalf("line %d: %v", n, err)
		}
		for _, e := range got {
			writeBookEvent(&out, e)
		}
	}
	return out.String()
}

func parseBookCommand(verb string, words []string) (c BookCommand, err error) {
	kinds := map[string]BookCommandKind{"add": BookNew, "cancel": BookCancel, "modify": BookModify}
	flags := map[string]uint16{"ioc": FlagIOC, "fok": FlagFOK, "post-only": FlagPostOnly,
		"market": FlagMarket}
	if c.Kind = kinds[verb]; c.Kind == 0 {
		return c, fmt.Errorf("unknown command %q", verb)
	}
	for _, word := range words {
		if flag, ok := flags[word]; ok {
			c.Order.Flags |= flag
			continue
		}
		key, value, _ := strings.Cut(word, "=")
		switch {
		case word == "side=buy":
			c.Order.Side = Buy
			continue
		case word == "side=sell":
			c.Order.Side = Sell
			continue
		case value == "max":
			value = "9223372036854775807"
		case value == "min":
			value = "-9223372036854775808"
		}
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			return c, fmt.Errorf("%q: %w", word, err)
		}
		switch key {
		case "id":
			c.Order.ID = uint32(n)
		case "owner":
			c.Order.Owner = uint32(n)
		case "px":
			c.Order.Px = n
		case "qty":
			c.Order.Qty = int32(n)
		default:
			return c, fmt.Errorf("unknown word %q", word)
		}
	}
	return c, nil
}

var bookRejectNames = [...]string{"ok", "invalid", "duplicate-id", "unknown-id", "would-cross",
	"full"}

func writeBookEvent(out *strings.Builder, e BookEvent) {
	switch e.Kind {
	case BookAccepted:
		fmt.Fprintf(out, "accepted id=%d leaves=%d\n", e.ID, e.Leaves)
	case BookFilled:
		fmt.Fprintf(out, "fill maker=%d taker=%d px=%d qty=%d\n", e.Maker, e.ID, e.Px, e.Qty)
	case BookPrevented:
		fmt.Fprintf(out, "prevented maker=%d taker=%d leaves=%d\n", e.Maker, e.ID, e.Leaves)
	case BookCanceled:
		fmt.Fprintf(out, "canceled id=%d leaves=%d\n", e.ID, e.Leaves)
	case BookRested:
		fmt.Fprintf(out, "rested id=%d px=%d leaves=%d\n", e.ID, e.Px, e.Leaves)
	case BookModified:
		place := "lost"
		if e.Kept {
			place = "kept"
		}
		fmt.Fprintf(out, "modified id=%d px=%d leaves=%d place=%s\n", e.ID, e.Px, e.Leaves, place)
	case BookRejected:
		fmt.Fprintf(out, "rejected id=%d %s\n", e.ID, bookRejectNames[e.Reject])
	}
}

// writeBook writes the asks from the top down to the best, then the bids.
func writeBook(out *strings.Builder, b *Book) {
	out.WriteString("book\n")
	var levels [32]BookLevel
	asks := levels[:b.Depth(Sell, levels[:])]
	for i := len(asks) - 1; i >= 0; i-- {
		fmt.Fprintf(out, "  ask %d x %d\n", asks[i].Px, asks[i].Qty)
	}
	for _, l := range levels[:b.Depth(Buy, levels[:])] {
		fmt.Fprintf(out, "  bid %d x %d\n", l.Px, l.Qty)
	}
}
