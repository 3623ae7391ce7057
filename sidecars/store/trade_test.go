package store_test

import (
	"strings"
	"testing"
	"time"

	"posttrade/matcher"
	"posttrade/ring/must"
	"posttrade/sidecars/store"
)

func TestDateIsDaysSince1970(t *testing.T) {
	tests := []struct {
		text string
		want store.Date
	}{
		{"1970-01-01", 0}, {"1970-01-02", 1}, {"1969-12-31", -1}, {"2000-01-01", 10957},
		{"2026-11-21", 20778}, {"2024-02-29", 19782}, {"0001-01-01", -719162}, {"9999-12-31", 2932896},
	}
	for _, tt := range tests {
		got, err := store.ParseDate(tt.text)
		if err != nil || got != tt.want || got.String() != tt.text {
			t.Errorf("%s: got %d (%s), %v; want %d", tt.text, got, got, err, tt.want)
		}
		at := got.Time()
		if again := store.DateOf(at.Date()); again != got {
			t.Errorf("%s: DateOf gives %d", tt.text, again)
		}
	}
	for _, bad := range []string{"", "2026-1-1", "2026-02-30", "2026-13-01",
		"2026-11-21 ", "20261121", "x",
		"2026-11-21T00:00:00Z"} {
		if d, err := store.ParseDate(bad); err == nil {
			t.Errorf("%q reads as %v", bad, d)
		}
	}
	if got := store.DateOf(2026, time.December, 32); got.String() != "2027-01-01" {
		t.Errorf("32 December is %v", got)
	}
}

func TestStatusHasItsWord(t *testing.T) {
	for s, word := range map[store.Status]string{store.Processing: "Processing",
		store.Settled: "Settled"} {
		got, err := store.ParseStatus(word)
		if s.String() != word || got != s || err != nil {
			t.Errorf("%s: got %v, %v", word, got, err)
		}
	}
	for _, bad := range []string{"", "processing", "SETTLED", "Status(7)"} {
		if _, err := store.ParseStatus(bad); err == nil {
			t.Errorf("%q is a status", bad)
		}
	}
	if got := store.Status(7).String(); got != "Status(7)" {
		t.Error(got)
	}
}

func TestWhatIsNoRowIsNamed(t *testing.T) {
	tests := []struct {
		name  string
		spoil func(*store.Trade)
		want  string
	}{
		{"no id", func(x *store.Trade) { x.ID = "" }, "no id"},
		{"no trade sequence", func(x *store.Trade) { x.Seq = 0 }, "trade_seq 0"},
		{"trade sequence too large", func(x *store.Trade) {
			x.Seq = 1 << 63
		}, "trade_seq 9223372036854775808"},
		{"sequence too large", func(x *store.Trade) {
			x.Sequence = 1 << 63
		}, "sequence 9223372036854775808"},
		{"unknown side", func(x *store.Trade) { x.Side = matcher.Side(2) }, "side 2"},
		{"unknown status", func(x *store.Trade) { x.Status = 2 }, "status 2"},
		{"date too early", func(x *store.Trade) { x.SettlementDate = -719163 }, "settlement date"},
		{"date too late", func(x *store.Trade) { x.SettlementDate = 2932897 }, "settlement date"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			row := someTrades(8, 1)[0]
			must.OK(t, store.CheckTrade(&row))
			tt.spoil(&row)
			if err := store.CheckTrade(&row); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}
