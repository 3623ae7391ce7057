package store_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"posttrade/ring/must"
	"posttrade/sidecars/store"
	"posttrade/sidecars/store/storetest"
)

// notKept are the tables that no backup has, and why.
var notKept = map[string]string{
	"schema_migrations":  "the store makes its tables itself",
	"history":            "the mark of the journal that fills the database",
	"outbox":             "a restored source begins a new epoch, and replicas take its snapshot",
	"projection_batches": "when rows were booked: restored ones are booked by the restore",
	"recon_books":        "made again from journal and rows",
	"recon_gaps":         "made again from journal and rows",
	"recon_mismatches":   "made again from journal and rows",
	"recon_orphans":      "made again from journal and rows",
	"recon_orphan_sweep": "the result of the last sweep; the next one makes it again",
}

// Each table is in a backup with all its columns, and in journal/FORMAT.md, or is known not to be:
// a new one must be decided upon.
func TestEachTableIsKeptOrNot(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		kept, inOrder := map[string]string{}, []string(nil) // columns by table, tables
		for line := range strings.Lines(keep(t, db)) {
			if name, rest, ok := strings.Cut(strings.TrimPrefix(line, `{"table":"`),
				`","columns":["`); ok {
				kept[name] = strings.ReplaceAll(strings.TrimSuffix(rest, "\"]}\n"), `","`, " ")
				inOrder = append(inOrder, name)
			}
		}
		if named := namedInFormat(t); !slices.Equal(named, inOrder) {
			t.Errorf("journal/FORMAT.md names the tables %q, a backup has %q", named, inOrder)
		}
		columns := "select table_name, column_name from information_schema.columns where " +
			"table_schema = current_schema() and table_name not in (select table_name from " +
			"information_schema.views) order by table_name, ordinal_position"
		if db.Dialect() == store.SQLite {
			columns = "select m.name, c.name from sqlite_master m, pragma_table_info(m.name) c " +
				"where m.type = 'table' and m.name not like 'sqlite_%' order by m.name, c.cid"
		}
		have := map[string][]string{}
		err := db.Read(t.Context(), func(tx *store.Tx) error {
			clear(have)
			return tx.Query(columns, func(r *store.Row) error {
				have[r.Text(0)] = append(have[r.Text(0)], r.Text(1))
				return nil
			})
		})
		if err != nil || len(have) < 10 {
			t.Fatal(have, err)
		}
		for table, columns := range have {
			want, ok := kept[table]
			switch _, not := notKept[table]; {
			case ok == not:
				t.Errorf("table %s: kept %t, known not to be kept %t", table, ok, not)
			case ok && !sameNames(strings.Fields(want), columns):
				t.Errorf("table %s has the columns %q, a backup has %q", table, columns, want)
			}
		}
		for table := range notKept {
			if have[table] == nil {
				t.Errorf("there is no table %s", table)
			}
		}
	})
}

// namedInFormat are the tables that journal/FORMAT.md names.
func namedInFormat(t *testing.T) (names []string) {
	t.Helper()
	text := string(must.Get(os.ReadFile(filepath.Join("..", "..", "journal", "FORMAT.md")))(t))
	_, list, _ := strings.Cut(text, "The tables, in this order: ")
	list, _, _ = strings.Cut(list, ".")
	for i, part := range strings.Split(list, "`") {
		if i%2 == 1 {
			names = append(names, part)
		}
	}
	return names
}

func sameNames(a, b []string) bool {
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(a, b)
}
