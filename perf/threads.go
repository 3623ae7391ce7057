package perf

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// threadTimes are threads by the kernel's numbers as text.
type threadTimes map[string]threadTime

// threadTime is the processor time of a thread, user and system, in hundredths of a second, and
// whether its priority is lower than usual.
type threadTime struct {
	used   time.Duration
	polite bool
}

// politeCPU is the processor time of the child's threads with a lower priority than usual:
// projection, reconciliation, snapshots, which get the time that the path of an order leaves over.
// A thread that has ended is missing, and its time counts as the path's.
func (c *child) politeCPU() threadTimes {
	return readThreads(fmt.Sprintf("/proc/%d/task", c.cmd.Process.Pid))
}

// ownPoliteCPU is politeCPU of this process.
func ownPoliteCPU() threadTimes { return readThreads("/proc/self/task") }

// since is the time that threads of a lower priority have used since an earlier look. A new thread
// counts with its whole time, and one that has become polite with all that it has used in between.
func (t threadTimes) since(earlier threadTimes) (sum time.Duration) {
	for thread, now := range t {
		if now.polite {
			sum += now.used - earlier[thread].used // 0 for a new one
		}
	}
	return sum
}

// readThreads reads a folder of threads as the kernel shows them.
func readThreads(dir string) threadTimes {
	times := threadTimes{}
	files, _ := filepath.Glob(filepath.Join(dir, "*", "stat")) // the pattern is well-formed
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // the thread has just ended
		}
		if used, nice, ok := parseThread(string(text)); ok {
			times[filepath.Base(filepath.Dir(name))] = threadTime{used, nice > 0}
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
