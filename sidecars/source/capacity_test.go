package source_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"posttrade/ring/must"
	"posttrade/sidecars/accounts"
	"posttrade/sidecars/control"
	"posttrade/sidecars/securities"
	"posttrade/sidecars/source"
	"posttrade/sidecars/store"
	"posttrade/sidecars/store/storetest"
)

// engineRoom is an engine that takes records when the test says so.
type engineRoom struct {
	mu       sync.Mutex
	capacity int
	held     map[string]bool
	asked    func() // runs between two queries; nil: nothing happens
}

func (r *engineRoom) Places() (held, capacity int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.held), r.capacity
}

func (r *engineRoom) Holds(record *control.Record) bool {
	if r.asked != nil {
		r.asked()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.held[record.Key(control.Account)]
}

func (r *engineRoom) take(id int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held[fmt.Sprint(id)] = true
}

// TestRoomCountsWhatIsOnItsWay: records that the engine does not hold yet need places too, in
// whatever order writers and the engine act.
func TestRoomCountsWhatIsOnItsWay(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		room := &engineRoom{capacity: 10, held: map[string]bool{"1": true, "2": true, "900": true}}
		table := accounts.New(source.Options{DB: db, Capacity: room})
		var made, refused atomic.Int64
		var writers sync.WaitGroup
		for w := range 4 {
			writers.Go(func() {
				for n := range 8 {
					id := 10 + 8*w + n
					_, err := table.Upsert(t.Context(), accounts.Account{ID: uint32(id), DisplayName: "x"})
					switch {
					case err == nil:
						made.Add(1)
						if n%2 == 0 {
							room.take(id)
						}
					case errors.Is(err, control.ErrCapacity):
						refused.Add(1)
					default:
						t.Error(err)
					}
				}
			})
		}
		writers.Wait()
		if made.Load() != 7 || refused.Load() != 25 {
			t.Errorf("%d made, %d refused, room was for 7", made.Load(), refused.Load())
		}
		snapshot, err := table.Snapshot(t.Context())
		if err != nil || len(snapshot.Records) != 7 || snapshot.Watermark != 7 {
			t.Errorf("%d records, version %d, %v", len(snapshot.Records), snapshot.Watermark, err)
		}
		// A record that the engine holds, or that is in the table, can be written without room.
		for _, id := range []uint32{900, snapshot.Records[0].ID} {
			if _, err := table.Upsert(t.Context(), accounts.Account{ID: id, DisplayName: "y"}); err != nil {
				t.Errorf("account %d: %v", id, err)
			}
		}
		// The engine takes a waiting record during the count: it is counted once.
		room.capacity = 11
		once := sync.OnceFunc(func() {
			room.take(int(snapshot.Records[1].ID))
			room.take(int(snapshot.Records[2].ID))
		})
		room.asked = once
		for n, want := range []error{nil, control.ErrCapacity} {
			if _, err := table.Upsert(t.Context(),
				accounts.Account{ID: uint32(800 + n), DisplayName: "z"}); !errors.Is(err, want) {
				t.Errorf("account %d: %v, want %v", n, err, want)
			}
		}
	})
}

// TestWhatAChangeDoesNotSayStays follows flags and the versions that set them.
func TestWhatAChangeDoesNotSayStays(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		table := securities.New(source.Options{DB: db})
		steps := []struct {
			stock securities.Stock
			want  control.Record
		}{
			{securities.Stock{Enabled: true, Halted: true, EnabledUnset: true, HaltedUnset: true},
				control.Record{Enabled: true, Halted: true}},
			{securities.Stock{Enabled: false, HaltedUnset: true},
				control.Record{Halted: true, HaltedVersion: 1}},
			{securities.Stock{Enabled: true, EnabledUnset: true, HaltedUnset: true},
				control.Record{Halted: true, EnabledVersion: 2, HaltedVersion: 1}},
			{securities.Stock{EnabledUnset: true, Halted: false}, control.Record{EnabledVersion: 2}},
			{securities.Stock{Enabled: true, Halted: true}, control.Record{Enabled: true, Halted: true}},
		}
		for i, step := range steps {
			step.stock.Ticker, step.stock.CompanyName = "A", fmt.Sprint(i)
			stored, version, created, err := table.Upsert(t.Context(), step.stock)
			if err != nil || version != uint64(i+1) || created != (i == 0) ||
				stored.Enabled != step.want.Enabled || stored.Halted != step.want.Halted {
				t.Fatalf("step %d: %+v, %d, %v, %v", i, stored, version, created, err)
			}
			snapshot, err := table.Snapshot(t.Context())
			step.want.Ticker, step.want.Name, step.want.Version = "A", fmt.Sprint(i), version
			if err != nil || snapshot.Records[0] != step.want {
				t.Errorf("step %d: %+v, %v; want %+v", i, snapshot.Records, err, step.want)
			}
		}
		must.Get(table.BumpEpoch(t.Context(), store.OutboxRow{}, nil))(t)
		snapshot, err := table.Snapshot(t.Context())
		want := control.Record{Ticker: "A", Name: "4", Enabled: true, Halted: true, Version: 6,
			EnabledVersion: 5, HaltedVersion: 5}
		if err != nil || snapshot.Records[0] != want {
			t.Errorf("after a new epoch: %+v, %v; want %+v", snapshot.Records, err, want)
		}
	})
}
