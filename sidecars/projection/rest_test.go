package projection

import (
	"testing"
	"time"

	"posttrade/matcher"
	"posttrade/sidecars/store"
)

// head is a source of which only the end matters.
type head uint64

func (h head) Head() (inputSeq, tradeSeq uint64)                            { return uint64(h), uint64(h) }
func (h head) Fills(from uint64, fn func(fills []matcher.Fill) error) error { return nil }

func TestProjectionRestsWhileTradesCome(t *testing.T) {
	const took = 30 * time.Millisecond
	for _, tt := range []struct {
		name   string
		rest   int
		rows   int
		before uint64
		want   time.Duration
	}{
		{"trades came meanwhile", 0, 8192, 90, 4 * took},
		{"a few rows count as well", 0, 1, 99, 4 * took},
		{"as long as it is told to", 2, 8192, 90, 2 * took},
		{"nothing was written", 0, 0, 90, 0},
		{"no trade came meanwhile", 0, 8192, 100, 0},
		{"not at all", -1, 8192, 90, -took},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := New(Options{Source: head(100), Rest: tt.rest, DB: &store.DB{}, Ticker: func(uint32) string { return "" },
				SettlementDate: func(int64) store.Date { return 0 }})
			if got := p.rest(tt.rows, tt.before, took); got != tt.want {
				t.Errorf("rests %v, want %v", got, tt.want)
			}
		})
	}
}
