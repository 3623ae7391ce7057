package perf

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// threadTimes is the processor time of threads, by their numbers.
type threadTimes map[string]time.Duration

// politeCPU is the processor time of the child's threads of a lower priority than
// usual: projection, reconciliation, snapshots, which get what the path of an order leaves over. One
// that has ended is not there any more, and what it used counts as the path's.
func (c *child) politeCPU() threadTimes {
	return readPolite(fmt.Sprintf("/proc/%d/task", c.cmd.Process.Pid))
}

// since is what the threads have used since an earlier look.
func (t threadTimes) since(earlier threadTimes) (sum time.Duration) {
	for thread, used := range t {
		sum += used - earlier[thread] // 0 for a new one
	}
	return sum
}

// readPolite reads a folder of threads as the kernel shows them.
func readPolite(dir string) threadTimes {
	times := threadTimes{}
	files, _ := filepath.Glob(filepath.Join(dir, "*", "stat")) // the pattern is well-formed
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // it has just ended
		}
		if used, nice, ok := parseThread(string(text)); ok && nice > 0 {
			times[filepath.Base(filepath.Dir(name))] = used
		}
	}
	return times
}

// parseThread reads the line that the kernel has about a thread.
func parseThread(stat string) (used time.Duration, nice int64, ok bool) {
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:]) // its name may hold anything
	const userTicks, systemTicks, niceness, ticksPerSecond = 11, 12, 16, 100
	if len(fields) <= niceness {
		return 0, 0, false
	}
	for _, field := range []int{userTicks, systemTicks} {
		ticks, err := strconv.ParseInt(fields[field], 10, 64)
		if err != nil {
			return 0, 0, false
		}
		used += time.Duration(ticks) * time.Second / ticksPerSecond
	}
	nice, err := strconv.ParseInt(fields[niceness], 10, 64)
	return used, nice, err == nil
}
