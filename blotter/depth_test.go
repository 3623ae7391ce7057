package blotter

import (
	"errors"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"posttrade/matcher"
)

// later is far longer than any test takes: it only ends a broken test.
const later = time.Minute

// observer does what a recorder does with the views: it observes events when there are any, flushes
// after each batch, and otherwise naps until SetWake's function ends the nap.
type observer struct {
	views   *Views
	batches chan []matcher.Event
	wake    chan struct{}
	done    chan struct{}
}

func startObserver(t *testing.T, v *Views) *observer {
	o := &observer{
		views: v, batches: make(chan []matcher.Event), wake: make(chan struct{}, 1),
		done: make(chan struct{}),
	}
	v.SetWake(func() {
		select {
		case o.wake <- struct{}{}:
		default:
		}
	})
	go func() {
		defer close(o.done)
		for {
			for v.Flush() {
			}
			select {
			case events, more := <-o.batches:
				if !more {
					return
				}
				observe(v, events)
			case <-o.wake:
			}
		}
	}()
	t.Cleanup(func() { <-o.done })
	return o
}

// copyDepth is what Depth must return, read by the observer's goroutine between two commands.
func (v *Views) copyDepth(security uint32, levels int) Depth {
	d := Depth{Bids: make([]Level, 0, levels), Asks: make([]Level, 0, levels)}
	v.fillDepth(security, &d)
	return d
}

func TestDepthIsAnsweredByAnIdleObserver(t *testing.T) {
	g := smallGenesis()
	s, v := newSource(t, g, 31), newTestViews(t, g)
	for range 3000 {
		observe(v, s.step())
	}
	want := v.copyDepth(1, 3)
	for len(want.Bids) < 3 { // until the book is deep enough
		observe(v, s.step())
		want = v.copyDepth(1, 3)
	}
	if want.Sequence != v.Applied() {
		t.Fatalf("%+v", want)
	}
	o := startObserver(t, v)
	defer close(o.batches)
	for range 100 {
		got, err := ask(v, 3, later)
		if err != nil || got.Sequence != want.Sequence || !slices.Equal(got.Bids, want.Bids) ||
			!slices.Equal(got.Asks, want.Asks) {
			t.Fatalf("got %+v, %v, want %+v", got, err, want)
		}
	}
}

func TestDepthIsOfOneMoment(t *testing.T) {
	g := smallGenesis()
	s, v := newSource(t, g, 32), newTestViews(t, g)
	o := startObserver(t, v)
	// Every book after every command, stored before the events are sent.
	var truth sync.Map
	var stop atomic.Bool
	var answers atomic.Int64
	var wg sync.WaitGroup
	for reader := range uint32(3) {
		wg.Go(func() {
			security, before := reader%2+1, uint64(0)
			for !stop.Load() {
				d, err := v.Depth(security, 5, later)
				if err != nil {
					t.Error(err)
					return
				}
				if d.Sequence == 0 {
					continue
				}
				want, ok := truth.Load([2]uint64{d.Sequence, uint64(security)})
				if !ok || d.Sequence < before || !slices.Equal(want.(Depth).Bids, d.Bids) ||
					!slices.Equal(want.(Depth).Asks, d.Asks) {
					t.Errorf("security %d after %d: %+v, want %+v", security, before, d, want)
					return
				}
				before = d.Sequence
				answers.Add(1)
			}
		})
	}
	for sequence := uint64(1); sequence <= 3000 || answers.Load() < 500; sequence++ {
		events := slices.Clone(s.step())
		for security := uint32(1); security <= 2; security++ {
			truth.Store([2]uint64{sequence, uint64(security)}, engineDepth(s.engine, security, 5))
		}
		// a batch may end in the middle of a command
		if half := len(events) / 2; sequence%3 == 0 && half > 0 {
			o.batches <- events[:half]
			events = events[half:]
		}
		o.batches <- events
		if t.Failed() {
			break
		}
	}
	stop.Store(true)
	wg.Wait()
	close(o.batches)
}

func engineDepth(e *matcher.Engine, security uint32, levels int) (d Depth) {
	for side := range 2 {
		of := []*[]Level{&d.Bids, &d.Asks}[side]
		e.EachLevel(security, matcher.Side(side), func(px, qty int64, orders int) bool {
			*of = append(*of, Level{Px: px, Qty: qty, Orders: uint32(orders)})
			return len(*of) < levels
		})
	}
	return d
}

