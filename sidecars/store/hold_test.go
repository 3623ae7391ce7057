package store_test

import (
	"errors"
	"strings"
	"testing"

	"posttrade/ring/must"
	"posttrade/sidecars/store"
	"posttrade/sidecars/store/storetest"
)

// TestOneServerHoldsADatabase: a second one is refused by the name of the session that has it, and
// has it when the first lets go, closes, or loses its session. The first one that asks again then
// has it.
func TestOneServerHoldsADatabase(t *testing.T) {
	withPostgres(t, func(t *testing.T) {
		first := storetest.Open(t, store.Postgres)
		second := must.Get(first.Twin())(t)
		defer second.Close()
		has := func(db *store.DB) {
			t.Helper()
			must.OK(t, db.Hold(t.Context()))
			must.OK(t, db.Mine(t.Context()))
			if ready, detail := db.State(); !ready {
				t.Errorf("it has the database, and shows %s", detail)
			}
		}
		hasNot := func(db *store.DB) {
			t.Helper()
			err := db.Hold(t.Context())
			if !errors.Is(err, store.ErrHeld) || !errors.Is(err, store.ErrUnavailable) ||
				!strings.Contains(err.Error(), " of posttrade") {
				t.Fatalf("got %v", err)
			}
			must.Be(t, db.Mine(t.Context()), store.ErrHeld)
			must.OK(t, db.Read(t.Context(), func(*store.Tx) error { return nil }))
			if ready, detail := db.State(); ready || detail != err.Error() {
				t.Errorf("ready %v, %s", ready, detail)
			}
		}
		must.OK(t, second.Mine(t.Context())) // it has not asked yet
		has(first)
		has(first)
		hasNot(second)
		first.Release()
		first.Release()
		has(second)
		hasNot(first)
		storetest.Terminate(t, first) // every session of the database
		has(first)
		hasNot(second)
		must.OK(t, first.Close())
		first.Release()
		has(second)
	})
}

// TestASchemaIsHeldByItself: two servers with schemas of their own share a database.
func TestASchemaIsHeldByItself(t *testing.T) {
	withPostgres(t, func(t *testing.T) {
		o := storetest.Options(t, store.Postgres)
		first := storetest.OpenWith(t, o)
		storetest.Edit(t, first, "create schema other")
		second := storetest.OpenWith(t, storetest.WithParameters(t, o, "search_path", "other"))
		must.OK(t, first.Hold(t.Context()))
		must.OK(t, second.Hold(t.Context()))
	})
}

// TestSQLiteIsHeldByTheFolder: nothing is to be taken there.
func TestSQLiteIsHeldByTheFolder(t *testing.T) {
	db := storetest.Open(t, store.SQLite)
	must.OK(t, db.Hold(t.Context()))
	db.Release()
	must.OK(t, db.Hold(t.Context()))
}
