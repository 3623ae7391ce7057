package riskextract

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"posttrade/ring/must"
	"posttrade/sidecars/store"
	"posttrade/sidecars/store/storetest"
)

func TestSQLMarks(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		marks := &SQLMarks{DB: db}
		want := []store.Mark{{Security: "A", Price: 1, Quality: "FINAL"}, {Security: "B", Price: 2}}
		if got, found, err := marks.Marks(t.Context(), 5, 1); found || err != nil || got != nil {
			t.Errorf("before the first: %v %t %v", got, found, err)
		}
		for range 2 {
			must.OK(t, marks.PutMarks(t.Context(), 5, 1, []store.Mark{want[1], want[0]}))
		}
		if err := marks.PutMarks(t.Context(), 5, 1, want[:1]); !errors.Is(err, store.ErrConflict) {
			t.Errorf("others: %v", err)
		}
		if err := marks.PutMarks(t.Context(), 6, 1, []store.Mark{{}}); !errors.Is(err, store.ErrMark) {
			t.Errorf("no mark: %v", err)
		}
		if got, found, err := marks.Marks(t.Context(), 5, 1); !found || err != nil ||
			!slices.Equal(got, want) {
			t.Errorf("got %v %t %v", got, found, err)
		}
	})
}

// TestMarksFileIsReadStrictly reads the stored text of the marks.
func TestMarksFileIsReadStrictly(t *testing.T) {
	session := date(t, "2026-11-20")
	set, err := markSetOf(session, 3, []store.Mark{{Security: "B", Price: 2, Quality: "q"},
		{Security: "A", Price: 1}}, true)
	const good = "#marks schema=1 sessionDate=2026-11-20 priceVersion=3 published=true " +
		"rows=2\nsecurity,priceTicks,quality\nA,1,\nB,2,q\n"
	if err != nil || set.text != good || len(set.bySecurity) != 2 {
		t.Fatalf("got %+v, %v", set, err)
	}
	none, err := markSetOf(session, 3, nil, false)
	if want := "#marks schema=1 sessionDate=2026-11-20 priceVersion=3 published=false " +
		"rows=0\nsecurity,priceTicks,quality\n"; err != nil || none.text != want {
		t.Fatalf("got %+v, %v", none, err)
	}
	for _, text := range []string{good, none.text, strings.ReplaceAll(none.text, "false", "true")} {
		if again, err := parseMarks(session, 3, text); err != nil || again.text != text {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, change := range [][2]string{
		{"schema=1", "schema=2"}, {"2026-11-20", "2026-11-21"}, {"priceVersion=3", "priceVersion=03"},
		{"true", "false"},
		{"rows=2", "rows=1"}, {"security,", "sec,"}, {"A,1,", "A,01,"}, {"A,1,", "A,0,"},
		{"A,1,", "A,-1,"}, {"A,1,", "A,1.0,"},
		{"A,1,", "C,1,"}, {"A,1,", "B,1,"}, {"A,1,", ",1,"}, {"A,1,", "A,1"}, {"A,1,", "A,1,,"},
		{"A,1,", "A,9223372036854775808,"},
		{"B,2,q", "B,2,q q"}, {"B,2,q\n", "B,2,q"}, {"B,2,q\n", "B,2,q\n\n"}, {"B,2,q\n", ""},
		{"#marks", "marks"},
	} {
		text := strings.Replace(good, change[0], change[1], 1)
		if _, err := parseMarks(session, 3, text); !errors.Is(err, ErrRefused) || text == good {
			t.Errorf("%q for %q: %v", change[1], change[0], err)
		}
	}
	if _, err := parseMarks(session, 3, ""); !errors.Is(err, ErrRefused) {
		t.Errorf("nothing: %v", err)
	}
	for _, marks := range [][]store.Mark{{{Security: "A", Price: 1}, {Security: "A", Price: 1}},
		{{Security: "A,B", Price: 1}}, {{Security: "A", Price: 1, Quality: "a b"}}} {
		if _, err := markSetOf(session, 3, marks, true); !errors.Is(err, ErrRefused) {
			t.Errorf("%v: %v", marks, err)
		}
	}
	if _, err := markSetOf(session, 3, []store.Mark{{Security: "A", Price: 1}}, false); !errors.Is(err,
		ErrRefused) {
		t.Errorf("marks that are not published: %v", err)
	}
}
