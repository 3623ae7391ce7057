package bootstrap

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"posttrade/sidecars/control"
)

func TestDeltasBufferedDuringTheFetchAreAppliedAboveTheWatermark(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stall := make(chan struct{})
		r := following(t, control.Account, nil)
		defer r.stop()
		r.up.set(func(u *upstream) { u.stall = stall })
		r.feed().lose(errors.New("cut"))
		r.wait(Quarantined)
		r.wait(Bootstrapping)
		synctest.Wait()
		for range 3 {
			r.up.commit(1, false) // in the buffer and in the snapshot: late
		}
		// The snapshot is taken now; two more changes come before it is installed.
		r.up.set(func(u *upstream) {
			u.damage = func(*control.Snapshot) {
				u.damage = nil
				go func() {
					r.up.commit(2, false)
					r.up.commit(9, true)
				}()
			}
		})
		close(stall)
		r.up.set(func(u *upstream) { u.stall = nil })
		r.same()
		if s := r.b.Status(); s.Late != 3 || s.Applied != 2 {
			t.Errorf("%+v", s)
		}
	})
}

// TestBrokersReturnEndsTheWait has an outage so long that rounds are half a minute apart. The
// source is ready when the broker is back, not when the next round is due.
func TestBrokersReturnEndsTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var returned atomic.Pointer[chan struct{}]
		turn := func() (before *chan struct{}) {
			next := make(chan struct{})
			return returned.Swap(&next)
		}
		turn()
		r := following(t, control.Account, func(o *Options) {
			o.Returned = func() <-chan struct{} { return *returned.Load() }
		})
		defer r.stop()
		for range 3 {
			r.up.set(func(u *upstream) { u.followErr = errors.New("no connection") })
			r.feed().lose(errors.New("cut"))
			<-time.After(5 * time.Minute)
			synctest.Wait()
			if s := r.b.Status(); s.State == Ready {
				t.Fatalf("ready without a broker: %+v", s)
			}
			// The broker is connected, but its streams are not there yet: the first rounds follow soon.
			close(*turn())
			synctest.Wait()
			r.up.set(func(u *upstream) { u.followErr = nil })
			<-time.After(firstBackoff)
			synctest.Wait()
			if s := r.b.Status(); s.State != Ready {
				t.Fatalf("not ready although the broker is back: %+v", s)
			}
		}
		r.same()
	})
}
