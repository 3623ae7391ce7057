package load

import (
	"errors"
	"fmt"
	"runtime"
	"time"

	"posttrade/app/latency"
)

// Target answers requests. None of its methods waits; one goroutine calls them. A target that waits
// for an answer in Send would close the loop, and its latencies would be those of a closed one.
type Target interface {
	// Send starts request n and reports true, or false when there is no room now: the caller then asks
	// again. Requests are numbered from 0 in the order in which they are due. An error ends the run.
	Send(n int) (bool, error)
	// Poll calls answered for every request that was answered since the last call, with the time of
	// the answer on the run's clock, in any order. It calls it once for each request that Send has
	// taken: a number that is not under way ends the run, because the target has then measured
	// something else.
	Poll(answered func(n int, at time.Duration)) error
}

// Options say what to send. Run changes nothing that the caller can see.
type Options struct {
	Arrivals Arrivals
	// For is how long requests come: those due before it are sent, even if late. It must be above 0.
	For time.Duration
	// Clock is the run's time; nil for the machine's. A target that stamps answers uses the same
	// clock.
	Clock Clock
	// Every is the length of an interval of Result; 0 for a second.
	Every time.Duration
	// Patience is how long the last answers may take; 0 for 30 s.
	Patience time.Duration
}

// defaultPatience is how long a target may give no answer while requests are in flight. It is long
// enough for a disk that stands still for seconds: such a stall is a result, not an error.
const defaultPatience = 30 * time.Second

// MaxOutstanding is the greatest number of requests in flight. Further requests wait, and their
// wait counts. It bounds the memory of a run whose target cannot follow: 8 bytes each.
const MaxOutstanding = 1 << 16

// burst is how many due requests are sent before Run polls for answers. With more, the answers of a
// target that is behind would be noticed late; with fewer, a generator that is behind would catch
// up slowly.
const burst = 64

// ErrUnanswered reports requests that got no answer in time: the target lost them, or it is slower
// than the patience allows. Test by errors.Is.
var ErrUnanswered = errors.New("requests without an answer")

// Result is the result of a run.
type Result struct {
	// Requests is the number of requests, each of which was sent and answered.
	Requests int
	// Took is from the start to the last answer. It is longer than Options.For when the target was
	// behind.
	Took time.Duration
	// Behind is the greatest delay of a send: the generator or the target could not keep to the rate
	// by so much. It is in the latencies.
	Behind time.Duration
	// Latency is the distribution of the times from when a request was due until its answer.
	Latency *latency.Summary
	// Intervals are the same, by the time of the answer, without gaps from the start on.
	Intervals []latency.Interval
}

// PerSecond is the rate of the answers, 0 without any. Below the rate that was asked for, the
// target was saturated, and the latencies depend on how long the run was.
func (r *Result) PerSecond() float64 {
	if r.Requests == 0 {
		return 0
	}
	return float64(r.Requests) / r.Took.Seconds()
}

// Run sends every request that is due within o.For and waits for the answers.
//
//   - It blocks, on the calling goroutine and a thread of its own, from the first request to the
//     last answer. With a busy clock it takes a core for all that time.
//   - Errors: bad options; the target's, wrapped; ErrUnanswered. A run that fails has no result.
//   - It allocates per interval, not per request (TestSendingAndAnsweringDoNotAllocate).
//
// An answer is as late as the next call of Poll, at most a burst of sends or a nap.
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

// newRun makes the run's memory before its time starts to matter: the first arrival is taken here.
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

// run is a run in progress. Times are since its start. Only the goroutine of Run uses it.
type run struct {
	o      Options
	target Target
	start  time.Duration
	// due has when the requests in flight were due, by number modulo MaxOutstanding; answeredAlready
	// for a free place. So an answer finds its request without a search, in any order.
	due []time.Duration
	// next is when the next request is due.
	next time.Duration
	// sent is the number of requests sent, and the next one's number; open is how many have no answer
	// yet.
	sent int
	open int
	// behind is the greatest delay of a send so far.
	behind time.Duration
	// last is the time of the last answer.
	last time.Duration
	// recorders has one for each interval, up to the last one with an answer.
	recorders []*latency.Recorder
	// stray is the number of an answer to a request that is not in flight, if strayed.
	stray   int
	strayed bool
}

func (r *run) now() time.Duration { return r.o.Clock.Now() - r.start }

// loop sends the due requests, polls for answers, and naps when there is neither. It polls before
// it sends, so that places of answered requests are free. The patience counts from the last answer,
// or from the end of the sending time, so that a long run of slow answers does not fail.
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

// sendDue sends due requests, one burst at most, and stops at the first one for which there is no
// room: the order of the requests is kept. A request that waits keeps the time at which it was due.
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

// answered records the time of a request since it was due. An answer to a request that is not under
// way is noted, and loop ends the run.
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

// result is called when every request has its answer. An interval without an answer has an empty
// recorder.
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
