package blotter

import (
	"errors"
	"fmt"
	"time"
)

// Errors of Depth; test them by errors.Is. Only ErrSecurity is about the request; after the other
// two the caller may ask again.
var (
	ErrSecurity = errors.New("security is not registered")
	ErrTimeout  = errors.New("no answer in time")
	ErrBusy     = errors.New("too many requests")
)

const (
	// MaxDepth is the maximum number of levels per side of one request.
	MaxDepth = 1000
	// maxDepthRequests bounds the requests that wait at a time. levelsPerFlush bounds the levels that
	// the observer copies before it returns to the events: some ten microseconds.
	maxDepthRequests = 256
	levelsPerFlush   = 4096
)

// Level is the sum of the orders that rest at one price.
type Level struct {
	Px     int64 // x 1e6
	Qty    int64
	Orders uint32
}

// Depth is the book of one security, best levels first, as it was after the command of Sequence.
// Both sides are of that one moment.
type Depth struct {
	Sequence uint64
	Bids     []Level
	Asks     []Level
}

// depthRequest is one reader's request for depth. The reader makes it, and the observer fills it in
// and then closes done. A reader whose time is up leaves it to the observer and never looks at it
// again.
type depthRequest struct {
	security uint32
	depth    Depth // the slices have the requested capacity
	done     chan struct{}
	next     *depthRequest
}

// SetWake sets the function that makes a parked observer call Flush. Call it before the first
// reader calls Depth.
func (v *Views) SetWake(wake func()) { v.wake = wake }

// Depth returns up to levels (1 to MaxDepth) of each side of a security's book.
//
// The caller copies them while the observer continues (depth_read.go). Only when the copy fails
// does the caller ask the observer, which answers at the end of its batch, or at once when it is
// idle.
//
// Errors: ErrSecurity; for a caller that asks the observer also ErrBusy, when too many requests
// wait, and ErrTimeout, when no answer comes within the time-out because the observer has stopped.
// Any goroutine except the observer's.
func (v *Views) Depth(security uint32, levels int, timeout time.Duration) (Depth, error) {
	if !v.registered(security) {
		return Depth{}, fmt.Errorf("blotter: depth security=%d: %w", security, ErrSecurity)
	}
	levels = min(max(levels, 1), MaxDepth)
	d := Depth{Bids: make([]Level, 0, levels), Asks: make([]Level, 0, levels)}
	if v.readDepth(security, &d) {
		return d, nil
	}
	return v.askDepth(security, d, timeout)
}

// askDepth asks the observer to fill d in. Requests are a stack that readers push without a lock;
// the observer takes all of it at once.
func (v *Views) askDepth(security uint32, d Depth, timeout time.Duration) (Depth, error) {
	if v.asking.Add(1) > maxDepthRequests {
		v.asking.Add(-1)
		return Depth{}, fmt.Errorf("blotter: depth security=%d: %w", security, ErrBusy)
	}
	request := &depthRequest{security: security, depth: d, done: make(chan struct{})}
	for {
		request.next = v.asked.Load()
		if v.asked.CompareAndSwap(request.next, request) {
			break
		}
	}
	v.wake()
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-request.done:
		return request.depth, nil
	case <-timer.C:
		return Depth{}, fmt.Errorf("blotter: depth security=%d timeout=%v: %w", security, timeout,
			ErrTimeout)
	}
}

// answerDepth fills in requests, oldest first, until the budget of one flush is used up. Between
// two events of a command the book is incomplete. The remaining events are on their way, and the
// flush after their batch answers.
func (v *Views) answerDepth() (more bool) {
	if v.current != v.Applied() {
		return false
	}
	for budget := levelsPerFlush; budget > 0; {
		if v.backlog == nil {
			v.takeAsked()
		}
		request := v.backlog
		if request == nil {
			return false
		}
		v.backlog = request.next
		v.fillDepth(request.security, &request.depth)
		budget -= len(request.depth.Bids) + len(request.depth.Asks) + 1
		v.asking.Add(-1)
		close(request.done)
	}
	return v.backlog != nil || v.asked.Load() != nil
}

// takeAsked turns the stack of new requests into the backlog, oldest first.
func (v *Views) takeAsked() {
	for request := v.asked.Swap(nil); request != nil; {
		next := request.next
		request.next, v.backlog = v.backlog, request
		request = next
	}
}

// fillDepth fills the slices of a depth up to their capacity.
func (v *Views) fillDepth(security uint32, d *Depth) {
	d.Sequence = v.current
	d.Bids = v.levels.copySide(security<<1, d.Bids)
	d.Asks = v.levels.copySide(security<<1|1, d.Asks)
}

// copySide appends the best levels of a tree to dst until it is full.
func (l *levels) copySide(side uint32, dst []Level) []Level {
	l.branches.each(&l.trees[side], func(at uint32) bool {
		lv := &l.all[at]
		dst = append(dst, Level{Px: lv.px, Qty: lv.qty, Orders: lv.orders})
		return len(dst) < cap(dst)
	})
	return dst
}

// each calls f for the levels of a tree, best first, until f returns false.
func (m *branches) each(t *tree, f func(level uint32) bool) {
	if t.root != 0 {
		m.eachBelow(t.root, t.height, f)
	}
}

// eachBelow is each for a branch of the given height; 1 is a leaf. The recursion is as deep as the
// tree, at most maxHeight.
func (m *branches) eachBelow(at, height uint32, f func(level uint32) bool) bool {
	b := &m.all[at]
	for _, kid := range b.kids[:b.count] {
		if height == 1 && !f(kid) || height > 1 && !m.eachBelow(kid, height-1, f) {
			return false
		}
	}
	return true
}
