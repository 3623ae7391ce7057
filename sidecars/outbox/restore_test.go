package outbox

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"posttrade/ring/must"
	"posttrade/sidecars/accounts"
	"posttrade/sidecars/bootstrap"
	"posttrade/sidecars/broker"
	"posttrade/sidecars/broker/brokertest"
	"posttrade/sidecars/control"
	"posttrade/sidecars/source"
	"posttrade/sidecars/store"
	"posttrade/sidecars/store/storetest"
)

// forget takes the database back to a version, as a restored backup does.
func (r *rig) forget(version int) {
	r.t.Helper()
	for _, edit := range []string{
		"delete from outbox where version > $1",
		"delete from accounts where version > $1",
		"update sources set version = $1",
	} {
		storetest.Edit(r.t, r.db, edit, version)
	}
}

// notReady checks that a replica stays out through several rounds, for one given reason.
func notReady(t *testing.T, replica *bootstrap.Bootstrap, reason bootstrap.Reason) {
	t.Helper()
	until(t, "several quarantines", func() bool {
		s := replica.Status()
		if s.State == bootstrap.Ready {
			t.Fatalf("ready: %+v", s)
		}
		return s.Quarantines[reason] >= 3
	})
}

// The database is older than the stream. That is noticed, nothing is published, and no replica
// becomes ready, not even after the database has overtaken the stream. A new epoch repairs all of
// it.
func TestRestoredDatabaseIsNoticedAndHealedByAnEpoch(t *testing.T) {
	for _, overtake := range []int{0, 10, 60} {
		t.Run(fmt.Sprint("changes since the restore ", overtake), func(t *testing.T) {
			both(t, func(t *testing.T, db *store.DB, b *broker.Broker) {
				r := newRig(t, db, b)
				r.upsert(65)
				r.step()
				r.forget(40)
				r.fresh()
				r.upsert(overtake)
				r.refuses()
				// When the record of the stream's last change has been changed once more, the snapshot does not
				// show the fault: then the publisher reports it.
				hidden, reason := overtake == 60, bootstrap.VersionRegression
				if hidden {
					reason = bootstrap.Disconnected
				}
				replica, u := r.replica(hidden)
				notReady(t, replica, reason)
				r.upsert(1)
				r.refusesStill()
				r.bump() // within the window of the ids
				r.step()
				r.converges(replica, u)
				last := uint64(max(65, 40+overtake+1)) + 1
				if got, want := r.versions(), append(span(1, 65), last); !slices.Equal(got, want) {
					t.Fatalf("the stream has %v, want %v", got, want)
				}
				r.upsert(5)
				r.step()
				r.converges(replica, u)
				if r.b.Alarm() != "" {
					t.Error(r.b.Alarm())
				}
				r.fresh()
				r.step()
				if got := r.versions(); len(got) != 71 || r.b.Alarm() != "" {
					t.Errorf("a later start: %v, %q", got, r.b.Alarm())
				}
			})
		})
	}
}

// refusesStill asserts that the alarm persists and is not raised again.
func (r *rig) refusesStill() {
	r.t.Helper()
	alarms := r.b.Alarms()
	if n, err := r.b.Step(r.t.Context()); n != 0 || err == nil {
		r.t.Fatalf("published %d, %v", n, err)
	}
	if more := r.b.Alarms() - alarms; more > 1 { // another finding is another alarm
		r.t.Errorf("%d alarms more", more)
	}
}

