package inspect

import (
	"strings"
	"testing"

	"posttrade/matcher"
)

// TestEveryCommandHasAName: a type that a journal can hold is not shown as a number.
func TestEveryCommandHasAName(t *testing.T) {
	ticker := func(uint32) string { return "AAA" }
	met := 0
	for kind := range matcher.CommandType(64) {
		c := matcher.NewCommand(kind)
		c.Qty = 1 // what a note needs
		if c.Verify() != nil {
			continue
		}
		met++
		if text := commandText(&c, ticker); strings.Contains(text, "of type") {
			t.Error(text)
		}
	}
	if met < 16 {
		t.Errorf("%d types", met)
	}
}

func TestTextsOfNotesAndLimits(t *testing.T) {
	note := matcher.NewOperatorNote(1, 3, 2, 7)
	change := matcher.LimitsChange{Version: 9, ForAccount: true, AccountID: 4,
		Set:    1<<matcher.LimitCredit | 1<<matcher.LimitOrderQty,
		Remove: 1 << matcher.LimitCollar}
	change.Values[matcher.LimitCredit], change.Values[matcher.LimitOrderQty] = 2_500_000, 50
	for i, c := range append([]matcher.Command{note}, change.AppendTo(nil)...) {
		want := [...]string{"0  1970-01-01 00:00:00.000  note  part 2 of 3",
			"0  1970-01-01 00:00:00.000  limit  account 4  maxOrderQuantity = 50  version 9",
			"0  1970-01-01 00:00:00.000  limit  account 4  creditLimit = 2.5  version 9",
			"0  1970-01-01 00:00:00.000  limit  account 4  priceCollarBps = that of all accounts  version 9",
		}[i]
		if got := commandText(&c, nil); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
