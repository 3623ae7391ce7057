package load

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"posttrade/ring/must"
)

// simulated is a clock that moves only in naps.
type simulated struct{ now time.Duration }

func (s *simulated) Now() time.Duration { return s.now }
func (s *simulated) Nap()               { s.now += 10 * time.Microsecond }

// server answers a request a fixed time after it was sent, and stalls once for a while.
type server struct {
	clock            *simulated
	takes            time.Duration
	stallAt, stalled time.Duration
	refuses          bool // true: it takes no request during the stall; false: it only answers late
	room             int  // requests at once; 0: any
	queue            []pending
	first            int
	sendErr, pollErr error
	answerTwice      bool
	silent           bool
}

type pending struct {
	n  int
	at time.Duration
}

func (s *server) stalling() bool {
	return s.clock.now >= s.stallAt && s.clock.now < s.stallAt+s.stalled
}

func (s *server) Send(n int) (bool, error) {
	if s.sendErr != nil {
		return false, s.sendErr
	}
	if s.refuses && s.stalling() || s.room > 0 && len(s.queue)-s.first == s.room {
		return false, nil
	}
	at := s.clock.now + s.takes
	if !s.refuses && at >= s.stallAt && at < s.stallAt+s.stalled {
		at = s.stallAt + s.stalled
	}
	s.queue = append(s.queue, pending{n, at})
	return true, nil
}

func (s *server) Poll(answered func(int, time.Duration)) error {
	if s.silent {
		return nil
	}
	for s.first < len(s.queue) && s.queue[s.first].at <= s.clock.now {
		answered(s.queue[s.first].n, s.queue[s.first].at)
		if s.answerTwice {
			answered(s.queue[s.first].n, s.queue[s.first].at)
		}
		s.first++
	}
	return s.pollErr
}

func constantOf(t *testing.T, perSecond float64) Arrivals {
	t.Helper()
	return must.Get(Constant(perSecond))(t)
}

// TestAStallIsChargedToEveryRequestThatWasDueInIt is the purpose of this package: a thousand
// requests a second, ten seconds, and a server that stalls for one of them. A tenth of the requests
// is due in the stall, and waits for half of it on average.
func TestAStallIsChargedToEveryRequestThatWasDueInIt(t *testing.T) {
	for name, refuses := range map[string]bool{"answers come late": false,
		"requests are not taken": true} {
		t.Run(name, func(t *testing.T) {
			clock := &simulated{}
			s := &server{clock: clock, takes: 100 * time.Microsecond, stallAt: 5 * time.Second,
				stalled: time.Second, refuses: refuses}
			r, err := Run(s, Options{Arrivals: constantOf(t, 1000), For: 10 * time.Second, Clock: clock})
			must.OK(t, err)
			if r.Requests != 10_000 || r.Latency.Count() != 10_000 {
				t.Fatalf("%d requests, %d timed, want 10000", r.Requests, r.Latency.Count())
			}
			for _, tt := range []struct {
				percent float64
				want    time.Duration
			}{{50, 100 * time.Microsecond}, {89.9, 100 * time.Microsecond}, {95, 500 * time.Millisecond},
				{99, 900 * time.Millisecond}, {100, time.Second}} {
				got := r.Latency.At(tt.percent)
				if math.Abs(float64(got-tt.want)) > 0.005*float64(tt.want)+30_000 {
					t.Errorf("p%g is %v, want %v", tt.percent, got, tt.want)
				}
			}
			if late := r.Behind > 990*time.Millisecond; late != refuses {
				t.Errorf("sent %v late", r.Behind)
			}
			if rate := r.PerSecond(); math.Abs(rate-1000) > 1 {
				t.Errorf("%v answers a second", rate)
			}
		})
	}
}

func TestIntervalsAreByTheTimeOfTheAnswer(t *testing.T) {
	clock := &simulated{now: 42 * time.Second} // a clock that did not start with the run
	s := &server{clock: clock, takes: time.Millisecond, stallAt: 43 * time.Second,
		stalled: time.Second}
	r := must.Get(Run(s, Options{Arrivals: constantOf(t, 100), For: 3 * time.Second, Clock: clock,
		Every: time.Second}))(t)
	var total int
	for i, interval := range r.Intervals {
		if interval.From != time.Duration(i)*time.Second || interval.Length != time.Second {
			t.Errorf("interval %d: %v for %v", i, interval.From, interval.Length)
		}
		total += int(interval.Recorder.Count())
	}
	if counts := [3]int64{r.Intervals[0].Recorder.Count(), r.Intervals[1].Recorder.Count(),
		r.Intervals[2].Recorder.Count()}; counts != [3]int64{100, 0, 200} {
		t.Errorf("answers by second %v", counts)
	}
	if total != 300 || r.Took < 2900*time.Millisecond || r.Took > 3100*time.Millisecond {
		t.Errorf("%d answers in %v", total, r.Took)
	}
}

func TestMoreThanCanBeUnderWayWaitsAndIsCharged(t *testing.T) {
	clock := &simulated{}
	s := &server{clock: clock, takes: 200 * time.Millisecond}
	const rate, seconds = 1_000_000, 1
	r, err := Run(s, Options{Arrivals: constantOf(t, rate), For: seconds * time.Second, Clock: clock})
	must.OK(t, err)
	if r.Requests != rate*seconds {
		t.Errorf("%d requests, want %d", r.Requests, rate*seconds)
	}
	// At most MaxOutstanding every 200 ms: the last answer comes after three times as long.
	ends := time.Duration(rate/MaxOutstanding+1) * 200 * time.Millisecond
	if r.Took < ends-200*time.Millisecond || r.Latency.Max() < ends-time.Second-200*time.Millisecond {
		t.Errorf("took %v, the longest %v", r.Took, r.Latency.Max())
	}
}

