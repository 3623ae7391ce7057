package quorum

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"posttrade/ring/must"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// Three members live in a process of their own, and the disk of one of them fails at one operation.
// diskFails gives the operation's number, and whether every later one fails as well.
const diskFails = "POSTTRADE_TEST_DISK_FAILS"

// failingGrace is how long a process runs after its failure, as the program does.
const failingGrace = 100 * time.Millisecond

// outlived is the exit code of a life that ended before the operation.
const outlived = 77

// TestMemberWithAFailingDiskEndsWithOneLine fails the i-th operation that changes the disk of the
// consensus state, in a process of its own. The process prints one line and exits with 1, whatever
// the consensus library does until then. While the others hold elections, the library has to write
// its term and its vote, and panics when a write returns an error.
func TestMemberWithAFailingDiskEndsWithOneLine(t *testing.T) {
	if plan := os.Getenv(diskFails); plan != "" {
		liveWithAFailingDisk(t, plan)
		os.Exit(outlived)
	}
	step := 9
	if testing.Short() {
		step = 40
	}
	for _, sticky := range []bool{false, true} {
		failed := 0
		for i := 0; endsWithOneLine(t, fmt.Sprintf("%d %v", i, sticky)); i += step {
			failed++
		}
		if failed < 3 {
			t.Errorf("sticky %v: only %d operations failed", sticky, failed)
		}
	}
}

// endsWithOneLine runs a life. It returns false when the life has ended before the operation.
func endsWithOneLine(t *testing.T, plan string) bool {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestMemberWithAFailingDiskEndsWithOneLine$")
	// The child exits before it removes its files.
	cmd.Env = append(os.Environ(), diskFails+"="+plan, "TMPDIR="+t.TempDir())
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	err := cmd.Run()
	var ended *exec.ExitError
	if !errors.As(err, &ended) {
		t.Fatalf("operation %s: %v\n%s", plan, err, &stderr)
	}
	lines := strings.Split(strings.TrimSuffix(stderr.String(), "\n"), "\n")
	switch {
	case ended.ExitCode() == outlived:
		return false
	case ended.ExitCode() != 1 || len(lines) != 1 || !strings.Contains(lines[0], syscall.EIO.Error()):
		t.Fatalf("operation %s: exit code %d, want 1 and one line:\n%s", plan, ended.ExitCode(), &stderr)
	}
	return true
}

// liveWithAFailingDisk runs such a life: an election, bookings, another leader, a compaction, and
// the end of the leader.
func liveWithAFailingDisk(t *testing.T, plan string) {
	var at int32
	var sticky bool
	must.Get(fmt.Sscan(plan, &at, &sticky))(t)
	c := newCluster(t, 3)
	for _, m := range c.members {
		m.heartbeat, m.o.FS, m.o.Dir = 40*time.Millisecond, vfs.NewMem(), "member"
	}
	var said sync.Once
	ends := func(err error) {
		said.Do(func() {
			fmt.Fprintf(os.Stderr, "stopping: %v\n", err)
			<-time.After(failingGrace)
			os.Exit(1)
		})
	}
	failing := c.members[0]
	failing.fatal = ends
	var n atomic.Int32
	failing.o.FS = errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if !isWrite(op) {
			return nil
		}
		if i := n.Add(1) - 1; i == at || sticky && i > at {
			return syscall.EIO
		}
		return nil
	}))
	for _, m := range c.members[1:] {
		m.start()
	}
	if err := failing.open(); err != nil {
		ends(err)
	}
	for turn := range 4 {
		c.book(5, strconv.Itoa(turn))
		_ = c.leader().node.raft.LeadershipTransfer().Error() // the leader at that moment
		_ = failing.node.Compact(0)                           // there may be nothing to compact
	}
	// a failure under way ends the process
	looks := time.NewTicker(failingGrace)
	defer looks.Stop()
	for i := int32(-1); i != n.Load(); <-looks.C {
		i = n.Load()
	}
}
