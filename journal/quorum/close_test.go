package quorum

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// TestWhatIsUnderWayAtTheEndIsSeenOut closes a leader with a slow disk, so that entries have piled
// up before the library has looked at them. The library never answers an entry that it has not
// looked at before it is shut down, and a goroutine that waits for the answer would never end.
func TestWhatIsUnderWayAtTheEndIsSeenOut(t *testing.T) {
	c := newCluster(t, 3)
	var held atomic.Pointer[chan struct{}]
	for _, m := range c.members {
		m.o.FS = errorfs.Wrap(vfs.Default, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if gate := held.Load(); gate != nil && (op.Kind == errorfs.OpFileSync ||
				op.Kind == errorfs.OpFileSyncData) {
				<-*gate
			}
			return nil
		}))
	}
	c.start()
	c.book(1, "a")
	leader := c.leader()
	leader.node.log.Lead(func() bool { return false }) // or the library looks at all of them
	gate := make(chan struct{})
	held.Store(&gate)
	for i := range 40 {
		ref := leader.submit(1, "")
		leader.disk.until(t, fmt.Sprintf("entry %d to be under way", i),
			func() bool { return leader.disk.gathered == ref })
	}
	context.AfterFunc(leader.node.ctx, func() {
		held.Store(nil)
		close(gate)
	})
	leader.stop()
}
