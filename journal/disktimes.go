package journal

import (
	"sync/atomic"
	"time"
)

// SlowDisk is how long what waits for a disk may wait before the disk counts as slow.
const SlowDisk = time.Second

// DiskState is how a disk keeps up.
type DiskState struct {
	Waits time.Duration // age of the oldest that waits for a sync; 0: nothing waits
	Last  time.Duration // what the last sync took
}

// Slow reports that callers wait longer for the disk than they may be kept.
func (d DiskState) Slow() bool { return d.Waits >= SlowDisk }

// or is the worse of two.
func (d DiskState) or(e DiskState) DiskState {
	return DiskState{max(d.Waits, e.Waits), max(d.Last, e.Last)}
}

// DiskTimes measures syncs that one goroutine makes at a time. Any goroutine reads.
type DiskTimes struct {
	begun atomic.Int64 // since started; 0: none is under way
	last  atomic.Int64
}

// started is what times are counted from: no clock that may be set.
var started = time.Now()

// Begin says that a sync is waited for since a moment.
func (d *DiskTimes) Begin(at time.Time) { d.begun.Store(max(int64(at.Sub(started)), 1)) }

// End says that it has returned.
func (d *DiskTimes) End() {
	d.last.Store(int64(time.Since(started)) - d.begun.Swap(0))
}

// State is the disk as it is now.
func (d *DiskTimes) State() (s DiskState) {
	if begun := d.begun.Load(); begun != 0 {
		s.Waits = max(time.Since(started)-time.Duration(begun), 1)
	}
	s.Last = time.Duration(d.last.Load())
	return s
}

// Disk is how the journal's disk keeps up: in mode "fsync" with the commits, in mode "os"
// with the syncs of the log.
func (j *Journal) Disk() DiskState { return j.committing.State().or(j.flushing.State()) }
