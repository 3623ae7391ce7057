package store_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"posttrade/sidecars/store"
	"posttrade/sidecars/store/storetest"
)

// keep returns the rows of a database that are kept.
func keep(t *testing.T, db *store.DB) string {
	t.Helper()
	var out bytes.Buffer
	err := db.Read(t.Context(), func(tx *store.Tx) error {
		out.Reset()
		return tx.WriteKept(&out)
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// load puts kept rows into a database.
func load(t *testing.T, db *store.DB, text string, lastTrade uint64) (loaded bool, err error) {
	t.Helper()
	err = db.Write(t.Context(), func(tx *store.Tx) error {
		loaded, err = tx.ReadKept(strings.NewReader(text), lastTrade)
		return err
	})
	return loaded, err
}

func fillKept(t *testing.T, db *store.DB) {
	t.Helper()
	err := db.Write(t.Context(), func(tx *store.Tx) error {
		for sql, args := range map[string][]any{
			"insert into accounts values ($1, $2, $3, $4, $5)": {7, "Näme <\"'\n\\>", false, 3, 2},
			"insert into stocks values ($1, $2, $3, $4, $5, $6, $7)": {"b/B", "", true, true, 9, 1,
				1},
		} {
			if _, err := tx.Exec(sql, args...); err != nil {
				return err
			}
		}
		_, key := tx.DrawKey("account", "k")
		_, _, version := tx.NextVersion("account", 5)
		return errors.Join(key, version, tx.NoteForce(4, 11), tx.NoteForce(9, 12),
			tx.PutMarks(store.DateOf(2026, 11, 20), 1, []store.Mark{{Security: "A", Price: 1, Quality: "F"},
				{Security: "B", Price: 1<<63 - 1}}, marksNow))
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestKeptRowsComeBack(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		fillKept(t, db)
		text := keep(t, db)
		if loaded, err := load(t, db, text, 100); err != nil || loaded {
			t.Errorf("loaded over the rows: %t %v", loaded, err)
		}
		empty := func() {
			t.Helper()
			err := db.Write(t.Context(), func(tx *store.Tx) (err error) {
				for _, table := range strings.Fields("eod_prices eod_price_sets settlement_forces stocks " +
					"accounts source_keys sources outbox") {
					_, e := tx.Exec("delete from " + table)
					err = errors.Join(err, e)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		empty()
		if loaded, err := load(t, db, text, 100); err != nil || !loaded {
			t.Fatalf("%t %v", loaded, err)
		}
		if got := keep(t, db); got != text {
			t.Errorf("loaded\n%s\nwant\n%s", got, text)
		}
		empty()
		if _, err := load(t, db, text, 8); err != nil {
			t.Fatal(err)
		}
		if got := keep(t, db); strings.Contains(got, "[9,12]") || !strings.Contains(got, "[4,11]") {
			t.Errorf("the settlements by hand of later trades:\n%s", got)
		}
		empty()
		lines := strings.SplitAfter(text, "\n")
		for name, bad := range map[string]string{
			"cut":            text[:len(text)/2],
			"a line less":    strings.Join(append(lines[:3:3], lines[4:]...), ""),
			"no end":         strings.Join(lines[:len(lines)-2], ""),
			"behind the end": text + "{}\n",
			"another table":  strings.Replace(text, `"accounts"`, `"trades"`, 1),
			"another type":   strings.Replace(text, "false", `"x"`, 1),
			"null":           strings.Replace(text, "false", "null", 1),
			"empty":          "",
		} {
			if _, err := load(t, db, bad, 100); !errors.Is(err, store.ErrKept) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if got := keep(t, db); strings.Contains(got, "[") && strings.Contains(got, "[7,") {
			t.Errorf("a refused text has left\n%s", got)
		}
	})
}
