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

	"posttrade/ring/must"
	"posttrade/sidecars/accounts"
	"posttrade/sidecars/control"
	"posttrade/sidecars/source"
	"posttrade/sidecars/store"
	"posttrade/sidecars/store/storetest"
)

// writer is one of several. It does random upserts, some in slow transactions, some of which are
// rolled back, until the common allowance is used up.
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

// now runs inside of the transaction.
func (w *writer) now() time.Time {
	if w.random.IntN(30) == 0 {
		<-time.After(time.Duration(w.random.IntN(2000)) * time.Microsecond)
	}
	if w.roll {
		w.cancel()
	}
	return time.Now()
}

// write returns the accounts that it has committed, by version, and how many transactions were
// rolled back.
func (w *writer) write(allowance *atomic.Int64) (committed map[uint64]accounts.Account,
	rolledBack int) {
	committed = map[uint64]accounts.Account{}
	for allowance.Add(-1) >= 0 {
		for w.roll = w.random.IntN(8) == 0; ; w.roll = false {
			var ctx context.Context
			ctx, w.cancel = context.WithCancel(w.t.Context())
			a := accounts.Account{
				ID: uint32(1 + w.random.IntN(64)), DisplayName: fmt.Sprint("n", w.random.Uint32()),
				Enabled: w.random.IntN(2) == 0,
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

// life is the stream of one publisher. It allows a given number of events; then the publisher ends,
// at that event or at some moment after it.
type life struct {
	*natsStream
	random *rand.Rand
	events int
	end    context.CancelFunc
}

func (l *life) event() {
	if l.events--; l.events == 0 {
		if l.random.IntN(2) == 0 {
			l.end()
		} else {
			go l.end()
		}
	}
}

func (l *life) Last(ctx context.Context) (Message, Extent, bool, error) {
	l.event()
	return l.natsStream.Last(ctx)
}

func (l *life) Publish(ctx context.Context, messages []Outgoing) ([]Ack, error) {
	l.event()
	acks, err := l.natsStream.Publish(ctx, messages)
	l.event()
	return acks, err
}

// killer runs publishers over and over. Each dies at some event, and some of its marks fail, the
// very first one always, so that an acknowledged row is not marked. The next publisher has no
// knowledge of that.
type killer struct {
	live   atomic.Pointer[Outbox]
	deaths atomic.Int64 // marks that failed
	lives  int
}

var errKilled = errors.New("killed between acknowledgement and mark")

func (k *killer) run(ctx context.Context, r *rig, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 99))
	for ; ctx.Err() == nil; k.lives++ {
		alive, end := context.WithCancel(ctx)
		l := &life{natsStream: r.stream, random: random, events: 1 + random.IntN(15), end: end}
		b := New(Options{
			Source: account, DB: r.db, Stream: l, Poll: 2 * time.Millisecond,
			Marked: func(uint64) error {
				l.event()
				if k.deaths.Load() > 0 && random.IntN(3) > 0 {
					return nil
				}
				k.deaths.Add(1)
				if random.IntN(4) > 0 { // else it continues, and compares the stream again
					end()
				}
				return errKilled
			},
		})
		k.live.Store(b)
		if err := b.Run(alive); err != nil {
			r.t.Error(err)
		}
		end()
		if b.Alarms() != 0 {
			r.t.Error(b.Alarm())
		}
	}
}

// 16 writers with slow commits and roll-backs run beside publishers that are killed between
// acknowledgement and mark. The stream's versions are contiguous from 1, none is lost, none is
// there twice, and the last value of each key is the table's.
func TestSixteenWritersAndPublishersThatAreKilled(t *testing.T) {
	commits := int64(size(20_000, 400))
	seed := rand.Uint64()
	t.Logf("seed %d, %d commits", seed, commits)
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		r := newRig(t, db, beside(t, db))
		var k killer
		changed := func() {
			if b := k.live.Load(); b != nil {
				b.Wake()
			}
		}
		publishing, stop := context.WithCancel(t.Context())
		var publisher, writers sync.WaitGroup
		publisher.Go(func() { k.run(publishing, r, seed) })
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
		until(t, "a publisher was killed before its mark", func() bool { return k.deaths.Load() > 0 })
		stop()
		publisher.Wait()
		r.fresh()
		r.drain() // the rows that the last one left
		t.Logf("%d commits, %d roll-backs, %d publishers, %d marks failed", len(want),
			rolledBack, k.lives, k.deaths.Load())
		if int64(len(want)) != commits || rolledBack == 0 {
			t.Error("that was no test")
		}
		r.sameAs(want)
	})
}

// sameAs compares the stream with the committed changes and with the table.
func (r *rig) sameAs(want map[uint64]accounts.Account) {
	r.t.Helper()
	r.has(span(1, uint64(len(want))))
	last := map[uint32]accounts.Account{}
	for i, m := range r.messages() {
		d := must.Get(control.ParseDelta(account, m.Data))(r.t)
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
