package desk

import (
	"errors"
	"testing"

	"posttrade/matcher"
	"posttrade/ring/must"
)

// The submitting goroutine decides and answers a few commands; many are left to the threads.
func TestSubmitDrives(t *testing.T) {
	for _, tt := range []struct {
		name   string
		n      int
		driven bool
	}{
		{"one", 1, true},
		{"a few", matcher.DriveAtMost, true},
		{"a flow", matcher.DriveAtMost + 1, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, 64, 4)
			drives := 0
			r.desk.Drives(func() {
				drives++
				r.step(64)
				r.durable()
			})
			ticket := r.acquire(tt.n)
			for i := range tt.n {
				*ticket.Command(i) = newOrder(1, matcher.Buy, 1, 1000, 0)
			}
			must.OK(t, ticket.Submit())
			if got := ticket.Ready(); got != tt.driven || drives > 1 {
				t.Errorf("answered: %v, driven %d times", got, drives)
			}
			if !tt.driven {
				if got := r.step(64); got != tt.n {
					t.Errorf("%d commands published, want %d", got, tt.n)
				}
				r.durable()
			}
			must.OK(t, ticket.Wait(0))
			ticket.Release()
		})
	}
}

// A command that cannot be handed in is refused before any goroutine drives.
func TestARefusedSubmitDoesNotDrive(t *testing.T) {
	drives := 0
	full := newRig(t, 2, 4)
	full.desk.Drives(func() { drives++ })
	must.OK(t, full.acquire(2).Submit())
	ticket := full.acquire(1)
	if err := ticket.Submit(); !errors.Is(err, ErrFull) {
		t.Errorf("full ring: %v", err)
	}
	ticket.Release()
	ticket = full.acquire(1)
	full.desk.Close()
	if err := ticket.Submit(); !errors.Is(err, ErrClosed) {
		t.Errorf("closed: %v", err)
	}
	ticket.Release()
	if drives != 1 {
		t.Errorf("driven %d times, want once, for what was handed in", drives)
	}
}