// An older copy of the file posttrade.db itself is put back.
func TestOlderFileOfTheDatabase(t *testing.T) {
	dir := t.TempDir()
	open := func() *store.DB {
		return must.Get(store.Open(store.Options{Dir: dir}))(t)
	}
	db := open()
	r := newRig(t, db, openBroker(t, broker.Options{Dir: t.TempDir()}))
	r.upsert(30)
	r.step()
	must.OK(t, db.Close())
	backup := copyOf(t, dir)
	again := func() {
		r.db = open()
		r.s = accounts.New(source.Options{DB: r.db})
		r.fresh()
	}
	again()
	r.upsert(20)
	r.step()
	must.OK(t, r.db.Close())
	for _, name := range []string{"posttrade.db", "posttrade.db-wal", "posttrade.db-shm"} {
		_ = os.Remove(filepath.Join(dir, name)) // the last two exist only after a crash
	}
	must.OK(t, os.CopyFS(dir, os.DirFS(backup)))
	again()
	defer r.db.Close()
	r.refuses()
	r.bump()
	r.step()
	if got, want := r.versions(), append(span(1, 50), 51); !slices.Equal(got, want) {
		t.Fatalf("the stream has %v", got)
	}
	// The stream is lost as well: only the changes of the new epoch are published again.
	r.upsert(3)
	r.stream.broker = openBroker(t, broker.Options{Dir: t.TempDir()})
	r.fresh()
	r.step()
	r.has(span(51, 54))
	replica, u := r.replica(false)
	r.converges(replica, u)
}

// Tables made anew beside an old stream: another epoch, and versions from 1.
func TestNewTablesBesideAnOldStream(t *testing.T) {
	for _, upserts := range []int{3, 30} {
		both(t, func(t *testing.T, db *store.DB, b *broker.Broker) {
			old := newRig(t, storetest.Open(t, store.SQLite), b)
			old.upsert(20)
			old.step()
			r := newRig(t, db, b)
			r.upsert(upserts)
			r.refuses()
			replica, u := r.replica(false)
			reason := bootstrap.EpochChange
			if upserts < 20 {
				reason = bootstrap.VersionRegression
			}
			notReady(t, replica, reason)
			r.bump()
			r.step()
			r.upsert(2)
			r.step()
			r.converges(replica, u)
			r.fresh()
			r.step()
			if r.b.Alarm() != "" {
				t.Error(r.b.Alarm())
			}
		})
	}
}

// Waiting rows are removed by hand. The rows behind them are not published as if nothing were
// missing.
func TestRowsRemovedFromTheQueueAreNoticed(t *testing.T) {
	for _, edit := range []string{
		"delete from outbox where version = 13",
		"delete from outbox where version in (11, 12)",
		"delete from outbox where version = 10", // the last on the stream
		"update outbox set payload = 'other' where version = 10",
	} {
		t.Run(edit, func(t *testing.T) {
			both(t, func(t *testing.T, db *store.DB, b *broker.Broker) {
				r := newRig(t, db, b)
				r.upsert(10)
				r.step()
				r.upsert(5)
				storetest.Edit(t, db, edit)
				r.fresh()
				r.refuses()
				r.bump()
				r.step()
				replica, u := r.replica(false)
				r.converges(replica, u)
				if got, want := r.versions(), append(span(1, 10), 16); !slices.Equal(got, want) {
					t.Errorf("the stream has %v, want %v", got, want)
				}
			})
		})
	}
}

// A mark is removed by hand, and nothing else: the stream has the row, and it is marked again.
func TestMarksRemovedByHandComeBack(t *testing.T) {
	both(t, func(t *testing.T, db *store.DB, b *broker.Broker) {
		r := newRig(t, db, b)
		r.upsert(10)
		r.step()
		r.upsert(5)
		storetest.Edit(t, db,
			"update outbox set published_at = null, stream_sequence = null where version in (5, 7)")
		r.fresh()
		r.step()
		r.has(span(1, 15))
	})
}

// An epoch is bumped as a precaution, with no fault, while a replica follows.
func TestEpochWhileAReplicaFollows(t *testing.T) {
	both(t, func(t *testing.T, db *store.DB, b *broker.Broker) {
		r := newRig(t, db, b)
		r.upsert(10)
		r.step()
		replica, u := r.replica(false)
		r.converges(replica, u)
		r.upsert(7) // which wait, and are superseded
		before, err := r.s.Snapshot(t.Context())
		must.OK(t, err)
		r.bump()
		r.step()
		after, err := r.s.Snapshot(t.Context())
		if err != nil || after.Epoch <= before.Epoch || after.Watermark != 18 {
			t.Fatal(before.Epoch, after.Epoch, after.Watermark, err)
		}
		r.converges(replica, u)
		r.has(append(span(1, 10), 18))
		if s := replica.Status(); s.Quarantines[bootstrap.Gap]+
			s.Quarantines[bootstrap.EpochChange] == 0 || s.Epoch != after.Epoch {
			t.Errorf("the replica took the epoch for nothing: %+v", s)
		}
	})
}

