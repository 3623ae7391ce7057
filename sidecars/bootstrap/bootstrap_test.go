package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"posttrade/sidecars/control"
)

func TestSourceBecomesReadyAndFollows(t *testing.T) {
	for _, source := range control.Sources() {
		synctest.Test(t, func(t *testing.T) {
			r := following(t, source, nil)
			defer r.stop()
			r.sink.mu.Lock()
			states := slices.Clone(r.sink.states)
			r.sink.mu.Unlock()
			if !slices.Equal(states, []State{Bootstrapping, Installed, Ready}) {
				t.Errorf("%s: states %v", source, states)
			}
			for n := range 50 {
				r.up.commit(uint32(n%7+1), n%3 == 0)
			}
			r.same()
			s := r.b.Status()
			if s.Watermark != 55 || s.HighWatermark != 55 || s.Applied != 50 || s.Epoch != 1000 ||
				s.LastReason != "" || len(s.Quarantines) != 0 {
				t.Errorf("%s: %+v", source, s)
			}
		})
	}
}

// provoke makes a ready source fail in every way that the contract names.
var provoke = map[Reason]func(r *rig){
	Gap: func(r *rig) { r.up.publish(r.up.delta(1000, r.up.version+2, 1)) },
	VersionRegression: func(r *rig) {
		r.up.publish(r.up.delta(1000, r.up.version-1, 1))
	},
	EpochChange: func(r *rig) {
		r.up.set(func(u *upstream) { u.epoch++ })
		r.up.commit(2, false)
	},
	Malformed:    func(r *rig) { r.up.publish([]byte(`{"epoch":1}`)) },
	Disconnected: func(r *rig) { r.feed().lose(errors.New("no responders")) },
	ChecksumFailure: func(r *rig) {
		r.badSnapshot(fmt.Errorf("control: %w", control.ErrChecksum))
	},
	CountMismatch: func(r *rig) {
		r.badSnapshot(fmt.Errorf("control: %w", control.ErrCount))
	},
	BufferOverflow: func(r *rig) {
		stall := make(chan struct{})
		r.up.set(func(u *upstream) { u.stall = stall })
		r.feed().lose(errors.New("cut")) // a new round begins, and its fetch stalls
		r.wait(Quarantined)
		r.wait(Bootstrapping)
		synctest.Wait()
		for range 9 {
			r.up.commit(3, true)
		}
		synctest.Wait()
		r.up.set(func(u *upstream) { u.stall = nil })
		close(stall)
	},
}

// badSnapshot ends the round for another reason, and makes the next snapshot bad once.
func (r *rig) badSnapshot(err error) {
	r.up.set(func(u *upstream) { u.fetchErr = err })
	r.feed().lose(errors.New("cut"))
	r.wait(Quarantined)
	for r.b.Status().LastReason == Disconnected {
		<-time.After(10 * time.Millisecond)
		synctest.Wait()
	}
	r.up.set(func(u *upstream) { u.fetchErr = nil })
}

// repair does what an operator or the source itself does after a fault that the stream would
// otherwise keep showing. Most faults need no repair.
func (r *rig) repair(reason Reason) {
	switch reason {
	case Gap: // the foreign message named version+2: the source goes on from there
		r.up.commit(1, true)
		r.up.commit(1, true)
		r.up.commit(1, true)
	case VersionRegression, Malformed:
		r.up.commit(1, true)
	}
}

// TestEveryReasonQuarantinesThatSourceOnlyAndHeals provokes each reason 100
// times on one of two sources.
func TestEveryReasonQuarantinesThatSourceOnlyAndHeals(t *testing.T) {
	rounds := 100
	if testing.Short() {
		rounds = 10
	}
	for _, reason := range Reasons() {
		t.Run(string(reason), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				small := func(o *Options) { o.BufferCapacity = 8 }
				r, other := following(t, control.Account, small), following(t, control.Security, small)
				defer r.stop()
				defer other.stop()
				alive := time.NewTicker(time.Second)
				defer alive.Stop()
				stop := make(chan struct{})
				defer close(stop)
				go func() { // heartbeats of a healthy broker
					for {
						select {
						case <-alive.C:
							other.feed().beat()
							r.feed().beat()
						case <-stop:
							return
						}
					}
				}()
				for n := range rounds {
					before := r.b.Status().Quarantines[reason]
					provoke[reason](r)
					synctest.Wait()
					if got := r.b.Status(); got.Quarantines[reason] != before+1 || got.LastReason != reason {
						t.Fatalf("round %d: %+v, want one more %s", n, got, reason)
					}
					r.repair(reason)
					r.same()
				}
				r.sink.mu.Lock()
				defer r.sink.mu.Unlock()
				if !slices.Contains(r.sink.states, Quarantined) || !slices.Contains(r.sink.reasons, reason) {
					t.Errorf("the sink was told %v, %v", r.sink.states, r.sink.reasons)
				}
				if s := other.b.Status(); s.State != Ready || len(s.Quarantines) != 0 ||
					other.sink.installs != 1 {
					t.Errorf("the other source: %+v, %d installs", s, other.sink.installs)
				}
			})
		})
	}
}

func TestSilenceIsADisconnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := following(t, control.Account, nil)
		defer r.stop()
		for range 12 { // heartbeats alone keep it ready
			<-time.After(5 * time.Second)
			r.feed().beat()
			synctest.Wait()
			if s := r.b.Status(); s.State != Ready {
				t.Fatalf("with heartbeats: %+v", s)
			}
		}
		<-time.After(13 * time.Second)
		synctest.Wait()
		if s := r.b.Status(); s.Quarantines[Disconnected] != 1 {
			t.Fatalf("without: %+v", s)
		}
		r.same()
	})
}

// TestLateDeltasAreSkipped: a change that was committed before the snapshot and published after it
// has no effect and is no fault.
func TestLateDeltasAreSkipped(t *testing.T) {
	for n := range 1000 {
		synctest.Test(t, func(t *testing.T) {
			up := newUpstream(control.Account)
			for id := range 3 {
				up.commit(uint32(id+1), true)
			}
			late := 1 + n%7
			up.set(func(u *upstream) { u.late = true })
			for range late {
				up.commit(uint32(n%3+1), n%2 == 0)
			}
			sink := &universe{}
			b := New(Options{Source: control.Account, Tail: up.tail, Fetch: up.fetch, Sink: sink})
			r := &rig{t: t, up: up, sink: sink, b: b}
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- b.Run(ctx) }()
			r.wait(Ready)
			up.release()
			up.set(func(u *upstream) { u.late = false })
			up.commit(2, true)
			r.same()
			if s := b.Status(); s.Late != uint64(late) || s.Applied != 1 || len(s.Quarantines) != 0 {
				t.Fatalf("round %d: %+v, want %d late", n, s, late)
			}
			cancel()
			<-ended
		})
	}
}

func TestTheLastDeltaAgainIsIgnored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := following(t, control.Account, nil)
		defer r.stop()
		// The stream's last message before the subscription, then the newest one.
		r.up.publish(r.up.stream[len(r.up.stream)-1])
		r.up.commit(4, false)
		r.up.publish(r.up.stream[len(r.up.stream)-1])
		r.up.publish(r.up.stream[len(r.up.stream)-1])
		r.up.commit(4, true)
		r.same()
		if s := r.b.Status(); s.Repeated != 3 || s.Applied != 2 || len(s.Quarantines) != 0 {
			t.Errorf("%+v", s)
		}
		// The same version with other bytes is a fault.
		r.up.publish(r.up.delta(1000, r.up.version, 5))
		synctest.Wait()
		if s := r.b.Status(); s.LastReason != VersionRegression {
			t.Errorf("%+v", s)
		}
	})
}

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

func TestSnapshotBelowTheStreamIsARegression(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := following(t, control.Account, nil)
		defer r.stop()
		// A database restored from a backup, without a new epoch: the stream has more changes.
		r.up.set(forgetTwo)
		r.feed().lose(errors.New("restart"))
		r.wait(Quarantined)
		for range 40 {
			<-time.After(time.Second)
			synctest.Wait()
			if s := r.b.Status(); s.State == Ready {
				t.Fatalf("ready against a source that has forgotten: %+v", s)
			}
		}
		if s := r.b.Status(); s.LastReason != VersionRegression {
			t.Errorf("%+v", s)
		}
		// The epoch is bumped, and versions go on above the stream's.
		r.up.set(func(u *upstream) { u.epoch++; u.version += 2 })
		r.up.commit(4, true)
		r.same()
	})
}

