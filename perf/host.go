package perf

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// unknown stands for a value that this system does not show.
const unknown = "unknown"

// host reads what a system shows of itself in the files below its root; tests have a root of their
// own.
//
// Every value is read again at each call: load, ticks and mounts change during a run.
type host struct{ root string }

// environment reads everything but the two figures that take measuring: the line's round trip and
// the jitter, which Measure adds.
func (h host) environment(commit, dir string) Environment {
	env := Environment{
		OS: runtime.GOOS, Arch: runtime.GOARCH, Go: runtime.Version(), Cores: runtime.NumCPU(),
		Procs:  runtime.GOMAXPROCS(0),
		CPU:    h.field("proc/cpuinfo", "model name", runtime.GOARCH),
		Kernel: h.first("proc/sys/kernel/osrelease"),
		Commit: commitOf(commit), Date: time.Now(), LoadBefore: h.first("proc/loadavg"),
		FileSystem:   h.mountOf(dir),
		Governor:     h.first("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
		ClockSource:  h.first("sys/devices/system/clocksource/clocksource0/current_clocksource"),
		HugePages:    chosen(h.first("sys/kernel/mm/transparent_hugepage/enabled")),
		MemoryMiB:    mebibytes(h.field("proc/meminfo", "MemTotal", unknown)),
		CgroupCPU:    h.limit("cpu.max", "cpu/cpu.cfs_quota_us"),
		CgroupMemory: h.limit("memory.max", "memory/memory.limit_in_bytes"),
		Hypervisor:   "no",
		Work:         "full",
		stolen:       h.ticks(),
	}
	if slices.Contains(strings.Fields(h.field("proc/cpuinfo", "flags", "")), "hypervisor") {
		env.Hypervisor = "yes"
	}
	return env
}

// first is the first line of a file without blanks at its ends, unknown for an empty or unreadable
// one.
func (h host) first(name string) string {
	text, err := os.ReadFile(filepath.Join(h.root, name))
	line, _, _ := strings.Cut(string(text), "\n")
	if line = strings.TrimSpace(line); err != nil || line == "" {
		return unknown
	}
	return line
}

// firstLine is the first line of a file of this system.
func firstLine(path string) string { return host{"/"}.first(path) }

// field is the value of the first line "key: value" of a file, or other.
func (h host) field(name, key, other string) string {
	text, _ := os.ReadFile(filepath.Join(h.root, name)) // a file that cannot be read has no such line
	for line := range strings.Lines(string(text)) {
		if k, value, found := strings.Cut(line, ":"); found && strings.TrimSpace(k) == key {
			return strings.TrimSpace(value)
		}
	}
	return other
}

// mebibytes turns "123456 kB" into 120.
func mebibytes(text string) string {
	kib, err := strconv.ParseUint(strings.TrimSuffix(text, " kB"), 10, 64)
	if err != nil {
		return unknown
	}
	return strconv.FormatUint(kib>>10, 10)
}

// chosen is the word in brackets: "always [madvise] never".
func chosen(text string) string {
	_, rest, _ := strings.Cut(text, "[")
	if word, _, found := strings.Cut(rest, "]"); found {
		return word
	}
	return unknown
}

// limit is the limit of this process's control group, "max" for no limit. old is the name of the
// file on a system with version 1 of control groups.
func (h host) limit(name, old string) string {
	text, _ := os.ReadFile(filepath.Join(h.root, "proc/self/cgroup")) // unreadable: the root group
	group := ""
	for line := range strings.Lines(string(text)) {
		if rest, found := strings.CutPrefix(line, "0::"); found {
			group = strings.TrimSpace(rest)
		}
	}
	for {
		if value := h.first(filepath.Join("sys/fs/cgroup", group, name)); value != unknown {
			return value
		}
		if group == "" || group == "/" {
			return bounded(h.first(filepath.Join("sys/fs/cgroup", old)))
		}
		group = filepath.Dir(group) // a group below the delegated one may not show its own limit
	}
}

// bounded converts a limit of version 1 of control groups to the form of version 2: no limit is
// max, not -1 or the largest number of pages.
func bounded(limit string) string {
	if n, err := strconv.ParseInt(limit, 10, 64); err == nil && (n < 0 || n > math.MaxInt64/2) {
		return "max"
	}
	return limit
}

// ticks are the processor times of all cores together since the start of the machine, in the
// kernel's ticks: all kinds of time, and the part that the hypervisor gave to other machines.
type ticks struct{ all, stolen uint64 }

// ticks reads the first line of /proc/stat: "cpu" and the times of user, nice, system, idle,
// iowait, irq, softirq and steal, of which steal is the eighth.
func (h host) ticks() (t ticks) {
	for i, word := range strings.Fields(h.first("proc/stat")) {
		n, err := strconv.ParseUint(word, 10, 64)
		if i == 0 || i > 8 || err != nil { // the name of the line; guest time is part of the others
			continue
		}
		if t.all += n; i == 8 {
			t.stolen = n
		}
	}
	return t
}

// stolenSince is the share of the time of all cores that the hypervisor gave to other machines, in
// hundredths; unknown where the system shows no ticks.
func (t ticks) stolenSince(before ticks) string {
	if t.all <= before.all {
		return unknown
	}
	return fmt.Sprintf("%.2f %%", 100*float64(t.stolen-before.stolen)/float64(t.all-before.all))
}

// mountOf names the file system that holds dir: its type, not its path, because a path says nothing
// of another machine. The longest mount point that holds dir wins, the last one among equals.
func (h host) mountOf(dir string) string {
	text, _ := os.ReadFile(filepath.Join(h.root, "proc/mounts")) // unreadable: no mounts
	best, kind := "", unknown
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) > 2 && holds(f[1], dir) && len(f[1]) >= len(best) {
			best, kind = f[1], f[2]
		}
	}
	return kind
}

// holds reports whether dir lies at or below a mount point.
func holds(mount, dir string) bool {
	return mount == "/" || dir == mount || strings.HasPrefix(dir, mount+"/")
}

// footer is Environment.footer; before is the reading when the run began.
func (h host) footer(before ticks, jitter string) string {
	return fmt.Sprintf("load-after: %s\njitter-after: %s\nstolen-share: %s\n",
		h.first("proc/loadavg"), cmp.Or(jitter, unknown), h.ticks().stolenSince(before))
}
