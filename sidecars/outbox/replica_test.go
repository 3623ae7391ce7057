package outbox

import (
	"math/rand/v2"
	"testing"
	"time"

	"posttrade/ring/must"
	"posttrade/sidecars/accounts"
	"posttrade/sidecars/bootstrap"
	"posttrade/sidecars/broker"
	"posttrade/sidecars/broker/brokertest"
	"posttrade/sidecars/source"
	"posttrade/sidecars/store"
	"posttrade/sidecars/store/storetest"
)

// The whole path from upsert to replica: many changes, the server restarted twice in the middle,
// connections cut. At the end the replica equals the table, and it never applied a version out of
// order.
func TestEveryChangeReachesTheReplica(t *testing.T) {
	seed, changes := rand.Uint64(), size(1000, 300)
	t.Logf("seed %d", seed)
	elsewhere(t, func(t *testing.T, r *rig, srv *brokertest.Server) {
		random := rand.New(rand.NewPCG(seed, 1))
		r.s = accounts.New(source.Options{DB: r.db, Changed: r.b.Wake})
		stop := r.run()
		defer stop()
		replica, u := r.replica(false)
		for i := range changes {
			a := accounts.Account{ID: uint32(1 + random.IntN(50)), DisplayName: "x",
				Enabled: random.IntN(2) == 0}
			must.Get(r.s.Upsert(t.Context(), a))(t)
			switch i {
			case changes * 3 / 10, changes * 7 / 10:
				srv.Restart()
			case changes / 2:
				srv.Cut()
			case changes * 3 / 20, changes * 6 / 10:
				r.converges(replica, u)
			}
		}
		r.converges(replica, u)
		until(t, "all is published", func() bool {
			return r.b.Unpublished() == 0 && r.b.Published() >= uint64(changes)
		})
		stop()
		r.has(span(1, uint64(changes)))
		s := replica.Status()
		for reason, n := range s.Quarantines { // the reasons that a restart may cause
			if reason != bootstrap.Disconnected && n > 0 {
				t.Errorf("%d quarantines for %s: %s", n, reason, s.Detail)
			}
		}
		t.Logf("%d applied, %d late, %d quarantines", s.Applied, s.Late,
			s.Quarantines[bootstrap.Disconnected])
	})
}

// An account is disabled and enabled. The replica gets that at once, not at the publisher's next
// poll, and its universe is never between two changes.
func TestDisabledAccountIsKnownSoon(t *testing.T) {
	both(t, func(t *testing.T, db *store.DB, b *broker.Broker) {
		r := newRig(t, db, b)
		// Only Wake makes it look.
		r.b = New(Options{Source: account, DB: db, Stream: r.stream, Poll: 24 * time.Hour})
		r.s = accounts.New(source.Options{DB: db, Changed: r.b.Wake})
		r.upsert(20)
		r.run()
		replica, u := r.replica(false)
		r.converges(replica, u)
		for i := range 20 {
			a := accounts.Account{ID: 3, DisplayName: "three", Enabled: i%2 == 0}
			must.Get(r.s.Upsert(t.Context(), a))(t)
			until(t, "the change has arrived", func() bool {
				u.mu.Lock()
				defer u.mu.Unlock()
				return u.records[3].Enabled == a.Enabled && u.at == uint64(21+i)
			})
		}
		if s := replica.Status(); len(s.Quarantines) != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// Deltas that were committed before the snapshot and published after it are skipped, without a
// quarantine.
func TestLateDeltasAreNoFault(t *testing.T) {
	late := size(300, 60)
	both(t, func(t *testing.T, db *store.DB, b *broker.Broker) {
		r := newRig(t, db, b)
		r.upsert(5)
		r.step()
		r.upsert(late) // the publisher is late
		replica, u := r.replica(false)
		r.converges(replica, u)
		r.run()
		until(t, "late deltas were skipped", func() bool { return replica.Status().Late == uint64(late) })
		r.upsert(3)
		r.converges(replica, u)
		if s := replica.Status(); len(s.Quarantines) != 0 || s.Applied != 3 {
			t.Errorf("%+v", s)
		}
	})
}

// A replica starts first, when there is neither a stream nor a record.
func TestReplicaMayBeFirst(t *testing.T) {
	storetest.EachInFull(t, func(t *testing.T, db *store.DB) {
		srv := brokertest.ExternalWith(t, brokertest.Config{Stopped: true})
		r := newRig(t, db, openBroker(t, broker.Options{URL: srv.URL()}))
		replica, u := r.replica(false)
		until(t, "quarantined", func() bool {
			return replica.Status().Quarantines[bootstrap.Disconnected] > 0
		})
		r.upsert(10)
		srv.Restart()
		r.run()
		r.converges(replica, u)
		r.upsert(10)
		r.converges(replica, u)
	})
}

// A full stream is silent and sends heartbeats. Beside its publisher the replica knows that its
// records are old, and takes the changes from snapshots until there is space.
func TestFullStreamRevokesReadiness(t *testing.T) {
	storetest.EachInFull(t, func(t *testing.T, db *store.DB) {
		r := newRig(t, db, openBroker(t, broker.Options{Dir: t.TempDir()}))
		r.stream.config.MaxMessages = 10
		r.upsert(10)
		r.run()
		replica, u := r.replica(true)
		r.converges(replica, u)
		r.upsert(5)
		until(t, "revoked", func() bool { return replica.Status().State != bootstrap.Ready })
		until(t, "ready with the change, by a snapshot", func() bool {
			u.mu.Lock()
			defer u.mu.Unlock()
			return u.at == 15 && replica.Status().State == bootstrap.Ready
		})
		if s := replica.Status(); s.Quarantines[bootstrap.Disconnected] == 0 || len(s.Quarantines) != 1 {
			t.Errorf("%+v", s)
		}
	})
}
