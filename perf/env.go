package perf

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
)

// Environment is what a figure means nothing without.
type Environment struct {
	OS, Arch, CPU, Go, Kernel string
	Cores                     int
	Commit                    string
	LoadBefore                string
	LineRoundTripNs           float64
	FileSystem                string
}

// readEnvironment describes this machine; dir is where the journals of the run lie.
func readEnvironment(commit, dir string) Environment {
	env := Environment{
		OS: runtime.GOOS, Arch: runtime.GOARCH, Go: runtime.Version(), Cores: runtime.NumCPU(),
		CPU: cpuModel(), Kernel: firstLine("/proc/sys/kernel/osrelease"), Commit: commit,
		LoadBefore: firstLine("/proc/loadavg"), FileSystem: mountOf(dir),
	}
	if env.Commit == "" {
		if info, ok := debug.ReadBuildInfo(); ok {
			for _, s := range info.Settings {
				if s.Key == "vcs.revision" && len(s.Value) >= 12 {
					env.Commit = s.Value[:12]
				}
			}
		}
	}
	if env.Commit == "" {
		env.Commit = "unknown"
	}
	return env
}

// header is the configuration block that opens a results file.
func (e Environment) header() string {
	var b strings.Builder
	for _, line := range [][2]string{
		{"goos", e.OS}, {"goarch", e.Arch}, {"cpu", e.CPU}, {"go", e.Go}, {"cores", fmt.Sprint(e.Cores)},
		{"kernel", e.Kernel}, {"filesystem", e.FileSystem}, {"commit", e.Commit}, {"load", e.LoadBefore},
		{"line-round-trip-ns", fmt.Sprintf("%.0f", e.LineRoundTripNs)},
	} {
		fmt.Fprintf(&b, "%s: %s\n", line[0], line[1])
	}
	return b.String()
}

// fileName is the results file's name for this machine: commit and processor.
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

func cpuModel() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	for _, line := range strings.Split(string(text), "\n") {
		if name, value, found := strings.Cut(line, ":"); found && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}

func firstLine(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return "unknown"
	}
	line, _, _ := strings.Cut(string(text), "\n")
	return strings.TrimSpace(line)
}

// mountOf names the file system that holds dir: its type, not its path.
func mountOf(dir string) string {
	text, err := os.ReadFile("/proc/mounts")
	if err != nil {
		return "unknown"
	}
	best, kind := "", "unknown"
	for _, line := range strings.Split(string(text), "\n") {
		f := strings.Fields(line)
		if len(f) > 2 && strings.HasPrefix(dir, f[1]) && len(f[1]) >= len(best) {
			best, kind = f[1], f[2]
		}
	}
	return kind
}
