package installation

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"posttrade/app/engine"
	"posttrade/ring/must"

	"golang.org/x/sys/unix"
)

// The operator's GOMAXPROCS stays as it is, while the engine runs and afterwards.
func TestOperatorsProcessorsAreTaken(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(3))
	t.Setenv("GOMAXPROCS", "3")
	k := testCore(t, t.TempDir())
	if got := runtime.GOMAXPROCS(0); got != 3 {
		t.Errorf("with GOMAXPROCS=3 there are %d", got)
	}
	k.Procs.Mark = "something else"
	k.Procs.Look() // there is no limit to follow
	if err := k.Stop(); err != nil {
		t.Error(err)
	}
	if got := runtime.GOMAXPROCS(0); got != 3 {
		t.Errorf("afterwards there are %d", got)
	}
}

// Without GOMAXPROCS the scheduler gets what the process may use and some to spare. A second engine
// in the process does not add to that. Afterwards the runtime follows the limit by itself.
func TestProcessorsAboveTheLimit(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	t.Setenv("GOMAXPROCS", "many") // the runtime does not accept that either
	runtime.SetDefaultGOMAXPROCS()
	limit := runtime.GOMAXPROCS(0)
	first := testCore(t, t.TempDir())
	second := testCore(t, t.TempDir())
	// Matcher and recorder, two writers of the tail, and eight threads of low priority: a server has
	// seven of these at rest.
	if got := runtime.GOMAXPROCS(0); got != limit+2+2+8 {
		t.Errorf("%d processors with a limit of %d", got, limit)
	}
	for _, k := range []*engine.Engine{second, first} {
		if err := k.Stop(); err != nil {
			t.Error(err)
		}
	}
	if got := runtime.GOMAXPROCS(0); got != limit {
		t.Errorf("afterwards there are %d, before there were %d", got, limit)
	}
}

// A change of the limit is followed, here that of the cores on which the thread may run.
func TestProcessorsFollowTheLimit(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	t.Setenv("GOMAXPROCS", "")
	// never unlocked: the thread ends with the test, and its set of cores with it
	runtime.LockOSThread()
	var all, one unix.CPUSet
	must.OK(t, unix.SchedGetaffinity(0, &all))
	for cpu := range runtime.NumCPU() {
		if all.IsSet(cpu) {
			one.Set(cpu)
			break
		}
	}
	p := engine.NewProcessors(4)
	p.Raise()
	before := runtime.GOMAXPROCS(0)
	for _, step := range []struct {
		cores unix.CPUSet
		want  int
	}{{one, 1 + 4}, {all, before}} {
		must.OK(t, unix.SchedSetaffinity(0, &step.cores))
		p.Look()
		if got := runtime.GOMAXPROCS(0); got != step.want {
			t.Errorf("%d cores: %d processors, want %d", step.cores.Count(), got, step.want)
		}
	}
	runtime.GOMAXPROCS(before + 3) // without a change of the limit the number stays as it is
	p.Look()
	if got := runtime.GOMAXPROCS(0); got != before+3 {
		t.Errorf("%d processors, want %d", got, before+3)
	}
}

// Every quota above the process is part of the mark from which the limit is derived.
func TestLimitMark(t *testing.T) {
	root := t.TempDir()
	write := func(path, text string) {
		t.Helper()
		path = filepath.Join(root, path)
		must.OK(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must.OK(t, os.WriteFile(path, []byte(text), 0o600))
	}
	p := &engine.Processors{Root: root}
	last := p.LimitMark()
	for _, step := range [][2]string{
		{"proc/self/cgroup", "12:cpuset:/x\n3:cpu,cpuacct:/a\n0::/a/b\n"},
		{"sys/fs/cgroup/a/b/cpu.max", "100000 100000\n"},
		{"sys/fs/cgroup/a/cpu.max", "max 100000\n"},
		{"sys/fs/cgroup/cpu.max", "300000 100000\n"},
		{"sys/fs/cgroup/a/cpu.max", "200000 100000\n"},
		{"sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "-1\n"},
		{"sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "50000\n"},
	} {
		write(step[0], step[1])
		mark := p.LimitMark()
		if changed := mark != last; changed != (step[0] != "proc/self/cgroup") {
			t.Errorf("%s: changed %v, %q", step[0], changed, mark)
		}
		if p.LimitMark() != mark {
			t.Error("it is another one each time")
		}
		last = mark
	}
	write("sys/fs/cgroup/cpuset/x/cpu.max", "1 1")
	write("sys/fs/cgroup/elsewhere/cpu.max", "1 1")
	if p.LimitMark() != last {
		t.Error("what is not above the process counts")
	}
}
