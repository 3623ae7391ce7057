package session

import (
	"fmt"
	"testing"

	"posttrade/matcher"
	"posttrade/matcher/session/client"
	"posttrade/matcher/session/wire"
	"posttrade/ring"
)

// lentPoller is a poller that no goroutine runs, with one session and n of its commands, decided
// and durable.
func lentPoller(t *testing.T, n int) (*Server, *session) {
	t.Helper()
	r := newRig(t)
	s, one := idleServer(t, wire.Orders, r.o)
	s.poll.sessions = []*session{one}
	r.hold() // otherwise the turn that takes a command may also answer it
	for range n {
		one.commands.Claim().Command = order()
		one.commands.Publish()
		s.poll.turn()
	}
	r.letGo()
	until(t, "durable", func() bool { return r.durable.Load() == uint64(n) && one.answerable() })
	return s, one
}

// The goroutine that wakes a resting poller writes the answers if they are few. Many answers, and
// those of a working poller, are left to the poller.
func TestWakeAnswersForAPollerThatRests(t *testing.T) {
	for _, tt := range []struct {
		name  string
		rests bool
		taken bool
		few   bool
		after ring.BorrowResult // the result of the next Borrow
		want  uint64            // answers
	}{
		{"it rests", true, false, true, ring.Taken, 1},
		{"it works", false, false, true, ring.Kept, 0},
		{"another stage answers", true, true, true, ring.Lent, 0},
		{"too many", true, false, false, ring.Taken, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, one := lentPoller(t, 1)
			if !tt.few {
				one.inFlight += answerFew
			}
			s.park.waiter.Arm(&s.park.waiter.Own)
			if tt.rests {
				s.park.lease.Lend()
			}
			if tt.taken {
				s.park.lease.Borrow()
			}
			s.Wake()
			if !tt.few {
				one.inFlight -= answerFew
			}
			m := s.Metrics()
			if m.Answers[wire.Decided] != tt.want || m.Times.Count() != tt.want ||
				one.inFlight != 1-int(tt.want) {
				t.Errorf("metrics %+v", m)
			}
			if got := s.park.lease.Borrow(); got != tt.after {
				t.Errorf("a loan is answered %d, want %d", got, tt.after)
			}
			if woken := !s.park.waiter.Own.Parked(); woken != (tt.want == 0) {
				t.Errorf("the poller is woken: %v", woken)
			}
		})
	}
}

// mostRescues is how many sleeps may run out although there is work: a machine that stops a thread
// between a write and its wake-up lets one run out. A wake-up that is lost shows as hundreds.
const mostRescues = 2

// Every command of a client is answered, while the poller alternately rests and works under a
// committer that answers for it, and while the poller decides its commands itself for a resting
// matcher. No command waits for the end of a sleep.
func TestAnswersFromBothSides(t *testing.T) {
	for _, drives := range []bool{false, true} {
		for _, idle := range []ring.Strategy{ring.Adaptive, ring.Park, ring.Yield} {
			t.Run(fmt.Sprintf("%s/drives=%t", idle, drives), func(t *testing.T) {
				driven := 0
				r := newRig(t, func(r *rig) {
					r.o.Idle = idle
					if drives {
						r.desk.Drives(func() { driven++; r.stage.Drive() })
					}
				})
				c := r.dial("", client.Options{})
				for _, window := range []int{1, 7, 200} {
					l := volley{Count: 2_000, Window: window, Write: func(c *client.Client, i int) error {
						return c.Order(uint64(i),
							&client.NewOrder{Account: 1 + uint32(i%2), Security: aaa, Side: matcher.Side(i % 2), Qty: 1,
								LimitPx: 100_000_000}, "")
					}}
					if res, err := l.run(c); err != nil || res.Codes[wire.Decided] != 2_000 || res.Fills < 1_000 {
						t.Fatalf("window %d: %+v, %v", window, res, err)
					}
				}
				if got := r.server.Metrics(); got.Rescues > mostRescues {
					t.Errorf("%d rescues in %d sleeps", got.Rescues, got.Sleeps)
				}
				r.server.Close() // the poller has ended: its counters can be read
				<-r.server.over
				if drives != (driven > 0) {
					t.Errorf("the poller has driven %d times", driven)
				}
			})
		}
	}
}
