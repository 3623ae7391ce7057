package perf

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// threadTimes is the processor time of threads, user and system, by the kernel's numbers as text.
// The kernel counts in hundredths of a second.
type threadTimes map[string]time.Duration

// politeCPU is the processor time of the child's threads with a lower priority than usual:
// projection, reconciliation, snapshots, which get the time that the path of an order leaves over.
// A thread that has ended is missing, and its time counts as the path's.
func (c *child) politeCPU() threadTimes {
	return readPolite(fmt.Sprintf("/proc/%d/task", c.cmd.Process.Pid))
}

// since is the time that the threads have used since an earlier look. A thread that was not in the
// earlier look counts with its whole time: a new one, and one of the usual priority that has become
// a polite one in between.
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
			continue // the thread has just ended
		}
		if used, nice, ok := parseThread(string(text)); ok && nice > 0 {
			times[filepath.Base(filepath.Dir(name))] = used
		}
	}
	return times
}

// parseThread reads the kernel's line about a thread (proc(5), stat): its processor time and its
// nice value, above 0 for a lower priority than usual. ok is false for a line that is not one.
func parseThread(stat string) (used time.Duration, nice int64, ok bool) {
	// the name of the thread may have any character
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
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