// ask is Depth for a reader that cannot copy the book itself.
func ask(v *Views, levels int, timeout time.Duration) (Depth, error) {
	return v.askDepth(1, Depth{Bids: make([]Level, 0, levels), Asks: make([]Level, 0, levels)},
		timeout)
}

func TestDepthWithoutObserverTimesOutAndIsBounded(t *testing.T) {
	v := newTestViews(t, smallGenesis())
	for range maxDepthRequests {
		if _, err := ask(v, 1, 0); !errors.Is(err, ErrTimeout) {
			t.Fatalf("%v, want %v", err, ErrTimeout)
		}
	}
	if _, err := ask(v, 1, later); !errors.Is(err, ErrBusy) {
		t.Fatalf("%v, want %v", err, ErrBusy)
	}
	for v.Flush() {
	}
	if n := v.asking.Load(); n != 0 {
		t.Errorf("%d requests are left", n)
	}
	if _, err := ask(v, 1, 0); !errors.Is(err, ErrTimeout) {
		t.Errorf("after a flush: %v, want %v", err, ErrTimeout)
	}
}

func TestDepthOfUnknownSecurityIsRefused(t *testing.T) {
	v := newTestViews(t, smallGenesis())
	for _, security := range []uint32{0, 4, 7, math.MaxUint32} {
		if _, err := v.Depth(security, 1, later); !errors.Is(err, ErrSecurity) {
			t.Errorf("security %d: %v", security, err)
		}
	}
}

func TestDepthLevelsAreClamped(t *testing.T) {
	v := newTestViews(t, smallGenesis())
	for px := range int64(MaxDepth + 5) {
		// In Go memory, because these are more levels than the limits allow.
		v.levels.all = append(v.levels.all, level{})
		v.levels.branches.all = append(v.levels.branches.all, branch{})
		v.levels.add(1, matcher.Buy, px+1, 1)
	}
	for levels, want := range map[int]int{math.MinInt: 1, 0: 1, 1: 1, 2: 2, MaxDepth: MaxDepth,
		math.MaxInt: MaxDepth} {
		d, err := v.Depth(1, levels, 0)
		if err != nil || cap(d.Bids) != want || cap(d.Asks) != want {
			t.Errorf("levels %d: room for %d and %d, %v", levels, cap(d.Bids), cap(d.Asks), err)
		}
		d = v.copyDepth(1, want)
		if len(d.Bids) != want || d.Bids[0].Px != MaxDepth+5 || len(d.Asks) != 0 {
			t.Errorf("%d levels: %d bids, %d asks", want, len(d.Bids), len(d.Asks))
		}
	}
}

func TestFlushWaitsForTheEndOfACommandAndKeepsItsBudget(t *testing.T) {
	v := newTestViews(t, smallGenesis())
	if v.Flush() {
		t.Error("more to do when no reader asks")
	}
	// Requests that have timed out are answered all the same, oldest first.
	for range 3 {
		ask(v, 1, 0)
	}
	ev := matcher.Event{Kind: matcher.EventApplied, Flags: matcher.EventFirst, InputSeq: 1}
	*ev.Cmd() = matcher.NewCommand(matcher.SnapshotMark)
	v.Observe(&ev, nil)
	if v.Flush() || v.asking.Load() != 3 {
		t.Error("answered, or to be called again, in the middle of a command")
	}
	end := matcher.Event{Kind: matcher.EventApplied, Flags: matcher.EventLast, InputSeq: 1}
	v.Observe(&end, nil)
	if v.Flush() || v.asking.Load() != 0 {
		t.Error("not answered at the end of the command")
	}
	const asked = 200
	for px := range int64(60) {
		v.levels.add(1, matcher.Buy, px+1, 1)
	}
	for range asked {
		ask(v, MaxDepth, 0)
	}
	flushes := 1
	for v.Flush() {
		flushes++
	}
	if want := asked * 61 / levelsPerFlush; flushes < want || flushes > want+2 {
		t.Errorf("%d flushes for %d levels, want about %d", flushes, asked*61, want)
	}
}
