package perf

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"
)

// What the row asks for: MiB of resident memory for a server that does nothing, and a resident set
// that does not grow with the number of commands. A tenth is left for what a resident set does by
// itself; growth of the heap has a row of its own, without that tenth.
var (
	memoryIdle   = atMost("P14", 256, "resident set, idle with defaults, MiB")
	memoryLoaded = atMost("P14", 1.1,
		"resident set at the end of %d commands against a quarter of the way").
		as("resident set at the end against a quarter of the way").
		unless("a smoke run is too short")
)

// measureMemory is row P14: the resident set of an idle server with defaults, and of an engine
// while ten million commands go through its journal.
//
// Both are processes of their own, read from outside, so that this process's memory is not in them.
// The resident set has mapped files and pages that the kernel may take back, so it is not the heap:
// row "heap" has that. The second figure is a ratio of two maxima of samples, 20 ms apart: a peak
// between two samples is missed. How far the flow is, is taken from the number of samples, as if it
// went evenly.
func measureMemory(r *Run) error {
	idle, err := r.startServer("idle")
	if err != nil {
		return err
	}
	time.Sleep(r.duration(5 * time.Second)) // until memory that the start-up touched has been returned
	resident, err := idle.residentBytes()
	if err = errors.Join(err, idle.stop()); err != nil {
		return err
	}
	r.figures("Memory/op=idle", metric{float64(resident) / (1 << 20), "MiB-resident"})
	r.judge(memoryIdle, float64(resident)/(1<<20))

	n := r.scale(10_000_000)
	early, late, err := r.residentUnderLoad(n)
	if err != nil {
		return err
	}
	r.figures("Memory/op=flow", metric{early / (1 << 20), "MiB-after-a-quarter"},
		metric{late / (1 << 20), "MiB-at-the-end"})
	if !r.o.Smoke {
		r.judge(memoryLoaded, late/early, n)
	}
	return nil
}

// residentUnderLoad runs a synthetic flow through a child's engine and samples the child's resident
// set in bytes: the largest of the second quarter and of the last one. The child is `posttrade
// replay` on an engine of its own, at full speed.
func (r *Run) residentUnderLoad(n int) (early, late float64, err error) {
	cmd := exec.Command(r.o.Binary, "replay", "--synthetic", strconv.Itoa(n),
		"--data.dir="+filepath.Join(r.o.Dir, "memory"))
	cmd.Stderr = os.Stderr
	if err := start(cmd); err != nil {
		return 0, 0, err
	}
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	var samples []float64
	for {
		select {
		case err := <-exited:
			if err != nil {
				return 0, 0, fmt.Errorf("replay: %w", err)
			}
			if len(samples) == 0 {
				return 0, 0, errors.New("replay ended before its memory could be read")
			}
			q := len(samples) / 4
			return maximum(samples[q : 2*q+1]), maximum(samples[3*q:]), nil
		case <-tick.C:
			if b, err := residentBytes(cmd.Process.Pid); err == nil {
				samples = append(samples, float64(b))
			}
		}
	}
}

// maximum is the largest of one or more values.
func maximum(v []float64) float64 {
	m := v[0]
	for _, x := range v[1:] {
		m = max(m, x)
	}
	return m
}
