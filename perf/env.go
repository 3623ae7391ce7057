package perf

import (
	"cmp"
	"fmt"
	"runtime/debug"
	"strings"
	"time"
)

// Environment is the description of the machine that every figure needs: two figures compare only
// if these are alike. A value that the system does not show is "unknown", never "".
type Environment struct {
	OS, Arch, CPU, Go, Kernel string
	// Cores is the number of the machine's cores that this process may use, and Procs the number of
	// the scheduler's processors when the run began; settle returns to it before every row.
	Cores, Procs int
	// Commit is the build that was measured.
	Commit string
	// Date is when the run began, in local time; the file has it in UTC.
	Date time.Time
	// LoadBefore is the line of /proc/loadavg when the run began. A load near the number of cores says
	// that the machine was not free.
	LoadBefore string
	// LineRoundTripNs is one cache line there and back between two cores, in nanoseconds; 0: not
	// measured. It depends on which two cores a virtual machine has, and every transfer between
	// threads on it.
	LineRoundTripNs float64
	// FileSystem is the type of the file system that holds the run's folder, such as ext4.
	FileSystem string
	// Governor is the kernel's policy for the clock rate of the first core.
	Governor string
	// ClockSource is the kernel's clock. It decides what one reading of the time costs, which the rows
	// that time single steps measure too.
	ClockSource string
	// Hypervisor is yes or no: a virtual machine loses time to its neighbours.
	Hypervisor string
	// HugePages is the kernel's mode for transparent huge pages: always, madvise or never.
	HugePages string
	// MemoryMiB is the machine's memory in MiB.
	MemoryMiB string
	// CgroupCPU and CgroupMemory are the limits of this process's control group; max for none.
	CgroupCPU, CgroupMemory string
	// JitterBefore is what a spinning thread met in half a second before the first row: see jitter.
	JitterBefore string
	// Work is full, or smoke for a hundredth of a full run. A run of chosen rows says full too.
	Work string

	// stolen is the reading of all cores' ticks when the run began.
	stolen ticks
}

// readEnvironment describes this machine; dir is the folder of the run's journals. It reads files
// of /proc and /sys only, so it fails on no system: what is not there is unknown.
func readEnvironment(commit, dir string) Environment { return host{"/"}.environment(commit, dir) }

// commitOf is the commit that was given, otherwise the one in the build information.
func commitOf(commit string) string {
	if commit != "" {
		return commit
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" && len(s.Value) >= 12 {
				return s.Value[:12]
			}
		}
	}
	return unknown
}

// header is the configuration block that opens a results file: "key: value" lines, as in Go's
// benchmark format. report.Parse reads cpu, cores, commit, date and work by these keys, so that a
// key may not change its name.
func (e Environment) header() string {
	var b strings.Builder
	for _, line := range [][2]string{
		{"goos", e.OS}, {"goarch", e.Arch}, {"cpu", e.CPU}, {"go", e.Go}, {"cores", fmt.Sprint(e.Cores)},
		{"gomaxprocs", fmt.Sprint(e.Procs)},
		{"kernel", e.Kernel}, {"hypervisor", e.Hypervisor}, {"governor", e.Governor},
		{"clock-source", e.ClockSource},
		{"huge-pages", e.HugePages}, {"memory-mib", e.MemoryMiB}, {"cgroup-cpu", e.CgroupCPU},
		{"cgroup-memory", e.CgroupMemory},
		{"filesystem", e.FileSystem}, {"commit", e.Commit}, {"date", e.Date.UTC().Format(time.RFC3339)},
		{"work", e.Work},
		{"load", e.LoadBefore},
		{"line-round-trip-ns", orUnknown(e.LineRoundTripNs)}, {"jitter", e.JitterBefore},
	} {
		fmt.Fprintf(&b, "%s: %s\n", line[0], cmp.Or(line[1], unknown))
	}
	return b.String()
}

// orUnknown is a figure without decimals, or unknown when it was not measured.
func orUnknown(figure float64) string {
	if figure == 0 {
		return unknown
	}
	return fmt.Sprintf("%.0f", figure)
}

// footer describes the machine at the end of the run, in the form of the header: its load, a
// spinning thread's gaps, and the share of the run in which the hypervisor ran other machines.
func (e Environment) footer(jitter string) string { return host{"/"}.footer(e.stolen, jitter) }

// fileName is the results file's name for this machine: commit and processor, the latter in lower
// case with one hyphen for every run of other characters. Two runs of one build on one kind of
// machine have one name, and the second overwrites the first.
func (e Environment) fileName() string {
	clean := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return '-'
	}, e.CPU)
	words := strings.FieldsFunc(clean, func(r rune) bool { return r == '-' })
	return e.Commit + "." + strings.Join(words, "-") + ".txt"
}
