package perf

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"posttrade/app/latency"
	"posttrade/ring/must"
)

// fakeHost is a system made of files.
func fakeHost(t *testing.T, files map[string]string) host {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		must.OK(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must.OK(t, os.WriteFile(path, []byte(text), 0o600))
	}
	return host{root}
}

func TestEnvironmentReadsWhatTheSystemShows(t *testing.T) {
	h := fakeHost(t, map[string]string{
		"proc/cpuinfo": "processor\t: 0\nmodel name\t: Some CPU @ 3 GHz\nflags\t\t: " +
			"fpu hypervisor sse2\n",
		"proc/sys/kernel/osrelease": "6.1.2-test\n",
		"proc/loadavg":              "0.10 0.20 0.30 1/2 3\n",
		"proc/meminfo":              "MemTotal:       24576000 kB\nMemFree: 1 kB\n",
		"proc/mounts": "rootfs / ext4 rw 0 0\ntmp /data tmpfs rw 0 0\nother /data2 " +
			"xfs rw 0 0\n",
		"proc/self/cgroup":                "0::/run.slice/this\n",
		"proc/stat":                       "cpu  100 0 100 700 0 0 0 100 0 0\ncpu0 1 2 3\n",
		"sys/fs/cgroup/run.slice/cpu.max": "150000 100000\n",
		"sys/fs/cgroup/memory.max":        "max\n",
		"sys/devices/system/cpu/cpu0/cpufreq/scaling_governor":            "performance\n",
		"sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc\n",
		"sys/kernel/mm/transparent_hugepage/enabled":                      "always [madvise] never\n",
	})
	e := h.environment("abc", "/data/journals")
	text := e.header()
	for _, want := range []string{"cpu: Some CPU @ 3 GHz\n", "kernel: 6.1.2-test\n",
		"load: 0.10 0.20 0.30 1/2 3\n", "memory-mib: 24000\n",
		"filesystem: tmpfs\n", "cgroup-cpu: 150000 100000\n", "cgroup-memory: max\n",
		"governor: performance\n", "clock-source: tsc\n",
		"huge-pages: madvise\n", "hypervisor: yes\n", "commit: abc\n", "jitter: unknown\n",
		"line-round-trip-ns: unknown\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	must.OK(t, os.WriteFile(filepath.Join(h.root, "proc/stat"),
		[]byte("cpu 150 0 150 1350 0 0 0 150 0 0\n"), 0o600))
	if got := h.footer(e.stolen,
		"j"); got != "load-after: 0.10 0.20 0.30 1/2 3\njitter-after: j\nstolen-share: 6.25 %\n" {
		t.Errorf("footer %q", got)
	}
	for dir, want := range map[string]string{"/data2/x": "xfs", "/data": "tmpfs", "/database": "ext4",
		"/": "ext4"} {
		if got := h.mountOf(dir); got != want {
			t.Errorf("%s lies on %s, want %s", dir, got, want)
		}
	}
}

func TestEnvironmentOfASystemThatShowsNothing(t *testing.T) {
	h := host{t.TempDir()}
	e := h.environment("", "/x")
	for _, line := range []string{"kernel", "governor", "clock-source", "huge-pages", "memory-mib",
		"cgroup-cpu", "cgroup-memory", "filesystem", "load"} {
		if !strings.Contains(e.header(), "\n"+line+": unknown\n") {
			t.Errorf("%s is not unknown in\n%s", line, e.header())
		}
	}
	if got := h.footer(e.stolen,
		""); got != "load-after: unknown\njitter-after: unknown\nstolen-share: unknown\n" {
		t.Errorf("footer %q", got)
	}
	old := fakeHost(t, map[string]string{"sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
		"sys/fs/cgroup/memory/memory.limit_in_bytes": "1024\n"}).environment("", "/x")
	if old.CgroupCPU != "max" || old.CgroupMemory != "1024" {
		t.Errorf("limits of the first kind of control groups: %q, %q", old.CgroupCPU, old.CgroupMemory)
	}
	if e.Hypervisor != "no" || e.CPU == "" || e.Commit == "" {
		t.Errorf("%+v", e)
	}
}

// script is a clock that reads the given times, one after the other.
func script(times ...time.Duration) func() time.Duration {
	at := -1
	return func() time.Duration { at++; return times[at] }
}

func TestMeterCountsGaps(t *testing.T) {
	us := time.Microsecond
	gaps := latency.NewRecorder()
	j := meter(200_000*us, script(5*us, 6*us, 8*us, 30*us, 31*us, 231*us, 2231*us, 2232*us,
		200_005*us), gaps)
	if want := [...]int{5, 4, 3, 2, 1}; j.longer != want {
		t.Errorf("gaps %v, want %v", j.longer, want)
	}
	if j.took != 200_000*us || j.longest != 197_773*us ||
		j.lost != 2*us+22*us+200*us+2000*us+197_773*us {
		t.Errorf("%+v", j)
	}
	if n := gaps.Count(); n != 5 {
		t.Errorf("%d gaps recorded, want 5", n)
	}
	if got, want := j.String(),
		">1us 25/s >10us 20/s >100us 15/s >1ms 10/s >10ms 5/s longest 198ms lost 100.00 %"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestMeterDoesNotAllocate(t *testing.T) {
	now := time.Duration(0)
	clock := func() time.Duration { now += 2 * time.Microsecond; return now }
	gaps := latency.NewRecorder()
	if n := testing.AllocsPerRun(100, func() { meter(time.Millisecond, clock, gaps) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
