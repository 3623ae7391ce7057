package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"posttrade/sidecars/control"
)

// staysOut asserts that a source is not ready for a minute, for one given reason.
func (r *rig) staysOut(reason Reason) {
	r.t.Helper()
	r.wait(Quarantined)
	for range 60 {
		<-time.After(time.Second) // of virtual time
		synctest.Wait()
		if s := r.b.Status(); s.State == Ready || s.LastReason != reason {
			r.t.Fatalf("%+v, want out for %s", s, reason)
		}
	}
}

// restart makes the replica start a new round.
func (r *rig) restart() { r.feed().lose(errors.New("restart")) }

// A database restored from a backup has continued since: its versions are above the stream's again,
// and stand for other changes.
func TestSourceThatHasForgottenAndGoneOnIsNoticed(t *testing.T) {
	tests := []struct {
		name   string
		forget func(u *upstream)
	}{
		{"the record of the stream's last change is older", func(u *upstream) {
			r := u.records[5]
			r.Version = 1
			u.records[5] = r
		}},
		{"it is not there", func(u *upstream) { delete(u.records, 5) }},
		{"the same version says something else", func(u *upstream) {
			r := u.records[5]
			r.Enabled = false
			u.records[5] = r
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := following(t, control.Account, nil)
				defer r.stop()
				r.up.set(func(u *upstream) {
					tt.forget(u)
					u.late = true
				})
				for id := range uint32(4) { // committed, and never published
					r.up.commit(id+1, false)
				}
				r.restart()
				r.staysOut(VersionRegression)
				r.up.set(func(u *upstream) { // bumped: the waiting changes are superseded
					u.epoch++
					u.held, u.late = nil, false
				})
				r.up.commit(1, true)
				r.same()
			})
		})
	}
}

// Tables made anew draw another epoch, and count from 1.
func TestSourceWithAnotherEpochThanTheStreamIsNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := following(t, control.Security, nil)
		defer r.stop()
		r.up.set(func(u *upstream) { u.epoch, u.late = u.epoch+7, true })
		r.up.commit(1, false)
		r.restart()
		r.staysOut(EpochChange)
		r.up.release() // what its publisher does after the bump
		r.same()
	})
}

// Stream and database were restored together: they agree, and are older than what this replica has
// applied.
func TestSnapshotBelowWhatWasAppliedIsNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := following(t, control.Account, nil)
		defer r.stop()
		r.up.set(func(u *upstream) {
			forgetTwo(u)
			u.stream = u.stream[:u.version]
		})
		r.restart()
		r.staysOut(VersionRegression)
		r.up.set(func(u *upstream) { u.epoch++ })
		r.up.commit(4, true)
		r.same()
	})
}

// forgetful is a sink that has applied later versions of the source before its start.
type forgetful struct {
	*universe
	from uint64
}

func (s *forgetful) Install(ctx context.Context, snapshot control.Snapshot) error {
	if snapshot.Watermark < s.from {
		return fmt.Errorf("sink: watermark %d: %w", snapshot.Watermark, ErrRegression)
	}
	return s.universe.Install(ctx, snapshot)
}

func TestSinkMayKnowOfALaterVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := started(t, control.Account, func(o *Options) {
			o.Sink = &forgetful{o.Sink.(*universe), 8}
		})
		defer r.stop()
		r.staysOut(VersionRegression)
		for id := uint32(1); id <= 3; id++ {
			r.up.commit(id, false)
		}
		r.same()
	})
}

// A publisher beside the replica cannot publish its changes: the stream is silent, its heartbeats
// come, and yet the universe is old.
func TestChangesThatDoNotReachTheStreamRevokeReadiness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var up atomic.Pointer[upstream]
		behind := func(_ context.Context, watermark uint64) error {
			u := up.Load()
			if u == nil {
				return nil
			}
			u.mu.Lock()
			defer u.mu.Unlock()
			if len(u.held) > 0 && watermark < u.version {
				return errors.New("the stream is full")
			}
			return nil
		}
		r := started(t, control.Account, func(o *Options) { o.Behind = behind })
		up.Store(r.up)
		defer r.stop()
		r.wait(Ready)
		r.up.set(func(u *upstream) { u.late = true })
		r.up.commit(2, false)
		r.wait(Quarantined)
		if s := r.b.Status(); s.LastReason != Disconnected || s.Detail != "the stream is full" {
			t.Fatalf("%+v", s)
		}
		r.wait(Ready) // by the next snapshot, which has the change
		r.sink.mu.Lock()
		enabled := r.sink.records[2].Enabled
		r.sink.mu.Unlock()
		if enabled {
			t.Fatal("ready without the change")
		}
		r.up.release()
		r.same()
	})
}

// A stop in the middle of a fetch is no fault of the source.
func TestStoppingIsNoQuarantine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := started(t, control.Account, func(o *Options) {
			o.Fetch = func(ctx context.Context) (control.Snapshot, error) {
				<-ctx.Done()
				return control.Snapshot{}, ctx.Err()
			}
		})
		synctest.Wait()
		r.stop()
		if s := r.b.Status(); len(s.Quarantines) != 0 {
			t.Errorf("%+v", s)
		}
	})
}
