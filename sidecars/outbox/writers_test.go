package outbox

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"posttrade/sidecars/accounts"
	"posttrade/sidecars/broker"
	"posttrade/sidecars/control"
	"posttrade/sidecars/source"
	"posttrade/sidecars/store"
)

// writer is one of several: random upserts, some in slow transactions, some of
// which are rolled back, until the common allowance is used up.
type writer struct {
	t      *testing.T
	random *rand.Rand
	roll   bool // this transaction is to be rolled back
	cancel context.CancelFunc
	s      *accounts.Accounts
}

func newWriter(t *testing.T, db *store.DB, changed func(), random *rand.Rand) *writer {
	w := &writer{t: t, random: random}
	w.s = accounts.New(source.Options{DB: db, Changed: changed, Now: w.now})
	return w
}

// now is called inside of the transaction.
func (w *writer) now() time.Time {
	if w.random.IntN(30) == 0 {
		<-time.After(time.Duration(w.random.IntN(2000)) * time.Microsecond)
	}
	if w.roll {
		w.cancel()
	}
	return time.Now()
}

// write returns the accounts that it has committed, by version, and how many
// transactions were rolled back.
func (w *writer) write(allowance *atomic.Int64) (committed map[uint64]accounts.Account, rolledBack int) {
	committed = map[uint64]accounts.Account{}
	for allowance.Add(-1) >= 0 {
		for w.roll = w.random.IntN(8) == 0; ; w.roll = false {
			var ctx context.Context
			ctx, w.cancel = context.WithCancel(w.t.Context())
			a := accounts.Account{
				ID: uint32(1 + w.random.IntN(64)), DisplayName: fmt.Sprint("n", w.random.Uint32()), Enabled: w.random.IntN(2) == 0,
			}
			version, err := w.s.Upsert(ctx, a)
			w.cancel()
			if w.roll != (err != nil) {
				w.t.Errorf("rolled back %v, and the error is %v", w.roll, err)
				return committed, rolledBack
			}
			if err == nil {
				committed[version] = a
				break
			}
			rolledBack++
		}
	}
	return committed, rolledBack
}

// kill runs publishers over and over: each is stopped at some moment, and its
// marks fail now and then, so that what was acknowledged is not noted. Whoever
// comes next knows nothing.
func (r *rig) kill(ctx context.Context, seed uint64, live *atomic.Pointer[Outbox]) (lives, deaths int) {
	random := rand.New(rand.NewPCG(seed, 99))
	died := errors.New("killed between acknowledgement and mark")
	marks := 0
	for ; ctx.Err() == nil; lives++ {
		b := New(Options{
			Source: account, DB: r.db, Stream: r.stream, Poll: 2 * time.Millisecond,
			Marked: func(uint64) error {
				if marks++; marks%2 == 1 || random.IntN(4) == 0 {
					deaths++
					return died
				}
				return nil
			},
		})
		live.Store(b)
		life, end := context.WithTimeout(ctx, time.Duration(50+random.IntN(600))*time.Millisecond)
		if err := b.Run(life); err != nil {
			r.t.Error(err)
		}
		end()
		if b.Alarms() != 0 {
			r.t.Error(b.Alarm())
		}
	}
	return lives, deaths
}

// 16 writers with slow commits and roll-backs, and publishers that are killed
// between acknowledgement and mark: the stream's versions are contiguous from 1,
// none is lost, none is there twice, and the last value of each key is the table's.
func TestSixteenWritersAndPublishersThatAreKilled(t *testing.T) {
	commits := int64(20_000)
	if testing.Short() {
		commits = 2_000
	}
	seed := rand.Uint64()
	t.Logf("seed %d, %d commits", seed, commits)
	both(t, func(t *testing.T, db *store.DB, b *broker.Broker) {
		r := newRig(t, db, b)
		var live atomic.Pointer[Outbox]
		changed := func() {
			if b := live.Load(); b != nil {
				b.Wake()
			}
		}
		publishing, stop := context.WithCancel(t.Context())
		var publisher, writers sync.WaitGroup
		var lives, deaths int
		publisher.Go(func() { lives, deaths = r.kill(publishing, seed, &live) })
		var allowance atomic.Int64
		allowance.Store(commits)
		var mu sync.Mutex
		want, rolledBack := map[uint64]accounts.Account{}, 0
		for i := range uint64(16) {
			writers.Go(func() {
				committed, n := newWriter(t, db, changed, rand.New(rand.NewPCG(seed, i))).write(&allowance)
				mu.Lock()
				defer mu.Unlock()
				rolledBack += n
				for version, a := range committed {
					if _, twice := want[version]; twice {
						t.Errorf("version %d was given twice", version)
					}
					want[version] = a
				}
			})
		}
		writers.Wait()
		stop()
		publisher.Wait()
		r.fresh()
		r.drain() // what the last one left
		t.Logf("%d commits, %d roll-backs, %d publishers, %d marks failed", len(want), rolledBack, lives, deaths)
		if int64(len(want)) != commits || rolledBack == 0 || deaths == 0 {
			t.Error("that was no test")
		}
		r.sameAs(want)
	})
}

// sameAs holds the stream against what was committed, and against the table.
func (r *rig) sameAs(want map[uint64]accounts.Account) {
	r.t.Helper()
	r.has(span(1, uint64(len(want))))
	last := map[uint32]accounts.Account{}
	for i, m := range r.messages() {
		d, err := control.ParseDelta(account, m.Data)
		if err != nil {
			r.t.Fatal(err)
		}
		a := accounts.Account{ID: d.Record.ID, DisplayName: d.Record.Name, Enabled: d.Record.Enabled}
		if d.Version != uint64(i+1) || a != want[d.Version] {
			r.t.Fatalf("message %d is %+v, committed was %+v", i+1, d, want[uint64(i+1)])
		}
		last[a.ID] = a
	}
	all, err := r.s.List(r.t.Context())
	if err != nil || len(all) != len(last) {
		r.t.Fatalf("%d accounts in the table, %d on the stream: %v", len(all), len(last), err)
	}
	for _, a := range all {
		if last[a.ID] != a {
			r.t.Errorf("the table has %+v, the stream %+v", a, last[a.ID])
		}
	}
}