func TestUnreachableSourceBacksOff(t *testing.T) {
	for what, change := range map[string]func(u *upstream, err error){
		"no stream":   func(u *upstream, err error) { u.tailErr = err },
		"no snapshot": func(u *upstream, err error) { u.fetchErr = err },
	} {
		synctest.Test(t, func(t *testing.T) {
			r := following(t, control.Account, nil)
			defer r.stop()
			r.up.set(func(u *upstream) { change(u, errors.New("connection refused")) })
			r.feed().lose(errors.New("cut"))
			synctest.Wait()
			before := r.b.Status().Quarantines[Disconnected]
			<-time.After(5 * time.Minute)
			synctest.Wait()
			tries := r.b.Status().Quarantines[Disconnected] - before
			// 0.1 s doubling to 30 s with half of it jitter: about 20 tries in five minutes.
			if tries < 12 || tries > 30 {
				t.Errorf("%s: %d tries in five minutes", what, tries)
			}
			r.up.set(func(u *upstream) { change(u, nil) })
			r.same()
		})
	}
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
			r.up.set(func(u *upstream) { u.tailErr = errors.New("no connection") })
			r.feed().lose(errors.New("cut"))
			<-time.After(5 * time.Minute)
			synctest.Wait()
			if s := r.b.Status(); s.State == Ready {
				t.Fatalf("ready without a broker: %+v", s)
			}
			// The broker is connected, but its streams are not there yet: the first rounds follow soon.
			close(*turn())
			synctest.Wait()
			r.up.set(func(u *upstream) { u.tailErr = nil })
			<-time.After(firstBackoff)
			synctest.Wait()
			if s := r.b.Status(); s.State != Ready {
				t.Fatalf("not ready although the broker is back: %+v", s)
			}
		}
		r.same()
	})
}

func TestStalledFetchTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := started(t, control.Account, func(o *Options) { o.FetchTimeout = 3 * time.Second })
		defer r.stop()
		stall := make(chan struct{})
		r.wait(Ready)
		r.up.set(func(u *upstream) { u.stall = stall })
		r.feed().lose(errors.New("cut"))
		<-time.After(10 * time.Second)
		synctest.Wait()
		if s := r.b.Status(); s.State == Ready || s.Quarantines[Disconnected] < 2 ||
			r.sink.installs != 1 {
			t.Errorf("%+v, %d installs", s, r.sink.installs)
		}
		r.up.set(func(u *upstream) { u.stall = nil })
		r.same()
	})
}

// TestFullBufferIsNoFaultOnceInstalled: a slow engine makes the reader wait.
func TestFullBufferIsNoFaultOnceInstalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := following(t, control.Account, func(o *Options) { o.BufferCapacity = 4 })
		defer r.stop()
		hold := make(chan struct{})
		r.sink.mu.Lock()
		r.sink.hold = hold
		r.sink.mu.Unlock()
		for n := range 100 {
			r.up.commit(uint32(n%9+1), n%2 == 0)
		}
		<-time.After(time.Minute)
		synctest.Wait()
		close(hold)
		r.same()
		if s := r.b.Status(); len(s.Quarantines) != 0 || s.Applied != 100 {
			t.Errorf("%+v", s)
		}
	})
}

func TestEngineThatDoesNotTakeAChangeIsNoFaultOfTheSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := following(t, control.Account, nil)
		defer r.stop()
		r.sink.mu.Lock()
		r.sink.applyErr = errors.New("no room")
		r.sink.mu.Unlock()
		r.up.commit(3, false)
		synctest.Wait()
		if s := r.b.Status(); s.State == Ready || len(s.Quarantines) != 0 {
			t.Errorf("%+v", s)
		}
		r.sink.mu.Lock()
		r.sink.applyErr = nil
		r.sink.mu.Unlock()
		r.same()
	})
}

func TestMessagesThatTheStreamLostAreAGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := following(t, control.Account, nil)
		defer r.stop()
		r.feed().lose(fmt.Errorf("tail: %w", ErrGap))
		synctest.Wait()
		if s := r.b.Status(); s.LastReason != Gap || s.State == Ready {
			t.Errorf("%+v", s)
		}
		r.same()
	})
}

// TestGapBehindTheSnapshotOfAnEmptyStream: with nothing on the stream the first
// delta is judged by the snapshot's watermark.
func TestGapBehindTheSnapshotOfAnEmptyStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := following(t, control.Account, nil)
		defer r.stop()
		r.up.set(func(u *upstream) { u.stream = nil }) // all of it has aged out
		r.feed().lose(errors.New("cut"))
		r.wait(Quarantined)
		r.same()
		r.up.set(func(u *upstream) {
			u.version++ // committed, and lost on its way to the stream
			u.records[1] = control.Record{ID: 1, Name: "lost", Enabled: false, Version: u.version}
		})
		r.up.commit(2, false)
		synctest.Wait()
		if s := r.b.Status(); s.LastReason != Gap {
			t.Errorf("%+v", s)
		}
		r.same()
	})
}
