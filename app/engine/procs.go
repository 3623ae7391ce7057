package engine

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// The numbers of processors (GOMAXPROCS) that the Go scheduler gets on top of those that the
// process may use. The threads of the matcher and the recorder hold one each, also while they sleep
// in the kernel. So does every goroutine inside an fdatasync, until the runtime's monitor takes the
// processor back, which can be 10 ms later. With no spare processor, the goroutine that a finished
// sync wakes has nowhere to run.
const (
	// The threads of the matcher and the recorder.
	hotThreads = 2
	// For goroutines inside a sync: in mode "fsync" the tail has two writers.
	syncProcs = 2
	// For threads of low priority (journal.Politely): projection, reconciliation, TCA, and shadows
	// with their readers. One that has work holds its processor also while the kernel lets it wait
	// for a core: the runtime can take a processor only from a thread that runs. With too few,
	// goroutines of the path wait for a processor, and their cores go to the threads that should
	// give way to them.
	politeProcs = 8
	// A process with shared-memory sessions has these as well.
	sessionThreads = 2 // its poller and its feeder
	// What every engine has.
	SpareProcs = hotThreads + syncProcs + politeProcs
)

// Processors manages the processors of the Go scheduler: as many as the runtime finds that the
// process may use (of the machine and of its container's CPU limit), and some to spare. If the
// operator sets GOMAXPROCS in the environment, that number stays as it is.
//
// One goroutine at a time calls its methods: Open before the loops run, then follow, then End.
type Processors struct {
	// How many processors are added to the limit.
	spare int
	// GOMAXPROCS is set in the environment, and nothing is changed.
	fixed bool
	// The number before the first Raise, which restore gives back.
	old int
	// What the process may use, as the runtime computed it at the last Raise; 0 before that.
	limit int
	// LimitMark at the last Raise. Tests read it.
	Mark string
	// The root of the file system in which the control groups are looked up; tests have one of their
	// own.
	Root string
}

// NewProcessors notes the number of processors at the start.
func NewProcessors(spare int) *Processors {
	n, err := strconv.Atoi(os.Getenv("GOMAXPROCS"))
	return &Processors{spare: spare, fixed: err == nil && n > 0, old: runtime.GOMAXPROCS(0), Root: "/"}
}

// Raise gives the scheduler its processors.
//
// It stops all goroutines for a moment, up to twice, so it is called at the start and at a change
// only.
func (p *Processors) Raise() {
	if p.fixed {
		return
	}
	// Another Processors in this process may have raised the number: ask the runtime again.
	p.Mark = p.LimitMark()
	runtime.SetDefaultGOMAXPROCS()
	p.limit = runtime.GOMAXPROCS(0)
	runtime.GOMAXPROCS(p.limit + p.spare)
}

// restore gives the scheduler its former number of processors. If the runtime followed the CPU
// limit before, it does so again.
func (p *Processors) restore() {
	switch {
	case p.fixed:
	case p.old == p.limit:
		runtime.SetDefaultGOMAXPROCS()
	default:
		runtime.GOMAXPROCS(p.old)
	}
}

// limitInterval is the time between two checks whether the limit has changed. The runtime follows
// the limit by itself only until the program sets a number.
const limitInterval = 5 * time.Second

// follow adjusts the number of processors to a limit that changes, until ctx ends.
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

// Look raises again when something that the limit is derived from has changed. Asking the runtime
// stops all goroutines for a moment, so Look asks only then.
func (p *Processors) Look() {
	if p.Mark != p.LimitMark() {
		p.Raise()
	}
}

// LimitMark is the text of everything that a CPU limit is derived from: the CPU cores that the
// process may run on, and the quotas of its control groups. Only the runtime interprets it.
//
// A text that cannot be read counts as empty. A limit that is hidden from the process then never
// seems to change, and the number of the start stays. Version 1 of control groups has a mount for
// each controller and two files, version 2 one mount and one file; a line of /proc/self/cgroup
// says which.
func (p *Processors) LimitMark() string {
	var b strings.Builder
	b.WriteString(allowedCores())
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

// quotas appends files of a control group and of its parent groups.
//
// The parents count too: the smallest quota on the way to the root is the one that limits.
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
