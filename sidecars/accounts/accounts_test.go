package accounts_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"posttrade/ring/must"
	"posttrade/sidecars/accounts"
	"posttrade/sidecars/control"
	"posttrade/sidecars/source"
	"posttrade/sidecars/store"
	"posttrade/sidecars/store/storetest"
)

func TestWhatAnAccountIs(t *testing.T) {
	tests := []struct {
		name    string
		account accounts.Account
		good    bool
	}{
		{"plain", accounts.Account{ID: 1, DisplayName: "Plain", Enabled: true}, true},
		{"largest id", accounts.Account{ID: 1<<32 - 1, DisplayName: "x"}, true},
		{"not ASCII", accounts.Account{ID: 2, DisplayName: "Zoë 😀"}, true},
		{"256 bytes", accounts.Account{ID: 3, DisplayName: strings.Repeat("x", 256)}, true},
		{"256 bytes that are fewer letters",
			accounts.Account{ID: 4, DisplayName: strings.Repeat("é", 128)}, true},
		{"blanks around", accounts.Account{ID: 5, DisplayName: " x "}, true},
		{"quotes", accounts.Account{ID: 6, DisplayName: `D'Arcy "& Sons"; drop table accounts`}, true},
		{"no id", accounts.Account{DisplayName: "x"}, false},
		{"no name", accounts.Account{ID: 1}, false},
		{"blank name", accounts.Account{ID: 1, DisplayName: " \u00a0 "}, false},
		{"257 bytes", accounts.Account{ID: 1, DisplayName: strings.Repeat("x", 257)}, false},
		{"257 bytes that are fewer letters",
			accounts.Account{ID: 1, DisplayName: strings.Repeat("é", 128) + "x"}, false},
		{"no text", accounts.Account{ID: 1, DisplayName: "a\xff"}, false},
		{"zero byte", accounts.Account{ID: 1, DisplayName: "a\x00b"}, false},
		{"control character", accounts.Account{ID: 1, DisplayName: "a\tb"}, false},
	}
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		s := accounts.New(source.Options{DB: db})
		var want []accounts.Account
		for _, tt := range tests {
			version, err := s.Upsert(t.Context(), tt.account)
			if !tt.good {
				if !errors.Is(err, accounts.ErrAccount) || version != 0 {
					t.Errorf("%s: version %d, %v", tt.name, version, err)
				}
				continue
			}
			want = append(want, tt.account)
			if err != nil || version != uint64(len(want)) {
				t.Errorf("%s: version %d, want %d; %v", tt.name, version, len(want), err)
			}
			got, found, err := s.Get(t.Context(), tt.account.ID)
			if err != nil || !found || got != tt.account {
				t.Errorf("%s: reads back as %+v, %v, %v", tt.name, got, found, err)
			}
		}
		slices.SortFunc(want, func(a, b accounts.Account) int { return int(int64(a.ID) - int64(b.ID)) })
		all, err := s.List(t.Context())
		if err != nil || !slices.Equal(all, want) {
			t.Errorf("list %v, %v, want %v", all, err, want)
		}
		snapshot, err := s.Snapshot(t.Context())
		must.OK(t, err)
		if _, err := control.ParseSnapshot(control.Account, snapshot.AppendJSON(nil)); err != nil {
			t.Errorf("a replica cannot read what was taken: %v", err)
		}
	})
}

func TestUpsertChangesAndCounts(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		told := 0
		s := accounts.New(source.Options{DB: db, Changed: func() { told++ }})
		if got, found, err := s.Get(t.Context(), 7); found || err != nil {
			t.Fatal(got, found, err)
		}
		if all, err := s.List(t.Context()); len(all) != 0 || all == nil || err != nil {
			t.Fatal(all, err)
		}
		steps := []accounts.Account{
			{ID: 7, DisplayName: "seven", Enabled: true},
			{ID: 7, DisplayName: "seven", Enabled: false},
			{ID: 7, DisplayName: "seven", Enabled: false}, // changes no value, and still is a change
			{ID: 7, DisplayName: "sept", Enabled: true},
		}
		for i, a := range steps {
			version, err := s.Upsert(t.Context(), a)
			if err != nil || version != uint64(i+1) || told != i+1 {
				t.Fatalf("step %d: version %d, told %d times, %v", i, version, told, err)
			}
			got, found, err := s.Get(t.Context(), 7)
			if err != nil || !found || got != a {
				t.Fatalf("step %d: %+v, %v, %v", i, got, found, err)
			}
		}
		if _, err := s.Upsert(t.Context(), accounts.Account{}); err == nil || told != len(steps) {
			t.Fatalf("told %d times, %v", told, err)
		}
	})
}
