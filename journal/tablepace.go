package journal

import (
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// tablePace keeps the store's tables from taking the disk away from its log and from answers. A
// table grows twice as fast as the log, and a little more: so a memtable is on disk before the next
// one is full, and no faster than that needs.
type tablePace struct {
	logged atomic.Int64 // bytes of the store's logs
	off    atomic.Bool  // tables do not wait: the journal opens or closes
}

const (
	// paceLogs is how many bytes a table may grow for a byte of log.
	paceLogs = 2
	// paceFloor is what a table may grow in a second without any log.
	paceFloor = 32 << 20
	// paceStep is the longest pause of a table.
	paceStep = 2 * time.Millisecond
	// beginBytes is how much of a log is given to the disk at once, before a sync waits for it.
	beginBytes = 128 << 10
)

// pacedFile is one table while it is written. Only one goroutine of the store writes it, and only
// that goroutine waits.
type pacedFile struct {
	vfs.File
	pace *tablePace
	// When the writing of it began, and pace.logged at that time.
	begun   time.Time
	logged  int64
	written int64
}

func (p *tablePace) file(f vfs.File) vfs.File {
	return &pacedFile{File: f, pace: p, begun: time.Now(), logged: p.logged.Load()}
}

func (f *pacedFile) Write(p []byte) (int, error) {
	f.wait()
	n, err := f.File.Write(p)
	f.written += int64(n)
	return n, err
}

// wait pauses while the table is ahead of its pace.
func (f *pacedFile) wait() {
	for !f.pace.off.Load() {
		pause := f.ahead() - time.Since(f.begun)
		if pause <= 0 {
			return
		}
		time.Sleep(min(pause, paceStep))
	}
}

// ahead is how old the table should be for its size: what it has beyond paceLogs times the log that
// was written meanwhile, at paceFloor a second.
func (f *pacedFile) ahead() time.Duration {
	bytes := f.written - paceLogs*(f.pace.logged.Load()-f.logged)
	return time.Duration(max(bytes, 0)) * time.Second / paceFloor
}
