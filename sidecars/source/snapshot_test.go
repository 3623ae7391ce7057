package source_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"posttrade/ring/must"
	"posttrade/sidecars/control"
	"posttrade/sidecars/source"
	"posttrade/sidecars/store"
	"posttrade/sidecars/store/storetest"
)

// A snapshot is taken while 16 writers commit slowly and roll back. It holds every change up to its
// watermark and none after it, and its checksum is that of an independent canonicaliser.
func TestSnapshotsDuringWritesAreOfOneMoment(t *testing.T) {
	count := 1000
	if testing.Short() {
		count = 200
	}
	seed := rand.Uint64()
	t.Logf("seed %d, %d snapshots", seed, count)
	for i, s := range control.Sources() {
		t.Run(string(s), func(t *testing.T) {
			storetest.Each(t, func(t *testing.T, db *store.DB) {
				snapshots := snapshotsDuringWrites(t, db, s, seed+uint64(i), count/2)
				checkSnapshots(t, db, s, snapshots)
			})
		})
	}
}

// snapshotsDuringWrites takes count snapshots, half of them by each of two readers. Writers write
// as long as that takes.
func snapshotsDuringWrites(t *testing.T, db *store.DB, s control.Source, seed uint64,
	count int) (all []control.Snapshot) {
	reader := serviceOf(s, source.Options{DB: db})
	committed := make(chan struct{}, 1)
	changed := func() {
		select {
		case committed <- struct{}{}:
		default:
		}
	}
	writing, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		for turn := uint64(0); writing.Err() == nil; turn++ {
			writers(t, db, s, changed, seed+turn*1000, 40, 3)
		}
	})
	var mu sync.Mutex
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for range count / 2 {
				snapshot, err := reader.snapshot(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				all = append(all, snapshot)
				mu.Unlock()
				<-committed // else all of them show the first commits
			}
		})
	}
	readers.Wait()
	stop()
	wg.Wait()
	return all
}

// checkSnapshots replays the outbox once, and compares every snapshot with the replayed state at
// its watermark.
func checkSnapshots(t *testing.T, db *store.DB, s control.Source, all []control.Snapshot) {
	t.Helper()
	slices.SortFunc(all, func(a, b control.Snapshot) int {
		return cmp.Compare(a.Watermark, b.Watermark)
	})
	outbox := rows(t, db, s)
	replayed := map[string]control.Record{}
	at, different := uint64(0), 0
	for i := range all {
		snapshot := &all[i]
		if at != snapshot.Watermark {
			different++
		}
		for ; at < snapshot.Watermark; at++ {
			d := delta(t, s, &outbox[at])
			if d.Version != at+1 {
				t.Fatalf("version %d at place %d of the outbox", d.Version, at+1)
			}
			if d.Epoch != snapshot.Epoch {
				t.Fatalf("version %d has epoch %d, the snapshot %d", d.Version, d.Epoch, snapshot.Epoch)
			}
			replayed[d.Record.Key(s)] = d.Record
		}
		got := map[string]control.Record{}
		for _, r := range snapshot.Records {
			got[r.Key(s)] = r
		}
		if len(got) != len(snapshot.Records) || !maps.Equal(got, replayed) {
			t.Fatalf("the snapshot of watermark %d is not what the changes up to it come to:\n%v\n%v",
				snapshot.Watermark, got, replayed)
		}
		text := snapshot.AppendJSON(nil)
		if given, want := checksum(t, text); given != want {
			t.Fatalf("checksum %s, want %s of %s", given, want, text)
		}
		again, err := control.ParseSnapshot(s, text)
		if err != nil || fmt.Sprint(again) != fmt.Sprint(*snapshot) {
			t.Fatalf("read back: %v, %v", again, err)
		}
	}
	t.Logf("%d snapshots at %d watermarks, the last %d of %d versions",
		len(all), different, at, len(outbox))
	if different < len(all)/10 {
		t.Errorf("only %d different watermarks: nothing was written meanwhile", different)
	}
}

// The assigned versions are those in the outbox, without a hole, whatever was rolled back in
// between.
func TestVersionsHaveNoHole(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	for _, s := range control.Sources() {
		storetest.Each(t, func(t *testing.T, db *store.DB) {
			committed := writers(t, db, s, nil, seed, 10, 20)
			outbox := rows(t, db, s)
			if len(outbox) != len(committed) {
				t.Fatalf("%d rows of %d commits", len(outbox), len(committed))
			}
			for i := range outbox {
				name, there := committed[uint64(i+1)]
				if d := delta(t, s, &outbox[i]); !there || d.Version != uint64(i+1) || d.Record.Name != name {
					t.Fatalf("row %d is %+v, committed was %q", i+1, d, name)
				}
			}
		})
	}
}

// A source that has never changed has an epoch, and keeps it.
func TestSnapshotOfAnEmptySource(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		now := time.UnixMilli(1_790_000_000_000)
		for _, s := range control.Sources() {
			one := serviceOf(s, source.Options{DB: db, Now: func() time.Time {
				now = now.Add(time.Hour)
				return now
			}})
			first, err := one.snapshot(t.Context())
			if err != nil || first.Epoch == 0 || first.Watermark != 0 || len(first.Records) != 0 {
				t.Fatal(first, err)
			}
			must.Get(control.ParseSnapshot(s, first.AppendJSON(nil)))(t)
			must.Get(one.upsert(t.Context(), 1, "one", true))(t)
			second, err := one.snapshot(t.Context())
			if err != nil || second.Epoch != first.Epoch || second.Watermark != 1 ||
				len(second.Records) != 1 {
				t.Fatal(second, err)
			}
		}
	})
}

// Changed is called for committed changes only, and after their commit.
func TestChangedIsToldAfterTheCommit(t *testing.T) {
	for _, s := range control.Sources() {
		storetest.Each(t, func(t *testing.T, db *store.DB) {
			reader := serviceOf(s, source.Options{DB: db})
			var told []uint64
			cancel := func() {}
			one := serviceOf(s, source.Options{
				DB: db,
				Changed: func() {
					snapshot, err := reader.snapshot(t.Context())
					if err != nil {
						t.Error(err)
					}
					told = append(told, snapshot.Watermark)
				},
				Now: func() time.Time { cancel(); return time.Now() },
			})
			must.Get(one.seed(t.Context(), 3))(t)
			must.Get(one.upsert(t.Context(), 1, "one", true))(t)
			ctx, end := context.WithCancel(t.Context())
			cancel = end
			if _, err := one.upsert(ctx, 1, "never", true); err == nil {
				t.Fatal("committed after its context had ended")
			}
			cancel = func() {}
			must.Get(one.bump(t.Context(), store.OutboxRow{}, nil))(t)
			if want := []uint64{3, 4, 5}; !slices.Equal(told, want) {
				t.Errorf("told at %v, want %v", told, want)
			}
		})
	}
}
