package matcher

import (
	"runtime"
	"sync/atomic"
	"testing"
	"unsafe"

	"posttrade/ring"
)

// quietly puts a command into the input ring without a wake.
func (p *pipeline) quietly(c Command) {
	p.t.Helper()
	lo, ok := p.in.ClaimN(1)
	if !ok {
		p.t.Fatal("the input ring is full")
	}
	*p.in.At(lo) = c
	p.in.PublishQuietly(lo, 1)
}

// resting is a pipeline with a stage that lends its engine: its thread sleeps for ever.
func resting(t *testing.T, inSlots, outSlots int) *pipeline {
	t.Helper()
	p := newPipeline(t, testGenesis(), inSlots, outSlots, ring.Park)
	p.stage.lease.Lend()
	return p
}

// parks makes the stage's thread announce its sleep. told reports whether the thread has been
// notified of work since.
func (p *pipeline) parks() (told func() bool) {
	const awake, parked = 0, 1
	word := (*atomic.Uint32)(unsafe.Pointer(p.in.Waiter())) // its first field
	word.Store(parked)
	return func() bool { return word.Swap(awake) != parked }
}

// A goroutine that brings work to a stage that rests does the work, and then drives the reader of
// the events.
func TestDriveDecidesOnTheCallersGoroutine(t *testing.T) {
	p := resting(t, 512, 1024)
	next := 0
	p.stage.DriveNext(func() { next++ })
	p.quietly(buy(1, 1, 1))
	p.stage.Drive()
	if p.stage.Applied() != 1 || p.out.Published() != 1 || next != 1 {
		t.Errorf("applied %d, published %d, driven on %d times, want 1 each", p.stage.Applied(),
			p.out.Published(), next)
	}
	p.stage.Drive()
	if next != 1 {
		t.Error("the recorder was driven for nothing")
	}
	for range drivenBatch + 1 { // two turns
		p.quietly(buy(1, 1, 1))
	}
	p.stage.Drive()
	if got := p.stage.Applied(); got != drivenBatch+2 || next != 3 {
		t.Errorf("applied %d, driven on %d times", got, next)
	}
}

// The driver leaves a flow to the stage's thread.
func TestDriverLeavesAFlowToTheThread(t *testing.T) {
	const all = drivenBatch*drivenTurns + 1
	p := resting(t, 512, 2048)
	for range all {
		p.quietly(buy(1, 1, 1))
	}
	told := p.parks()
	p.stage.Drive()
	if got := p.stage.Applied(); got != all-1 {
		t.Errorf("applied %d, want %d", got, all-1)
	}
	if !told() {
		t.Error("the thread is not told of what is left")
	}
	p.stage.lease.Regain()
	p.record(all)
	p.start() // the thread finds the rest without another publication
	<-p.read
	p.stop()
}

// A thread that works is notified, and a second driver does not wait for one that is at work.
func TestDriveLeavesTheStageToWhoHasIt(t *testing.T) {
	for _, tt := range []struct {
		name    string
		prepare func(*Stage)
		told    bool // the stage's thread
	}{
		{"its thread works", func(s *Stage) { s.lease.Regain() }, true},
		{"another one drives", func(s *Stage) { s.lease.Borrow() }, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := resting(t, 64, 64)
			tt.prepare(p.stage)
			p.quietly(buy(1, 1, 1))
			told := p.parks()
			p.stage.Drive()
			if got := p.stage.Applied(); got != 0 {
				t.Errorf("applied %d commands of another stage", got)
			}
			if got := told(); got != tt.told {
				t.Errorf("the thread is told: %v, want %v", got, tt.told)
			}
		})
	}
}

// Without much room for events a driver does not begin. A command that needs more room than there
// is wakes the reader's thread and waits for it.
func TestDriverAndAFullOutputRing(t *testing.T) {
	const slots, orders = 16, 60
	p := resting(t, 128, slots)
	p.stage.DriveNext(func() {})
	for range slots {
		p.quietly(buy(1, 1, 1))
		p.stage.Drive()
	}
	stuck := p.stage.Applied()
	if stuck == slots || stuck == 0 {
		t.Errorf("%d commands decided with %d slots that no stage reads", stuck, slots)
	}
	p.stage.lease.Regain()
	p.record(slots)
	p.start()
	<-p.read
	p.stop()

	p = resting(t, 128, slots)
	p.stage.DriveNext(func() {})
	for range orders {
		p.quietly(buy(1, 1, 1))
		p.stage.Drive()
		_, hi := p.out.Ready(slots)
		p.out.Release(hi)
	}
	p.quietly(control(RestrictionControl, 0, aaa, 1))
	driven := make(chan struct{})
	go func() { p.stage.Drive(); close(driven) }()
	for p.stage.Stalls() == 0 {
		runtime.Gosched()
	}
	p.read = make(chan struct{})
	p.record(orders + 1)
	<-driven
	<-p.read
	if got := len(p.said); got != orders+1 {
		t.Errorf("%d events of the restriction, want %d", got, orders+1)
	}
}
