package perf

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// The clocks of processor time: user and system time of the calling thread, or of all threads of
// the process.
const (
	threadClock  = unix.CLOCK_THREAD_CPUTIME_ID
	processClock = unix.CLOCK_PROCESS_CPUTIME_ID
)

// cpuTime reads a processor-time clock in nanoseconds. The thread's clock needs a goroutine that is
// locked to its thread.
func cpuTime(clock int32) int64 {
	var t unix.Timespec
	_ = unix.ClockGettime(clock, &t) // fails only for a clock that does not exist
	return t.Nano()
}

// writeBack brings the dirty pages of all files to the disk and waits for them. It does not drop
// what the kernel's cache holds, so later reads of those files need no disk.
func writeBack() { unix.Sync() }

// endWithParent makes the system kill the child when this process ends, however that ends.
//
// The kernel sends the signal when the thread that started the child ends: see starts.
func endWithParent(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
}

// processorTime is the processor time that this process has used, user and system, over all its
// threads and without its children.
func processorTime() time.Duration {
	var u unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &u) // it exists on every Linux that Go runs on
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// threadID is the kernel's number of the calling thread.
func threadID() int64 { return int64(unix.Gettid()) }

// threadUsage is how often a thread has lost its core, given it away and met a page fault, since it
// began.
type threadUsage struct{ preempted, slept, faults int64 }

// usageOfThread reads the counts of the calling thread: one system call.
func usageOfThread() threadUsage {
	var u unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_THREAD, &u) // it exists on every Linux that Go runs on
	return threadUsage{preempted: int64(u.Nivcsw), slept: int64(u.Nvcsw),
		faults: int64(u.Minflt + u.Majflt)}
}

// pause stops a process's threads until resume; it may be paused already.
func pause(p *os.Process) error { return p.Signal(unix.SIGSTOP) }

// resume lets a paused process go on. One that runs stays as it is.
func resume(p *os.Process) error { return p.Signal(unix.SIGCONT) }

// realTime gives the calling thread, which its goroutine has locked, a priority above that of all
// threads with a usual one. The system may refuse it.
func realTime() error {
	attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 1}
	if err := unix.SchedSetAttr(0, &attr, 0); err != nil {
		return fmt.Errorf("real-time priority: %w", err)
	}
	return nil
}
