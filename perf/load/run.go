package load

import (
	"errors"
	"fmt"
	"runtime"
	"time"

	"posttrade/app/latency"
)

// Target answers requests. None of its methods waits; one goroutine calls them.
type Target interface {
	// Send starts request n and reports true, or false when there is no room now: the caller then asks
	// again. Requests are numbered from 0 in the order in which they are due.
	Send(n int) (bool, error)
	// Poll calls answered for every request that was answered since the last call, with the time of
	// the answer on the run's clock, in any order.
	Poll(answered func(n int, at time.Duration)) error
}

// Options say what to send.
type Options struct {
	Arrivals Arrivals
	For      time.Duration // requests due before this are sent, even if late
	Clock    Clock         // nil: the machine's; a target that stamps answers uses the same clock
	Every    time.Duration // length of an interval of Result; 0: a second
	Patience time.Duration // how long the last answers may take; 0: 30 s
}

// defaultPatience is how long a target may give no answer while requests are in flight.
const defaultPatience = 30 * time.Second

// MaxOutstanding is the greatest number of requests in flight. Further requests wait, and their
// wait counts.
const MaxOutstanding = 1 << 16

// burst is how many due requests are sent before Run polls for answers.
const burst = 64

// ErrUnanswered reports requests that got no answer in time.
var ErrUnanswered = errors.New("requests without an answer")

// Result is the result of a run.
type Result struct {
	Requests  int           // sent and answered
	Took      time.Duration // from the start to the last answer
	Behind    time.Duration // the greatest delay of a send
	Latency   *latency.Summary
	Intervals []latency.Interval // the same, by the time of the answer
}

// PerSecond is the rate of the answers, 0 without any.
func (r *Result) PerSecond() float64 {
	if r.Requests == 0 {
		return 0
	}
	return float64(r.Requests) / r.Took.Seconds()
}

// Run sends every request that is due within o.For and waits for the answers.
func Run(t Target, o Options) (*Result, error) {
	if o.Arrivals == nil || o.For <= 0 {
		return nil, fmt.Errorf("load: run for=%v: want arrivals and a time above 0", o.For)
	}
	if o.Clock == nil {
		o.Clock = NewClock()
	}
	if o.Every == 0 {
		o.Every = time.Second
	}
	if o.Patience == 0 {
		o.Patience = defaultPatience
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	r := newRun(t, o)
	if err := r.loop(); err != nil {
		return nil, err
	}
	return r.result(), nil
}

func newRun(t Target, o Options) *run {
	r := &run{o: o, target: t, start: o.Clock.Now(), due: make([]time.Duration, MaxOutstanding)}
	for i := range r.due {
		r.due[i] = answeredAlready
	}
	r.next = o.Arrivals.Next()
	return r
}

// answeredAlready marks a free place in run.due.
const answeredAlready = -1

// run is a run in progress. Times are since its start.
type run struct {
	o         Options
	target    Target
	start     time.Duration
	due       []time.Duration // of requests in flight, by number modulo MaxOutstanding
	next      time.Duration   // when the next request is due
	sent      int
	open      int
	behind    time.Duration
	last      time.Duration // time of the last answer
	recorders []*latency.Recorder
	stray     int // the number of an answer to a request that is not in flight
	strayed   bool
}

func (r *run) now() time.Duration { return r.o.Clock.Now() - r.start }

// loop sends the due requests, polls for answers, and naps when there is neither.
func (r *run) loop() error {
	answered := r.answered // made once: a method value allocates
	for {
		before := r.open
		if err := r.target.Poll(answered); err != nil {
			return fmt.Errorf("load: poll: %w", err)
		}
		if r.strayed {
			return fmt.Errorf("load: poll: an answer to request %d, which is not under way", r.stray)
		}
		progress := r.open < before
		sent, err := r.sendDue()
		if err != nil {
			return fmt.Errorf("load: send request=%d: %w", r.sent, err)
		}
		if r.next >= r.o.For {
			if r.open == 0 {
				return nil
			}
			if late := r.now() - max(r.last, r.o.For); late > r.o.Patience {
				return fmt.Errorf("load: wait for answers: %d of %d after %v: %w", r.open, r.sent, late,
					ErrUnanswered)
			}
		}
		if !progress && sent == 0 {
			r.o.Clock.Nap()
		}
	}
}

// sendDue sends due requests, one burst at most.
func (r *run) sendDue() (sent int, err error) {
	now := r.now()
	for sent < burst && r.next <= now && r.next < r.o.For {
		slot := r.sent % MaxOutstanding
		if r.due[slot] != answeredAlready { // the oldest request in flight still has this slot
			return sent, nil
		}
		ok, err := r.target.Send(r.sent)
		if err != nil || !ok {
			return sent, err
		}
		r.due[slot] = r.next
		r.behind = max(r.behind, now-r.next)
		r.sent++
		r.open++
		sent++
		r.next = r.o.Arrivals.Next()
	}
	return sent, nil
}

// answered records the time of a request since it was due.
func (r *run) answered(n int, at time.Duration) {
	at -= r.start
	slot := max(n, 0) % MaxOutstanding
	if n < 0 || n >= r.sent || n < r.sent-MaxOutstanding || r.due[slot] == answeredAlready {
		r.stray, r.strayed = n, true
		return
	}
	due := r.due[slot]
	r.due[slot] = answeredAlready
	r.open--
	r.last = max(r.last, at)
	interval := int(at / r.o.Every)
	for interval >= len(r.recorders) {
		r.recorders = append(r.recorders, latency.NewRecorder())
	}
	r.recorders[interval].Record(at - due)
}

func (r *run) result() *Result {
	out := &Result{Requests: r.sent, Took: r.last, Behind: r.behind,
		Latency: latency.Merge(r.recorders...)}
	for i, recorder := range r.recorders {
		from := time.Duration(i) * r.o.Every
		out.Intervals = append(out.Intervals, latency.Interval{From: from, Length: r.o.Every,
			Recorder: recorder})
	}
	return out
}

// Saturate keeps window requests in flight for d and returns the answers per second. At a higher
// rate an open loop would not end.
func Saturate(t Target, window int, d time.Duration, clock Clock) (perSecond float64, err error) {
	if window < 1 || d <= 0 {
		return 0, fmt.Errorf("load: saturate window=%d for=%v: want both above 0", window, d)
	}
	if clock == nil {
		clock = NewClock()
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	sent, open, start := 0, 0, clock.Now()
	answered := func(int, time.Duration) { open-- }
	last := start
	for {
		before := open
		if err := t.Poll(answered); err != nil {
			return 0, fmt.Errorf("load: saturate: poll: %w", err)
		}
		now := clock.Now()
		progress := open < before
		if progress {
			last = now
		}
		if now-start >= d && open == 0 {
			return float64(sent) / (now - start).Seconds(), nil
		}
		if now-last > defaultPatience {
			return 0, fmt.Errorf("load: saturate: %d of %d: %w", open, sent, ErrUnanswered)
		}
		for k := 0; k < burst && open < window && now-start < d; k++ {
			ok, err := t.Send(sent)
			if err != nil {
				return 0, fmt.Errorf("load: saturate: send request=%d: %w", sent, err)
			}
			if !ok {
				break
			}
			sent++
			open++
			progress = true
		}
		if !progress {
			clock.Nap()
		}
	}
}
