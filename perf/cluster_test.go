//go:build linux

package perf

import (
	"testing"
	"time"

	"posttrade/journal"
)

// A thread of a lower priority counts in all of the time, and not in that of the path.
func TestCPUOfLeavesThreadsOfALowerPriorityOutOfThePath(t *testing.T) {
	const burnt, n = 100 * time.Millisecond, 1000
	busy, over, ended := make(chan struct{}), make(chan struct{}), make(chan error)
	used, err := cpuOf(n, func() error {
		go func() {
			ended <- journal.Politely(journal.Bulk, func() error {
				for before := ownPoliteCPU(); ownPoliteCPU().since(before) < burnt; {
				}
				close(busy)
				<-over // a thread that has ended would count as the path's
				return nil
			})
		}()
		<-busy
		return nil
	})
	close(over)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if polite := used.all - used.path; polite < microseconds(burnt)/n {
		t.Errorf("%.4g of %.4g us a command are on threads of a lower priority, want %v in all",
			polite, used.all, burnt)
	}
}
