package engine

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// The Go scheduler's processors on top of those that the process may use. The matcher's and
// the recorder's threads hold one each also while they sleep in the kernel, and
// so does every goroutine inside an fdatasync, until the runtime's monitor takes
// it back, which can be 10 ms later. With none to spare the goroutine that a
// finished sync wakes has nowhere to run; with many, threads fight for the cores.
const (
	HotThreads     = 2
	SpareProcs     = 2
	sessionThreads = 2 // its poller and its feeder
)

// Processors are those of the Go scheduler: what the runtime finds that the process may
// use, of the machine and of its container's CPU limit, and some to spare. A GOMAXPROCS in
// the environment is the operator's word, and taken as it is.
type Processors struct {
	spare int
	fixed bool   // GOMAXPROCS is set
	old   int    // before raise
	limit int    // what the process may use
	Mark  string // what limit was derived from
	Root  string // of the file system; tests have one of their own
}

// NewProcessors notes what a start finds.
func NewProcessors(spare int) *Processors {
	n, err := strconv.Atoi(os.Getenv("GOMAXPROCS"))
	return &Processors{spare: spare, fixed: err == nil && n > 0, old: runtime.GOMAXPROCS(0), Root: "/"}
}

// Raise gives the scheduler its processors.
func (p *Processors) Raise() {
	if p.fixed {
		return
	}
	// The first of two in a process has raised it already: the runtime is asked again.
	p.Mark = p.LimitMark()
	runtime.SetDefaultGOMAXPROCS()
	p.limit = runtime.GOMAXPROCS(0)
	runtime.GOMAXPROCS(p.limit + p.spare)
}

// restore gives the scheduler back what it had; the runtime follows the limit by itself
// again, if it did.
func (p *Processors) restore() {
	switch {
	case p.fixed:
	case p.old == p.limit:
		runtime.SetDefaultGOMAXPROCS()
	default:
		runtime.GOMAXPROCS(p.old)
	}
}

// limitInterval is how often it is asked whether the limit has changed: the runtime, which
// would follow it by itself, does not any more once it has been told a number.
const limitInterval = 5 * time.Second

// follow has the scheduler follow a limit that changes, until ctx ends.
func (p *Processors) follow(ctx context.Context) {
	if p.fixed {
		return
	}
	tick := time.NewTicker(limitInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			p.Look()
		}
	}
}

// Look raises again when something has changed that the limit is derived from. To ask the
// runtime stops all goroutines for a moment, so it is not asked for nothing.
func (p *Processors) Look() {
	if p.Mark != p.LimitMark() {
		p.Raise()
	}
}

// LimitMark is the text of everything that a CPU limit is derived from: the cores that the
// process may run on, and the quotas of its control groups. What it says is the runtime's
// to judge.
func (p *Processors) LimitMark() string {
	var b strings.Builder
	var cores unix.CPUSet
	if unix.SchedGetaffinity(0, &cores) == nil {
		for cpu := range runtime.NumCPU() {
			b.WriteString(strconv.FormatBool(cores.IsSet(cpu))[:1])
		}
	}
	groups, err := os.ReadFile(filepath.Join(p.Root, "proc/self/cgroup"))
	if err != nil {
		return b.String()
	}
	for line := range strings.Lines(string(groups)) {
		_, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		controllers, group, _ := strings.Cut(rest, ":")
		switch {
		case controllers == "":
			p.quotas(&b, "sys/fs/cgroup", group, "cpu.max")
		case strings.Contains(","+controllers+",", ",cpu,"):
			p.quotas(&b, "sys/fs/cgroup/"+controllers, group, "cpu.cfs_quota_us", "cpu.cfs_period_us")
		}
	}
	return b.String()
}

// quotas appends files of a control group and of those that it is in.
func (p *Processors) quotas(b *strings.Builder, mount, group string, files ...string) {
	for group = filepath.Clean("/" + group); ; group = filepath.Dir(group) {
		for _, name := range files {
			text, err := os.ReadFile(filepath.Join(p.Root, mount, group, name))
			if err == nil {
				b.WriteString("\n" + group + " " + string(text))
			}
		}
		if group == "/" {
			return
		}
	}
}
