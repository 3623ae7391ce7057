package store_test

import (
	"errors"
	"testing"

	"posttrade/sidecars/store"
	"posttrade/sidecars/store/storetest"
)

func TestComparatorsWriteEveryRow(t *testing.T) {
	rows := someTrades(1, 1050)
	dir := t.TempDir()
	m, err := store.CompareBareInsert(t.Context(), dir, rows, 100)
	if err != nil || m.Rows != len(rows) || m.PerSecond() <= 0 || m.P50 > m.P99 || m.P99 > m.Max || m.Name == "" {
		t.Fatalf("got %+v, %v", m, err)
	}
	if _, err := store.CompareBareInsert(t.Context(), dir, rows, 100); err == nil {
		t.Error("a folder with a database in it is accepted")
	}
	if _, err := store.CompareBareInsert(t.Context(), t.TempDir(), append(rows, rows[0]), 100); err == nil {
		t.Error("the bare insert is idempotent: it compares something else")
	}
	withPostgres(t, func(t *testing.T) {
		o := storetest.Options(t, store.Postgres)
		for range 2 { // the table goes each time
			m, err := store.CompareBareCopy(t.Context(), o.URL, rows, 100)
			if err != nil || m.Rows != len(rows) || m.PerSecond() <= 0 || m.Name == "" {
				t.Fatalf("got %+v, %v", m, err)
			}
		}
		if _, err := store.CompareBareCopy(t.Context(), o.URL, append(rows, rows[0]), 100); err == nil {
			t.Error("the bare copy is idempotent: it compares something else")
		}
	})
}

func TestMeasureGivesEveryBatch(t *testing.T) {
	var sizes []int
	m, err := store.Measure("x", someTrades(1, 25), 10, func(part []store.Trade) error {
		sizes = append(sizes, len(part))
		return nil
	})
	if err != nil || m.Rows != 25 || len(sizes) != 3 || sizes[0] != 10 || sizes[2] != 5 {
		t.Errorf("got %+v %v %v", m, sizes, err)
	}
	_, err = store.Measure("x", someTrades(1, 25), 10, func([]store.Trade) error { return errMine })
	if !errors.Is(err, errMine) {
		t.Errorf("got %v", err)
	}
	if m, err := store.Measure("x", nil, 0, nil); err != nil || m.Rows != 0 {
		t.Errorf("no rows: %+v %v", m, err)
	}
}
