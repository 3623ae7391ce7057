package store_test

import (
	"math"
	"sync"
	"testing"

	"posttrade/ring/must"
	"posttrade/sidecars/store"
	"posttrade/sidecars/store/storetest"
)

// TestSeveralCursorsMoveTogether: one statement makes and moves them, all or none.
func TestSeveralCursorsMoveTogether(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		set := func(cursors ...store.Cursor) error {
			return db.Write(t.Context(), func(tx *store.Tx) error { return tx.SetCursors(cursors...) })
		}
		wantCursors := func(a, b, c uint64) {
			t.Helper()
			for name, want := range map[string]uint64{"a": a, "b": b, "c": c} {
				if got := cursor(t, db, name); got != want {
					t.Errorf("cursor %s is %d, want %d", name, got, want)
				}
			}
		}
		must.OK(t, set(store.Cursor{Name: "b", Value: 5}))
		must.OK(t, set(store.Cursor{Name: "a", Value: 1}, store.Cursor{Name: "b", Value: 2},
			store.Cursor{Name: "c", Value: math.MaxInt64}))
		wantCursors(1, 2, math.MaxInt64)
		if err := set(); err != nil {
			t.Errorf("no cursor at all: %v", err)
		}
		if err := set(store.Cursor{Name: "a", Value: 9},
			store.Cursor{Name: "b", Value: 1 << 63}); err == nil {
			t.Error("a value that no column can hold was taken")
		}
		wantCursors(1, 2, math.MaxInt64)
	})
}

// TestAHeldCursorIsMovedByNobodyElse has several writers count with a held cursor. An increment is
// lost when a writer reads before another writer's increment and writes after it.
func TestAHeldCursorIsMovedByNobodyElse(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		const writers, each = 8, 20
		var all sync.WaitGroup
		for w := range writers {
			all.Go(func() {
				for range each {
					err := db.Write(t.Context(), func(tx *store.Tx) error {
						value, err := tx.HoldCursor("counter") // the first writer makes it
						if err != nil {
							return err
						}
						return tx.SetCursor("counter", value+1)
					})
					if err != nil {
						t.Errorf("writer %d: %v", w, err)
						return
					}
				}
			})
		}
		all.Wait()
		if got := cursor(t, db, "counter"); got != writers*each {
			t.Errorf("the cursor is %d after %d increments", got, writers*each)
		}
	})
}
