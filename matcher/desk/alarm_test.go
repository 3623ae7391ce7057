package desk

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"posttrade/matcher"
)

// refuser takes commands off the ring and refuses them, one goroutine at a time. A holder gets the
// refusal before the consumer has finished.
type refuser struct {
	*rig
	mu sync.Mutex
}

func (r *refuser) refuse() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rig.refuse()
}

// A wait that ends in time leaves its timer running, so the later waits meet a timer that is set to
// another moment than theirs.
func TestWaitEndsWhenItsOwnTimeIsUp(t *testing.T) {
	const first = 10 * time.Second
	for _, tt := range []struct {
		name          string
		pause         time.Duration // between the end of the first wait and the second
		timeout       time.Duration // of the second
		refused, want time.Duration // when it is refused, 0 for never; how long it waits
		err           error
	}{
		{"later than the timer", time.Second, first, 0, first, ErrTimeout},
		{"ended behind the timer", time.Second, first, first - 1, first - 1, ErrRefused},
		{"ended in front of the timer", time.Second, first, 3, 3, ErrRefused},
		{"earlier than the timer", time.Second, time.Second, 0, time.Second, ErrTimeout},
		{"as the timer goes off", time.Second, first - 2*time.Second, 0, first - 2*time.Second,
			ErrTimeout},
		{"after the timer went off", time.Minute, first, 0, first, ErrTimeout},
		{"much longer", time.Second, 100 * first, 0, 100 * first, ErrTimeout},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := &refuser{rig: newRig(t, 16, 1)}
				order := newOrder(1, matcher.Buy, 1, px, 0)
				ticket := r.submit(order)
				time.AfterFunc(time.Second, r.refuse)
				if err := ticket.Wait(first); err != ErrRefused {
					t.Fatalf("first: got %v, want %v", err, ErrRefused)
				}
				ticket.Release()
				<-time.After(tt.pause)

				begun := time.Now()
				ticket = r.submit(order)
				if tt.refused > 0 {
					time.AfterFunc(tt.refused, r.refuse)
				}
				err := ticket.Wait(tt.timeout)
				if took := time.Since(begun); err != tt.err || took != tt.want {
					t.Errorf("%v after %v, want %v after %v", err, took, tt.err, tt.want)
				}
				if tt.refused == 0 {
					r.refuse()
				}
				ticket.Release()
				if r.desk.Out() != 0 {
					t.Errorf("%d tickets out, want 0", r.desk.Out())
				}
			})
		})
	}
}

// A nudge that no holder has taken must not count as the end of the next submission, and must not
// block a sender.
func TestNudgeLeftBehindEndsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &refuser{rig: newRig(t, 16, 1)}
		order := newOrder(1, matcher.Buy, 1, px, 0)
		ticket := r.submit(order)
		for range 3 { // each leaves the timer to go off while no holder waits
			if err := ticket.Wait(time.Second); err != ErrTimeout {
				t.Fatalf("got %v, want %v", err, ErrTimeout)
			}
		}
		ticket.alarm.due.Store(1) // as if it were about to wait
		for range 3 {
			ticket.ring()
		}
		r.refuse()
		ticket.Release()

		ticket = r.submit(order)
		ticket.ring()
		time.AfterFunc(time.Minute, r.refuse)
		begun := time.Now()
		if err := ticket.Wait(0); err != ErrRefused || time.Since(begun) != time.Minute {
			t.Errorf("%v after %v, want %v after a minute", err, time.Since(begun), ErrRefused)
		}
		ticket.Release()
	})
}

// TestSteadyUseLeavesTheTimerAlone: a ticket in steady use does not set its timer each time.
func TestSteadyUseLeavesTheTimerAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &refuser{rig: newRig(t, 16, 1)}
		const timeout, each = time.Second, 10 * time.Millisecond
		set, last := 0, int64(0)
		for range 500 {
			ticket := r.submit(newOrder(1, matcher.Buy, 1, px, 0))
			time.AfterFunc(each, r.refuse)
			if err := ticket.Wait(timeout); err != ErrRefused {
				t.Fatal(err)
			}
			if now := ticket.alarm.set.Load(); now != last {
				set, last = set+1, now
			}
			ticket.Release()
		}
		if want := 2 * int(500*each/timeout); set > want {
			t.Errorf("the timer was set %d times in %v, want at most %d", set, 500*each, want)
		}
	})
}
