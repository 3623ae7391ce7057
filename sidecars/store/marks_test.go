package store_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"posttrade/ring/must"
	"posttrade/sidecars/store"
	"posttrade/sidecars/store/storetest"
)

const marksNow = 1_790_000_000_000

func putMarks(t *testing.T, db *store.DB, session store.Date, version uint32,
	marks ...store.Mark) error {
	t.Helper()
	return db.Write(t.Context(), func(tx *store.Tx) error {
		return tx.PutMarks(session, version, marks, marksNow)
	})
}

func readMarks(t *testing.T, db *store.DB, session store.Date,
	version uint32) (marks []store.Mark, found bool, err error) {
	t.Helper()
	err = db.Read(t.Context(), func(tx *store.Tx) error {
		marks, found, err = tx.Marks(session, version)
		return err
	})
	return marks, found, err
}

func TestMarksAreImmutable(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		a := store.Mark{Security: "AAA", Price: 1_500_000, Quality: "FINAL"}
		b := store.Mark{Security: "b/b", Price: 1<<63 - 1}
		session := store.DateOf(2026, 11, 20)
		if marks, found, err := readMarks(t, db, session, 1); err != nil || found || marks != nil {
			t.Fatalf("before the first: %v %t %v", marks, found, err)
		}
		for range 2 { // the same set again, in another order, changes nothing
			must.OK(t, errors.Join(putMarks(t, db, session, 1, b, a),
				putMarks(t, db, session, 1, a, b)))
		}
		for name, other := range map[string][]store.Mark{
			"another price":    {{Security: "AAA", Price: 1_500_001, Quality: "FINAL"}, b},
			"another quality":  {{Security: "AAA", Price: 1_500_000, Quality: "final"}, b},
			"no quality":       {{Security: "AAA", Price: 1_500_000}, b},
			"a mark less":      {a},
			"a mark more":      {a, b, {Security: "C", Price: 1}},
			"another security": {a, {Security: "B/B", Price: 1<<63 - 1}},
			"nothing":          {},
		} {
			if err := putMarks(t, db, session, 1, other...); !errors.Is(err, store.ErrConflict) {
				t.Errorf("%s: %v", name, err)
			}
		}
		// Other sets exist beside it, an empty one too.
		must.OK(t, errors.Join(putMarks(t, db, session, 1<<32-1, a),
			putMarks(t, db, session+1, 1)))
		for _, tt := range []struct {
			session store.Date
			version uint32
			found   bool
			want    []store.Mark
		}{{session, 1, true, []store.Mark{a, b}}, {session, 1<<32 - 1, true, []store.Mark{a}},
			{session + 1, 1, true, nil}, {session, 2, false, nil}} {
			marks, found, err := readMarks(t, db, tt.session, tt.version)
			if err != nil || found != tt.found || !slices.Equal(marks, tt.want) {
				t.Errorf("%s v%d: %v %t %v", tt.session, tt.version, marks, found, err)
			}
		}
	})
}

func TestMarksThatCannotBe(t *testing.T) {
	db := storetest.Open(t, store.SQLite)
	for name, marks := range map[string][]store.Mark{
		"no security":           {{Price: 1}},
		"a comma in a security": {{Security: "A,B", Price: 1}},
		"a quote in a security": {{Security: `A"B`, Price: 1}},
		"a blank in a security": {{Security: "A B", Price: 1}},
		"a new line":            {{Security: "A\n", Price: 1}},
		"a letter beyond ASCII": {{Security: "\u00c4", Price: 1}},
		"a long security":       {{Security: strings.Repeat("A", 33), Price: 1}},
		"no price":              {{Security: "A"}},
		"a negative price":      {{Security: "A", Price: -1}},
		"a comma in a quality":  {{Security: "A", Price: 1, Quality: "a,b"}},
		"a blank in a quality":  {{Security: "A", Price: 1, Quality: "a b"}},
		"a long quality": {{Security: "A", Price: 1,
			Quality: strings.Repeat("q", store.MaxQualityBytes+1)}},
		"a security twice": {{Security: "A", Price: 1},
			{Security: "B", Price: 1}, {Security: "A", Price: 1}},
		"a security twice, at odds": {{Security: "A", Price: 1}, {Security: "A", Price: 2}},
	} {
		if err := putMarks(t, db, 1, 1, marks...); !errors.Is(err, store.ErrMark) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := putMarks(t, db, 1, 0,
		store.Mark{Security: "A", Price: 1}); !errors.Is(err, store.ErrMark) {
		t.Errorf("version 0: %v", err)
	}
	if _, found, err := readMarks(t, db, 1, 1); found || err != nil {
		t.Errorf("a refused set is there: %v", err)
	}
}

// TestOneOfManyPublishersWins publishes different sets at once. One set is stored whole, and the
// other publishers get an error.
func TestOneOfManyPublishersWins(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		const publishers, size = 8, 40
		set := func(price int64) (marks []store.Mark) {
			for i := range size {
				marks = append(marks,
					store.Mark{Security: "S" + string(rune('A'+i/8)) + string(rune('A'+i%8)), Price: price})
			}
			return marks
		}
		errs := make([]error, publishers)
		var all sync.WaitGroup
		for i := range publishers {
			all.Go(func() { errs[i] = putMarks(t, db, 7, 3, set(int64(i+1))...) })
		}
		all.Wait()
		winner := -1
		for i, err := range errs {
			switch {
			case err == nil && winner < 0:
				winner = i
			case err == nil || !errors.Is(err, store.ErrConflict):
				t.Errorf("publisher %d beside %d: %v", i, winner, err)
			}
		}
		marks, found, err := readMarks(t, db, 7, 3)
		if err != nil || !found || !slices.Equal(marks, set(int64(winner+1))) {
			t.Errorf("publisher %d won; found %t %v %v", winner, found, err, marks)
		}
	})
}

func TestMarksThatWereChangedByHandAreSeen(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		marks := []store.Mark{{Security: "A", Price: 1}, {Security: "B", Price: 2, Quality: "x"}}
		for i, edit := range []string{
			"update eod_prices set price = 3 where security = 'A'",
			"update eod_prices set quality = 'y' where security = 'B'",
			"delete from eod_prices where security = 'B'",
			"update eod_prices set security = 'C' where security = 'B'",
			"update eod_price_sets set marks = 1",
		} {
			session := store.Date(i)
			must.OK(t, putMarks(t, db, session, 1, marks...))
			if _, _, err := readMarks(t, db, session, 1); err != nil {
				t.Fatal(err)
			}
			storetest.Edit(t, db, edit)
			if got, found, err := readMarks(t, db, session, 1); !errors.Is(err, store.ErrMarksChanged) ||
				found || got != nil {
				t.Errorf("%s: %v %t %v", edit, got, found, err)
			}
		}
	})
}
