package quorum

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"posttrade/matcher"
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

// stableMemory is a host whose journal is always on stable storage.
type stableMemory struct{ *memory }

func (stableMemory) WaitStable(context.Context, uint64) error { return nil }

// While a member ends, entries are passed over and the library counts them as applied. No record is
// made then: it would stand for commands that the journal does not have.
func TestNoRecordOfPassedOverEntries(t *testing.T) {
	c := newCluster(t, 1)
	c.start()
	c.book(3, "")
	n := c.leader().node
	n.host = stableMemory{c.leader().disk} // no entry is under way
	n.cancel()
	entry := appendCommands(nil, n.author+1, 1,
		[]matcher.Command{matcher.NewCommand(matcher.OrderNew)}, nil,
		func(uint64) []byte { return nil })
	if err := n.raft.Apply(entry, 0).Error(); err != nil {
		t.Fatal(err)
	}
	if err := n.Compact(keptBytes); err == nil || !strings.Contains(err.Error(), errEnded.Error()) {
		t.Errorf("compacted: %v", err)
	}
	if r, err := n.snapshots.newest(); err != nil || r.Index != 0 {
		t.Errorf("on record are %d commands up to entry %d, %v", r.Sequence, r.Index, err)
	}
	if head := c.members[0].disk.Head(); head != 3 {
		t.Errorf("%d commands were applied, want 3", head)
	}
}