// last answers one request after all others.
type last struct {
	server
	held int
}

func (l *last) Poll(answered func(int, time.Duration)) error {
	err := l.server.Poll(func(n int, at time.Duration) {
		if n != l.held {
			answered(n, at)
		}
	})
	if l.clock.now >= 2*time.Second && l.held >= 0 {
		answered(l.held, l.clock.now)
		l.held = -1
	}
	return err
}

func TestARequestThatIsAnsweredLastKeepsItsDueTime(t *testing.T) {
	clock := &simulated{}
	l := &last{server: server{clock: clock, takes: 10 * time.Microsecond}, held: 7}
	r := must.Get(Run(l, Options{Arrivals: constantOf(t, 100_000), For: time.Second, Clock: clock}))(t)
	if got, want := r.Latency.Max(), 2*time.Second; got < want-200*time.Millisecond ||
		r.Latency.Count() != 100_000 {
		t.Errorf("the longest of %d is %v, want about %v", r.Latency.Count(), got, want)
	}
}

func TestWhatGoesWrongEndsTheRun(t *testing.T) {
	cause := errors.New("planted")
	for name, tt := range map[string]struct {
		server server
		want   error
		text   string
	}{
		"a send that fails": {server{sendErr: cause}, cause, "send request=0"},
		"a poll that fails": {server{pollErr: cause}, cause, "poll"},
		"an answer twice": {server{answerTwice: true}, nil,
			"an answer to request 0, which is not under way"},
		"no answers": {server{silent: true}, ErrUnanswered, "wait for answers: 100 of 100"},
	} {
		t.Run(name, func(t *testing.T) {
			clock := &simulated{}
			tt.server.clock = clock
			_, err := Run(&tt.server, Options{Arrivals: constantOf(t, 100), For: time.Second, Clock: clock,
				Patience: time.Second})
			if err == nil || tt.want != nil && !errors.Is(err, tt.want) ||
				!strings.Contains(err.Error(), tt.text) {
				t.Errorf("got %v, want %v and %q", err, tt.want, tt.text)
			}
			if name == "an answer twice" {
				return // Saturate counts answers, it does not use their numbers
			}
			clock.now = 0
			tt.server.queue, tt.server.first = nil, 0
			if _, err := Saturate(&tt.server, 10, time.Second, clock); !errors.Is(err, tt.want) {
				t.Errorf("saturate: got %v, want %v", err, tt.want)
			}
		})
	}
}

func TestOptionsThatMeanNothingAreErrors(t *testing.T) {
	s := &server{clock: &simulated{}}
	for _, o := range []Options{{For: time.Second}, {Arrivals: constantOf(t, 1)},
		{Arrivals: constantOf(t, 1), For: -1}} {
		if _, err := Run(s, o); err == nil {
			t.Errorf("%+v", o)
		}
	}
	if _, err := Saturate(s, 0, time.Second, nil); err == nil {
		t.Error("no window")
	}
	if _, err := Saturate(s, 1, 0, nil); err == nil {
		t.Error("no time")
	}
	if r := (&Result{}); r.PerSecond() != 0 {
		t.Errorf("%v a second of nothing", r.PerSecond())
	}
}

func TestSaturateFindsTheRate(t *testing.T) {
	for _, tt := range []struct {
		window, room int
		want         float64
	}{{10, 0, 10_000}, {100, 0, 100_000}, {100, 20, 20_000}} {
		clock := &simulated{}
		s := &server{clock: clock, takes: time.Millisecond, room: tt.room}
		got, err := Saturate(s, tt.window, time.Second, clock)
		if err != nil || math.Abs(got-tt.want) > 0.03*tt.want {
			t.Errorf("window %d, room %d: %v a second, %v; want %v", tt.window, tt.room, got, err, tt.want)
		}
	}
}

func TestSendingAndAnsweringDoNotAllocate(t *testing.T) {
	clock := &simulated{}
	s := &server{clock: clock, queue: make([]pending, 0, 1<<16)}
	r := newRun(s, Options{Arrivals: constantOf(t, 10_000), For: time.Hour, Clock: clock,
		Every: time.Hour})
	answered := r.answered
	step := func() {
		clock.now += 100 * time.Microsecond
		must.Get(r.sendDue())(t)
		must.OK(t, s.Poll(answered))
	}
	step() // makes the recorder of the interval
	if n := testing.AllocsPerRun(1000, step); n != 0 || r.open != 0 || r.sent < 1000 {
		t.Errorf("%v allocations a request, %d sent, %d open", n, r.sent, r.open)
	}
}

func TestTheMachinesClockMoves(t *testing.T) {
	c := NewClock()
	before := c.Now()
	c.Nap()
	if after := c.Now(); after <= before {
		t.Errorf("%v, then %v", before, after)
	}
	s := &server{clock: &simulated{}}
	s.clock.now = time.Hour // everything is answered at once
	if r, err := Run(s, Options{Arrivals: constantOf(t, 1e6), For: time.Millisecond}); err != nil ||
		r.Requests != 1000 {
		t.Errorf("%+v, %v", r, err)
	}
	if rate, err := Saturate(s, 1, time.Millisecond, nil); err != nil || rate <= 0 {
		t.Errorf("%v, %v", rate, err)
	}
}
