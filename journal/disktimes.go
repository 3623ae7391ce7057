package journal

import (
	"sync/atomic"
	"time"
)

// SlowDisk is how long a sync may be waited for before the disk counts as slow. A slow disk is a
// state to report; it does not poison.
const SlowDisk = time.Second

// DiskState is how a disk keeps up.
type DiskState struct {
	Waits time.Duration // age of the oldest wait for a sync; 0: nothing waits
	Last  time.Duration // what the last sync took
}

// Slow reports that callers wait for the disk longer than SlowDisk allows.
func (d DiskState) Slow() bool { return d.Waits >= SlowDisk }

// or returns the worse of two states.
func (d DiskState) or(e DiskState) DiskState {
	return DiskState{max(d.Waits, e.Waits), max(d.Last, e.Last)}
}

// DiskTimes measures syncs that one goroutine makes at a time. Any goroutine reads.
type DiskTimes struct {
	begun atomic.Int64 // since started; 0: none is under way
	last  atomic.Int64
}

// started is what times are counted from: unlike the wall clock, it cannot be set.
var started = time.Now()

// Begin records the moment since which a sync is waited for.
func (d *DiskTimes) Begin(at time.Time) { d.begun.Store(max(int64(at.Sub(started)), 1)) }

// End records that the sync has returned, also when it has failed. The time is counted from the
// moment that Begin was given, which may be before the call.
func (d *DiskTimes) End() {
	d.last.Store(int64(time.Since(started)) - d.begun.Swap(0))
}

// State is the state of the disk now. Two loads and a clock; any goroutine.
func (d *DiskTimes) State() (s DiskState) {
	if begun := d.begun.Load(); begun != 0 {
		s.Waits = max(time.Since(started)-time.Duration(begun), 1)
	}
	s.Last = time.Duration(d.last.Load())
	return s
}

// Disk is the state of the journal's disk: that of the commits, of the syncs of the store's log,
// and of the tail's writes.
func (j *Journal) Disk() DiskState {
	s := j.committing.State().or(j.flushing.State())
	for i := range j.logging {
		s = s.or(j.logging[i].State())
	}
	return s
}
