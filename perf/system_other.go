//go:build !linux

package perf

import (
	"errors"
	"os"
	"os/exec"
	"time"
)

// Without clocks of processor time the wall clock stands for them, and a figure is worth less: it
// has the time of other processes in it. The gate's noise then grows, and its limit with it.
const (
	threadClock  = 0
	processClock = 0
)

// begun is the zero of cpuTime and processorTime here; only differences are used.
var begun = time.Now()

func cpuTime(int32) int64 { return int64(processorTime()) }

// writeBack does nothing: the rows then share the disk with what the rows before have left.
func writeBack() {}

// endWithParent does nothing: a measurement that is killed leaves its servers behind.
func endWithParent(*exec.Cmd) {}

func processorTime() time.Duration { return time.Since(begun) }

// threadID is 0: there is no schedstat to read for a thread.
func threadID() int64 { return 0 }

// threadUsage stays 0, so that no gap has a cause by the kernel.
type threadUsage struct{ preempted, slept, faults int64 }

func usageOfThread() threadUsage { return threadUsage{} }

// pause and resume do nothing: the sidecars of a server then take time of the others.
func pause(*os.Process) error  { return nil }
func resume(*os.Process) error { return nil }

func realTime() error { return errors.New("real-time priority: not on this system") }
