package httpapi

import (
	"sync"
	"time"
)

// The shares of http.max-inflight that may wait for their X-Min-Sequence or X-Min-Version at one
// time, one in so many: reads that came without a token, and those of a caller that is known.
const (
	waitShare      = 32
	knownWaitShare = 8
)

// problemWaits is the answer to a read that would have to wait when no more may.
var problemWaits = problem{status: 503, code: CodeBusy,
	detail: "as many reads as may be wait for their " + headerMinSequence + ", " +
		headerMinVersion + " or position", notSequenced: true}

// waits bounds the reads of a service that wait for what is not there yet. Each of them is a
// request in flight: without the bound they would leave no room for orders. Reads without a token
// take no place from those of known callers.
type waits struct{ open, known chan struct{} }

func newWaits(maxInflight int) waits {
	return waits{open: make(chan struct{}, max(1, maxInflight/waitShare)),
		known: make(chan struct{}, max(1, maxInflight/knownWaitShare))}
}

// begin takes a place, which end gives back. It does not wait for one: problemWaits.
func (w *waits) begin(known bool) (end func(), p problem) {
	places := w.open
	if known {
		places = w.known
	}
	select {
	case places <- struct{}{}:
		return func() { <-places }, problem{}
	default:
		return nil, problemWaits
	}
}

// looks is for reads that wait for the same and would each make a query to look whether it is
// there: they share one look at a time. T is what a look sees.
type looks[T any] struct {
	mu    sync.Mutex
	under *look[T] // that waiting reads share; nil: none. Guarded by mu
}

// look is one look. saw and looked are set when done is closed; without looked it was given up.
type look[T any] struct {
	done   chan struct{}
	saw    T
	looked bool
}

// next is what the next look sees. The first read that asks waits for rowsLook and then calls see
// for all that have asked by then. What see began with may be older than a read that joined late.
//
// Problems are those of lookAgain.
func (l *looks[T]) next(s *service, late time.Time, see func() T) (saw T, p problem) {
	for time.Now().Before(late) {
		shared, mine := l.join()
		if mine {
			defer l.leave(shared) // also after a panic of see
			if p = s.lookAgain(late); p.status == 0 {
				shared.saw, shared.looked = see(), true
			}
			return shared.saw, p
		}
		select {
		case <-shared.done:
		case <-s.lasting.Done():
			return saw, problemStopping
		}
		if shared.looked {
			return shared.saw, problem{}
		}
	}
	return saw, problemNotYet
}

// join returns the look that is shared now. mine: the caller has begun it, and must leave it.
func (l *looks[T]) join() (shared *look[T], mine bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.under == nil {
		l.under, mine = &look[T]{done: make(chan struct{})}, true
	}
	return l.under, mine
}

// leave ends a look for all that share it.
func (l *looks[T]) leave(shared *look[T]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.under = nil
	close(shared.done)
}
