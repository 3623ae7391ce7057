package desk

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"posttrade/matcher"
	"posttrade/ring/must"
)

// The end of a submission sends no token unless a holder waits: a holder that polls finds the state
// changed, and must not have to wait for a token that is still on its way.
func TestOnlyWhoWaitsGetsAToken(t *testing.T) {
	for _, tt := range []struct {
		name string
		end  func(r *rig)
		want error
	}{
		{"durable", func(r *rig) { r.step(2); r.durable() }, nil},
		{"refused", (*rig).refuse, ErrRefused},
		{"failed", func(r *rig) { r.desk.Fail() }, ErrFailed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, 16, 2)
				waits := r.submit(newOrder(1, matcher.Buy, 1, px, 0))
				polls := r.submit(newOrder(2, matcher.Buy, 1, px, 0))
				got := make(chan error)
				go func() { got <- waits.Wait(time.Minute) }()
				synctest.Wait()
				if waits.Ready() || polls.Ready() {
					t.Error("ready before the end")
				}
				tt.end(r)
				if n := len(polls.wake); !polls.Ready() || n != 0 {
					t.Errorf("ready: %v, and %d tokens for a caller that only looks", polls.Ready(), n)
				}
				if err := polls.Wait(0); err != tt.want {
					t.Errorf("the caller that looked: %v, want %v", err, tt.want)
				}
				if err := <-got; err != tt.want {
					t.Errorf("the caller that waited: %v, want %v", err, tt.want)
				}
				if err := waits.Wait(0); err != tt.want {
					t.Errorf("and again: %v, want %v", err, tt.want)
				}
			})
		})
	}
}

// TestTimeoutsAgainstAnswers: when the time-out and the answer of a holder come together, it gets
// one of the two and leaves no token for the ticket's next use.
func TestTimeoutsAgainstAnswers(t *testing.T) {
	r := newRig(t, 16, 1)
	r.run()
	timeouts := 0
	for i := range 5000 {
		ticket := r.submit(newOrder(1, matcher.Buy, 1, px, 0))
		err := ErrTimeout
		for err == ErrTimeout {
			err = ticket.Wait(time.Duration(i%200) * 100)
			if err == ErrTimeout {
				timeouts++
			}
		}
		must.OK(t, err)
		if a := ticket.Answer(0); a == nil || a.InputSeq != uint64(i+1) {
			t.Fatalf("answer %d: %+v", i, a)
		}
		for len(ticket.wake) > 0 {
			if <-ticket.wake == ended {
				t.Fatalf("use %d has left a token behind", i)
			}
			ticket.alarm.nudged.Store(false)
		}
		ticket.Release()
	}
	t.Logf("%d times the time was up first", timeouts)
}

// TestASidecarThatIsToEndWaitsForNoMajority: an answer that does not come keeps a stop for a second
// at most. One that comes within that is taken. The clock is synctest's.
func TestASidecarThatIsToEndWaitsForNoMajority(t *testing.T) {
	const life = time.Hour + answerWait/4
	for _, comes := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, 16, 4)
			ctx, cancel := context.WithTimeout(t.Context(), life)
			defer cancel()
			if comes {
				time.AfterFunc(life+answerWait/4, func() { r.step(1); r.durable() })
			}
			begun, checked := time.Now(), 0
			err := SubmitUntil(ctx, r.desk, 1, func(_ int, c *matcher.Command) error {
				*c = newOrder(1, matcher.Buy, 1, px, 0)
				return nil
			}, func(*Answer) error { checked++; return nil })
			if took := time.Since(begun); took < life || took > life+answerWait {
				t.Errorf("the answer comes %v: it has taken %s", comes, took)
			}
			if comes && (err != nil || checked != 1) ||
				!comes && (!errors.Is(err, ErrTimeout) || !errors.Is(err, context.DeadlineExceeded)) {
				t.Errorf("the answer comes %v: %v, %d checked", comes, err, checked)
			}
		})
	}
}
