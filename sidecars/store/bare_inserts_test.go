package store_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"posttrade/ring/must"
	"posttrade/sidecars/store"
	"posttrade/sidecars/store/storetest"
)

// TestComparatorsWriteEveryRow gives a bare table rows and then some of them again. The refusal
// shows that the rows are there, and that a comparator is not idempotent: otherwise it would
// compare something else.
func TestComparatorsWriteEveryRow(t *testing.T) {
	dir := t.TempDir()
	writesEachOnce(t, func(ctx context.Context) (*store.Bare, error) {
		return store.OpenBareInsert(ctx, dir)
	})
	if _, err := store.OpenBareInsert(t.Context(), dir); err == nil {
		t.Error("a folder with a database in it is accepted")
	}
	withPostgres(t, func(t *testing.T) {
		o := storetest.Options(t, store.Postgres)
		for range 2 { // Close drops the table each time
			writesEachOnce(t, func(ctx context.Context) (*store.Bare, error) {
				return store.OpenBareCopy(ctx, o.URL)
			})
		}
		if _, err := store.OpenBareCopy(t.Context(),
			"postgres://127.0.0.1:1/nobody?sslmode=disable"); err == nil {
			t.Error("no error without a server")
		}
	})
}

func writesEachOnce(t *testing.T, open func(context.Context) (*store.Bare, error)) {
	t.Helper()
	b := must.Get(open(t.Context()))(t)
	rows := someTrades(1, 1050)
	for part := range slices.Chunk(rows, 100) {
		must.OK(t, b.Write(t.Context(), part))
	}
	for _, i := range []int{0, 99, 100, 1049} {
		if err := b.Write(t.Context(), rows[i:i+1]); err == nil ||
			!strings.Contains(strings.ToLower(err.Error()), "unique") {
			t.Errorf("row %d a second time: %v", i, err)
		}
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
}
