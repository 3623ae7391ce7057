package store_test

import (
	"slices"
	"testing"
	"unsafe"

	"posttrade/sidecars/store"
	"posttrade/sidecars/store/storetest"
)

// TestAWordIsKeptOnce reads a column of few values. Each value is one string, in this query and the
// next, and the number of kept strings is bounded.
func TestAWordIsKeptOnce(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		known := make(map[string]string)
		same := make(map[string]*byte)
		read := func(sql string) (words int, err error) {
			err = db.Read(t.Context(), func(tx *store.Tx) error {
				return tx.Query(sql, func(r *store.Row) error {
					words++
					word := r.Word(1, known)
					if at, met := same[word]; met && at != unsafe.StringData(word) {
						t.Errorf("%q is there twice", word)
					}
					same[word] = unsafe.StringData(word)
					return nil
				})
			})
			return words, err
		}
		const few = "select 1, 'AAPL' union all select 2, 'MSFT' union all select 3, 'AAPL' union all " +
			"select 4, null"
		for range 2 {
			if n, err := read(few); n != 4 || err != nil {
				t.Fatalf("%d rows, %v", n, err)
			}
		}
		if len(known) != 3 || known["AAPL"] != "AAPL" || known["MSFT"] != "MSFT" {
			t.Errorf("known are %q", known)
		}
		if n, err := read(
			"with recursive n (i) as (select 1 union all select i + 1 from n where i < 5000) " +
				"select i, cast(i as text) from n"); n != 5000 || err != nil {
			t.Fatalf("%d rows, %v", n, err)
		}
		if len(known) != 4096 {
			t.Errorf("%d words are kept", len(known))
		}
		if _, err := read("select 1, 2"); err == nil {
			t.Error("a number is a word")
		}
	})
}

// TestATextIsCompared compares a column with a text: the whole text, and each row's own. A column
// that holds no text ends the query.
func TestATextIsCompared(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		compare := func(sql, text string) (is []bool, err error) {
			err = db.Read(t.Context(), func(tx *store.Tx) error {
				return tx.Query(sql, func(r *store.Row) error {
					is = append(is, r.Is(1, []byte(text)))
					return nil
				})
			})
			return is, err
		}
		const rows = "select 1, 'trd-12' union all select 2, 'trd-1' union all select 3, 'trd-123' " +
			"union all select 4, '' " +
			"union all select 5, null union all select 6, 'Trd-12' order by 1"
		for text, want := range map[string][]bool{
			"trd-12": {true, false, false, false, false, false},
			"":       {false, false, false, true, true, false},
		} {
			if is, err := compare(rows, text); err != nil || !slices.Equal(is, want) {
				t.Errorf("%q is %v, want %v (%v)", text, is, want, err)
			}
		}
		if _, err := compare("select 1, 2", "2"); err == nil {
			t.Error("a number was compared as a text")
		}
	})
}
