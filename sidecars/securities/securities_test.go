package securities_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"posttrade/ring/must"
	"posttrade/sidecars/control"
	"posttrade/sidecars/securities"
	"posttrade/sidecars/source"
	"posttrade/sidecars/store"
	"posttrade/sidecars/store/storetest"
)

func TestWhatAStockIs(t *testing.T) {
	tests := []struct {
		name, ticker, company string
		stored                string // "" for none
	}{
		{"plain", "AAPL", "Apple", "AAPL"},
		{"lower case", "msft", "Microsoft", "MSFT"},
		{"blanks around", " \tibm\n", "IBM", "IBM"},
		{"blanks that are not ASCII", "\u00a0ge\u2003", "GE", "GE"},
		{"dot, dash, digits", "brk.b-2", "Berkshire", "BRK.B-2"},
		{"one letter", "f", "Ford", "F"},
		{"16 letters", "abcdefghijklmnop", "Long", "ABCDEFGHIJKLMNOP"},
		{"name of 256 bytes", "N256", strings.Repeat("é", 128), "N256"},
		{"17 letters", "ABCDEFGHIJKLMNOPQ", "x", ""},
		{"no ticker", "", "x", ""},
		{"blank ticker", "  ", "x", ""},
		{"blank inside", "A B", "x", ""},
		{"underscore", "A_B", "x", ""},
		{"slash", "A/B", "x", ""},
		{"not ASCII", "ÄPPL", "x", ""},
		{"long s, whose capital is ASCII", "ſ", "x", ""},
		{"dotless i, whose capital is ASCII", "\u0131bm", "x", ""},
		{"Kelvin sign", "\u212a", "x", ""},
		{"full width", "ＡＡＰＬ", "x", ""},
		{"not text", "A\xff", "x", ""},
		{"zero byte", "A\x00", "x", ""},
		{"a dot, which no path can name", ".", "x", ""},
		{"two dots, which no path can name", " .. ", "x", ""},
		{"no name", "AAPL", "", ""},
		{"blank name", "AAPL", "\t ", ""},
		{"name of 257 bytes", "AAPL", strings.Repeat("é", 128) + "x", ""},
		{"name that is not text", "AAPL", "a\xc3", ""},
		{"name with a control character", "AAPL", "a\x1f", ""},
	}
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		s := securities.New(source.Options{DB: db})
		var want []securities.Stock
		for _, tt := range tests {
			given := securities.Stock{Ticker: tt.ticker, CompanyName: tt.company,
				Enabled: true, Halted: len(want)%2 == 1}
			stored, version, created, err := s.Upsert(t.Context(), given)
			if tt.stored == "" {
				if !errors.Is(err, securities.ErrStock) || version != 0 || created ||
					stored != (securities.Stock{}) {
					t.Errorf("%s: %+v, version %d, %v, %v", tt.name, stored, version, created, err)
				}
				continue
			}
			given.Ticker = tt.stored
			want = append(want, given)
			if err != nil || !created || stored != given || version != uint64(len(want)) {
				t.Errorf("%s: %+v, version %d, %v, %v", tt.name, stored, version, created, err)
			}
			if got, found, err := s.Get(t.Context(), tt.stored); err != nil || !found || got != given {
				t.Errorf("%s: reads back as %+v, %v, %v", tt.name, got, found, err)
			}
		}
		slices.SortFunc(want, func(a, b securities.Stock) int {
			return strings.Compare(a.Ticker, b.Ticker)
		})
		if all, err := s.List(t.Context()); err != nil || !slices.Equal(all, want) {
			t.Errorf("list %v, %v, want %v", all, err, want)
		}
		snapshot := must.Get(s.Snapshot(t.Context()))(t)
		if _, err := control.ParseSnapshot(control.Security, snapshot.AppendJSON(nil)); err != nil {
			t.Errorf("a replica cannot read what was taken: %v", err)
		}
	})
}

// The order is that of the bytes. On PostgreSQL not every locale has that order.
func TestStocksAreInTheOrderOfTheirBytes(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		s := securities.New(source.Options{DB: db})
		tickers := []string{"A", "A-B", "A.B", "A0", "AA", "AB", "B", "0A", "-A", ".A", "A.-", "A-."}
		for _, ticker := range tickers {
			if _, _, _, err := s.Upsert(t.Context(),
				securities.Stock{Ticker: ticker, CompanyName: "x"}); err != nil {
				t.Fatal(err)
			}
		}
		slices.Sort(tickers)
		all := must.Get(s.List(t.Context()))(t)
		for i := range all {
			if all[i].Ticker != tickers[i] {
				t.Fatalf("place %d has %s, want %s", i, all[i].Ticker, tickers[i])
			}
		}
	})
}

func TestUpsertSaysWhatIsNew(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		s := securities.New(source.Options{DB: db})
		steps := []struct {
			stock   securities.Stock
			created bool
		}{
			{securities.Stock{Ticker: "new", CompanyName: "New", Enabled: true}, true},
			{securities.Stock{Ticker: " NEW ", CompanyName: "New", Enabled: true, Halted: true}, false},
			{securities.Stock{Ticker: "NEW", CompanyName: "New", Enabled: true, Halted: true}, false},
			{securities.Stock{Ticker: "NEWER", CompanyName: "Newer"}, true},
			{securities.Stock{Ticker: "NEW", CompanyName: "Renamed", Enabled: false}, false},
		}
		for i, step := range steps {
			stored, version, created, err := s.Upsert(t.Context(), step.stock)
			if err != nil || version != uint64(i+1) || created != step.created {
				t.Fatalf("step %d: %+v, version %d, created %v, %v", i, stored, version, created, err)
			}
		}
		if _, found, err := s.Get(t.Context(), "new"); found || err != nil {
			t.Fatal("a ticker is found in another case", err)
		}
	})
}

// When many upserts make the same stock at once, one of them has made it.
func TestOneOfManyMakesTheStock(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		s := securities.New(source.Options{DB: db})
		for round := range 10 {
			var made atomic.Int64
			var wg sync.WaitGroup
			for range 8 {
				wg.Go(func() {
					_, _, created, err := s.Upsert(t.Context(),
						securities.Stock{Ticker: fmt.Sprint("R", round), CompanyName: "x"})
					if err != nil {
						t.Error(err)
					}
					if created {
						made.Add(1)
					}
				})
			}
			wg.Wait()
			if made.Load() != 1 {
				t.Fatalf("round %d: %d made it", round, made.Load())
			}
		}
	})
}
