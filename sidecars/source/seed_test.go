package source_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"posttrade/ring/must"
	"posttrade/sidecars/accounts"
	"posttrade/sidecars/control"
	"posttrade/sidecars/source"
	"posttrade/sidecars/store"
	"posttrade/sidecars/store/storetest"
)

// Eight services start at once over an empty table. One of them seeds it; the others, and every
// later start, find it seeded. Every row has its outbox row.
func TestConcurrentStartsSeedOnce(t *testing.T) {
	const n = 120
	for _, s := range control.Sources() {
		storetest.Each(t, func(t *testing.T, db *store.DB) {
			var changed, written atomic.Int64
			o := source.Options{DB: db, Changed: func() { changed.Add(1) }}
			var wg sync.WaitGroup
			for range 8 {
				wg.Go(func() {
					k, err := serviceOf(s, o).seed(t.Context(), n)
					if err != nil {
						t.Error(err)
					}
					written.Add(int64(k))
				})
			}
			wg.Wait()
			if k, err := serviceOf(s, o).seed(t.Context(), n); k != 0 || err != nil {
				t.Errorf("a later start seeds %d, %v", k, err)
			}
			if written.Load() != n || changed.Load() != 1 {
				t.Fatalf("%d rows were seeded in %d seedings", written.Load(), changed.Load())
			}
			snapshot := must.Get(serviceOf(s, o).snapshot(t.Context()))(t)
			if snapshot.Watermark != n || len(snapshot.Records) != n {
				t.Fatalf("watermark %d of %d records", snapshot.Watermark, len(snapshot.Records))
			}
			checkSnapshots(t, db, s, []control.Snapshot{snapshot})
		})
	}
}

// A table that has records is not seeded, not even with the records that it lacks.
func TestNoSeedBesideRecords(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		one := serviceOf(control.Security, source.Options{DB: db})
		must.Get(one.upsert(t.Context(), 999, "mine", true))(t)
		if n, err := one.seed(t.Context(), 10); n != 0 || err != nil {
			t.Fatal(n, err)
		}
		if all := rows(t, db, control.Security); len(all) != 1 {
			t.Fatalf("%d outbox rows", len(all))
		}
	})
}

// A change that is made before the seeding is done is applied after the seeds.
func TestAChangeWaitsForTheSeeds(t *testing.T) {
	for _, s := range control.Sources() {
		storetest.Each(t, func(t *testing.T, db *store.DB) {
			const n = 10
			cause := errors.New("the seeds cannot be read")
			var one service
			calls := 0
			one = serviceOf(s, source.Options{DB: db, Seed: func(ctx context.Context) (int, error) {
				if calls++; calls == 1 {
					return 0, cause
				}
				return one.seed(ctx, n)
			}})
			if _, err := one.upsert(t.Context(), 999, "mine", true); !errors.Is(err, cause) {
				t.Errorf("without seeds: %v, want what seeding said", err)
			}
			for range 2 {
				must.Get(one.upsert(t.Context(), 999, "mine", true))(t)
			}
			if calls != 2 {
				t.Errorf("seeded %d times, want 2: in vain, and once", calls)
			}
			if all := rows(t, db, s); len(all) != n+2 {
				t.Errorf("%d outbox rows, want %d seeds and 2 changes", len(all), n)
			}
			if got, err := one.seed(t.Context(), n); got != 0 || err != nil {
				t.Errorf("a later seeding writes %d, %v", got, err)
			}
		})
	}
}

// Seeding that ends in the middle, for whatever reason, leaves neither records nor outbox rows nor
// versions, and the next seeding does all of it.
func TestSeedingIsAllOrNothing(t *testing.T) {
	for _, s := range control.Sources() {
		storetest.Each(t, func(t *testing.T, db *store.DB) {
			for _, at := range []int{1, 2, 3, 50, 101} {
				ctx, cancel := context.WithCancel(t.Context())
				calls := 0
				dying := serviceOf(s, source.Options{
					DB: db,
					Now: func() time.Time {
						if calls++; calls == at {
							cancel()
						}
						return time.Now()
					},
					Changed: func() { t.Error("told of a change that was rolled back") },
				})
				if n, err := dying.seed(ctx, 100); n != 0 || err == nil {
					t.Fatalf("ended at call %d of the clock: seeded %d, %v", at, n, err)
				}
				cancel()
				if all := rows(t, db, s); len(all) != 0 {
					t.Fatalf("%d outbox rows are left", len(all))
				}
				snapshot, err := serviceOf(s, source.Options{DB: db}).snapshot(t.Context())
				if err != nil || snapshot.Watermark != 0 || len(snapshot.Records) != 0 {
					t.Fatalf("left behind: %+v, %v", snapshot, err)
				}
			}
			if n, err := serviceOf(s, source.Options{DB: db}).seed(t.Context(), 100); n != 100 ||
				err != nil {
				t.Fatal(n, err)
			}
		})
	}
}

// A seed with one invalid record is refused as a whole.
func TestSeedIsCheckedFirst(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		n, err := accounts.New(source.Options{DB: db}).Seed(t.Context(), []accounts.Account{
			{ID: 1, DisplayName: "good", Enabled: true}, {ID: 0, DisplayName: "no id"},
		})
		if n != 0 || !errors.Is(err, accounts.ErrAccount) {
			t.Fatal(n, err)
		}
		if all := rows(t, db, control.Account); len(all) != 0 {
			t.Fatal(all)
		}
	})
}