// The arguments of BumpEpoch are checked, and an empty table can be bumped too.
func TestBumpEpochOfAnEmptyTable(t *testing.T) {
	both(t, func(t *testing.T, db *store.DB, b *broker.Broker) {
		r := newRig(t, db, b)
		for _, wrong := range []store.OutboxRow{
			{Version: 5}, {Version: 5, Epoch: 1, StreamSequence: 1},
			{Version: 5, Epoch: 1, Payload: []byte("x")},
			{Version: 5, StreamSequence: 1, Payload: []byte("x")},
		} {
			if epoch, err := r.s.BumpEpoch(t.Context(), wrong, nil); err == nil || epoch != 0 {
				t.Errorf("%+v is taken: epoch %d", wrong, epoch)
			}
		}
		old := newRig(t, storetest.Open(t, store.SQLite), b)
		old.upsert(20)
		old.step()
		r.refuses()
		r.bump()
		r.step()
		if n := len(r.rows()); n != 1 || r.b.Alarm() != "" {
			t.Errorf("%d rows, %q", n, r.b.Alarm())
		}
		r.upsert(1)
		r.step()
		if got := r.versions(); !slices.Equal(got, span(1, 21)) {
			t.Errorf("the stream has %v", got)
		}
		snapshot, err := r.s.Snapshot(t.Context())
		if err != nil || snapshot.Watermark != 21 || len(snapshot.Records) != 1 {
			t.Error(snapshot, err)
		}
	})
}

// The epoch is above the stream's, whatever the clock shows.
func TestEpochIsAboveTheStreams(t *testing.T) {
	srv := brokertest.External(t)
	b := openBroker(t, broker.Options{URL: srv.URL()})
	r := newRig(t, storetest.Open(t, store.SQLite), b)
	r.upsert(1)
	ahead := control.Delta{Source: account, Epoch: control.MaxEpoch - 10, Version: 9,
		Record: control.Record{ID: 1, Name: "x", Version: 9}}
	must.OK(t, r.stream.Ensure(t.Context()))
	r.put("account:9", string(ahead.AppendJSON(nil)))
	r.refuses()
	r.bump()
	r.step()
	s, err := r.s.Snapshot(t.Context())
	if err != nil || s.Epoch != control.MaxEpoch-9 || s.Watermark != 10 {
		t.Error(s.Epoch, s.Watermark, err)
	}
	r.upsert(1)
	r.step()
	if got := r.versions(); !slices.Equal(got, span(9, 11)) {
		t.Errorf("the stream has %v", got)
	}
}

// Behind reports changes that a replica lacks, not all that wait.
func TestBehindIsWhatAReplicaLacks(t *testing.T) {
	storetest.EachInFull(t, func(t *testing.T, db *store.DB) {
		now := time.Now()
		clock := func() time.Time { return now }
		r := newRig(t, db, nil)
		r.s = accounts.New(source.Options{DB: db, Now: clock})
		r.b = New(Options{Source: account, DB: db, Now: clock, Stream: &memory{}})
		behind := func(watermark uint64) bool {
			return r.b.Behind(t.Context(), watermark, 10*time.Second) != nil
		}
		r.upsert(3)
		now = now.Add(20 * time.Second)
		r.upsert(2)
		must.OK(t, r.b.look(t.Context()))
		for watermark, want := range map[uint64]bool{0: true, 2: true, 3: false,
			4: false, 5: false, 9: false} {
			if behind(watermark) != want {
				t.Errorf("watermark %d: behind is %v", watermark, !want)
			}
		}
		if lag := r.b.LagSeconds(); lag != 20 || r.b.Unpublished() != 5 {
			t.Errorf("%v s, %d rows", lag, r.b.Unpublished())
		}
		now = now.Add(11 * time.Second)
		if !behind(3) || !behind(4) || behind(5) {
			t.Error("later changes have waited too long as well")
		}
		r.step()
		if behind(0) || r.b.LagSeconds() != 0 {
			t.Error("all is published")
		}
	})
}
