package store_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"posttrade/ring/must"
	"posttrade/sidecars/store"
	"posttrade/sidecars/store/storetest"
)

// embedded returns the names of a dialect's migrations, without .sql.
func embedded(t testing.TB, d store.Dialect) (names []string) {
	t.Helper()
	files, err := fs.Glob(store.MigrationFiles(), "migrations/"+d.String()+"/*.sql")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		names = append(names, strings.TrimSuffix(path.Base(f), ".sql"))
	}
	return names
}

func TestBothDialectsHaveTheSameMigrations(t *testing.T) {
	a, b := embedded(t, store.SQLite), embedded(t, store.Postgres)
	if strings.Join(a, " ") != strings.Join(b, " ") {
		t.Errorf("sqlite has %v, postgres %v", a, b)
	}
	for i := range a[1:] { // a number may be missing, and comes later or never
		if a[i][:4] >= a[i+1][:4] {
			t.Errorf("migration %s comes behind %s", a[i+1], a[i])
		}
	}
	if a[0] != "0001_trades" {
		t.Errorf("the first migration is %s", a[0])
	}
}

func TestMigrationsAreNotedWithTheirChecksums(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		var got, want []string
		all := "select version, name, checksum, applied_at from schema_migrations order by version"
		query(t, db, all, func(r *store.Row) {
			got = append(got, fmt.Sprintf("%04d %s %s %v", r.Int64(0), r.Text(1), r.Text(2),
				r.Int64(3) > 1_700_000_000_000))
		})
		for _, name := range embedded(t, db.Dialect()) {
			text := must.Get(fs.ReadFile(store.MigrationFiles(),
				"migrations/"+db.Dialect().String()+"/"+name+".sql"))(t)
			sum := sha256.Sum256(text)
			want = append(want, fmt.Sprintf("%s %s %s true", name[:4], name, hex.EncodeToString(sum[:])))
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// TestStartsAtOnceMigrateOnce opens one empty database many times, at the same time.
func TestStartsAtOnceMigrateOnce(t *testing.T) {
	for _, d := range storetest.Dialects(t) {
		t.Run(d.String(), func(t *testing.T) {
			const starts = 6
			o := storetest.Options(t, d)
			var all sync.WaitGroup
			for range starts {
				all.Go(func() {
					db, err := store.Open(o)
					if err != nil {
						t.Error(err)
						return
					}
					var callers sync.WaitGroup
					for range 3 {
						callers.Go(func() {
							if err := db.Ready(t.Context()); err != nil {
								t.Error(err)
							}
						})
					}
					callers.Wait()
					if err := db.Close(); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
			db := storetest.OpenWith(t, o)
			if n := number(t, db,
				"select count(*) from schema_migrations"); n != int64(len(embedded(t, d))) {
				t.Errorf("%d migrations noted", n)
			}
			insert(t, db, someTrades(1, 1))
		})
	}
}

func TestASchemaOfAnotherBuildIsRefusedByName(t *testing.T) {
	tests := []struct{ name, edit, want string }{
		{"changed", "update schema_migrations set checksum = 'feed' where version = 1",
			"0001_trades is not what was applied"},
		{"renamed", "update schema_migrations set name = '0001_deals' where version = 1",
			"the database has 0001_deals where this build has 0001_trades"},
		{"newer",
			"insert into schema_migrations (version, name, checksum, applied_at) values (9000, " +
				"'9000_future', 'x', 1)",
			"the database has 9000_future, which this build does not know"},
		{"without a table", "drop table projection_batches", "projection_batches is missing, which 00"},
		{"without a view", "drop view breaks_v", "breaks_v is missing, which 00"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			storetest.Each(t, func(t *testing.T, db *store.DB) {
				insert(t, db, someTrades(1, 3))
				storetest.Edit(t, db, tt.edit)
				later := must.Get(db.Twin())(t)
				defer func() {
					if err := later.Close(); err != nil {
						t.Error(err)
					}
				}()
				for range 2 { // and it stays refused
					for _, err := range []error{later.Ready(t.Context()),
						later.Write(t.Context(), func(*store.Tx) error {
							t.Error("ran")
							return nil
						})} {
						if !errors.Is(err, store.ErrMigration) || !errors.Is(err, store.ErrUnavailable) ||
							!strings.Contains(err.Error(), tt.want) {
							t.Errorf("got %v, want %q", err, tt.want)
						}
					}
				}
				if ready, detail := later.State(); ready || !strings.Contains(detail, tt.want) {
					t.Errorf("state: %v, %q", ready, detail)
				}
				mustBe(t, allTrades(t, db), someTrades(1, 3))
			})
		})
	}
}

// files makes a folder of migrations for both dialects.
func files(texts map[string]string) fstest.MapFS {
	all := fstest.MapFS{}
	for name, text := range texts {
		for _, d := range []string{"sqlite", "postgres"} {
			all["migrations/"+d+"/"+name] = &fstest.MapFile{Data: []byte(text)}
		}
	}
	return all
}

// TestAMigrationThatFailsLeavesNothing applies a migration with an error in its second statement,
// and then the same migration repaired.
func TestAMigrationThatFailsLeavesNothing(t *testing.T) {
	for _, d := range storetest.Dialects(t) {
		t.Run(d.String(), func(t *testing.T) {
			db, err := store.Open(storetest.Options(t, d))
			must.OK(t, err)
			defer func() {
				if err := db.Close(); err != nil {
					t.Error(err)
				}
			}()
			good := map[string]string{
				"0001_one.sql": "-- a comment; with a semicolon\ncreate table one (n bigint);\n\ninsert into " +
					"one values (1);\n",
				"0002_two.sql": "create table two (n bigint); insert into two select 1 from nowhere;",
			}
			must.OK(t, store.SetPlan(db, files(good)))
			err = db.Ready(t.Context())
			if !errors.Is(err, store.ErrMigration) || !strings.Contains(err.Error(), "0002_two") {
				t.Fatalf("got %v", err)
			}
			good["0002_two.sql"] = "create table two (n bigint); insert into two select n + 1 from one"
			must.OK(t, store.SetPlan(db, files(good)))
			must.OK(t, db.Ready(t.Context()))
			one, two := number(t, db, "select sum(n) from one"), number(t, db, "select sum(n) from two")
			if one != 1 || two != 2 {
				t.Errorf("one = %d, two = %d", one, two)
			}
		})
	}
}

func TestAFolderOfMigrationsIsReadStrictly(t *testing.T) {
	db := storetest.Open(t, store.SQLite)
	for name, texts := range map[string]map[string]string{
		"no folder":         {},
		"no number":         {"one.sql": ""},
		"short number":      {"01_one.sql": ""},
		"another extension": {"0001_one.txt": ""},
		"upper case":        {"0001_One.sql": ""},
		"one number twice":  {"0001_one.sql": "", "0001_two.sql": ""},
	} {
		if err := store.SetPlan(db, files(texts)); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// TestALockedDatabaseThatIsMigratedIsReady starts while another session holds the write lock.
func TestALockedDatabaseThatIsMigratedIsReady(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		insert(t, db, someTrades(1, 2))
		unlock := storetest.Lock(t, db)
		defer unlock()
		later := must.Get(db.Twin())(t)
		if err := later.Ready(t.Context()); err != nil {
			t.Errorf("ready: %v", err)
		}
		mustBe(t, allTrades(t, later), someTrades(1, 2))
		if err := later.Close(); err != nil {
			t.Error(err)
		}
	})
}
