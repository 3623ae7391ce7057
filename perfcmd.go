package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime/pprof"

	"posttrade/httpapi"
	"posttrade/matcher"
	"posttrade/matcher/desk"
	"posttrade/matcher/gate"
	"posttrade/perf"
)

// runPerf is `posttrade perf`.
func runPerf(args []string, stdout, stderr io.Writer) int {
	var (
		o          perf.Options
		hello      bool
		cpuProfile string
	)
	f := newFlags("perf [flags]", "Measures every row of the performance table on this machine, beside floors and peers in the same run,\n"+
		"and writes one results file. A slow row is shown, not an error.")
	f.BoolVar(&o.Smoke, "smoke", false, "a hundredth of the work: do all rows run?")
	f.StringVar(&o.Only, "only", "", "only the rows whose `name` contains this")
	f.StringVar(&o.Out, "out", "", "results `file` (default perf/results/<commit>.<cpu>.txt)")
	f.StringVar(&o.Dir, "dir", "", "`folder` for the journals of the run (default: the system's for temporary files)")
	f.StringVar(&cpuProfile, "cpuprofile", "", "write a CPU profile of the run to this `file`")
	f.BoolVar(&hello, "hello-server", false, "be the bare HTTP server that orders are compared with")
	c, err := f.read(args, 0, stdout)
	if err != nil {
		return exit(stderr, err)
	}
	if hello {
		return exit(stderr, serveHello(stdout))
	}
	o.Commit, o.Stdout = buildCommit, stdout
	if o.Binary, err = os.Executable(); err != nil {
		return exit(stderr, err)
	}
	o.Open = func(e perf.EngineOptions) (perf.Engine, error) { return openForPerf(c, e, stderr) }
	if cpuProfile != "" {
		file, err := os.Create(cpuProfile)
		if err != nil {
			return exit(stderr, err)
		}
		defer file.Close()
		if err := pprof.StartCPUProfile(file); err != nil {
			return exit(stderr, err)
		}
		defer pprof.StopCPUProfile()
	}
	return exit(stderr, perf.Measure(o))
}

// serveHello answers every request with the same bytes until it is killed.
func serveHello(stdout io.Writer) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Fprintln(stdout, l.Addr())
	return httpapi.ServeHello(l)
}

// coreForPerf is a whole core as the end-to-end rows use it.
type coreForPerf struct{ *core }

func (c coreForPerf) Gate() *gate.Gate { return c.gate }
func (c coreForPerf) Desk() *desk.Desk { return c.desk }
func (c coreForPerf) Durable() uint64  { return c.watermark.Durable() }
func (c coreForPerf) Stop() error      { return c.stop() }
func (c coreForPerf) Snapshot() error  { _, err := c.shadow.Take(context.Background()); return err }
func (c coreForPerf) Close() error     { return errors.Join(c.stop(), os.RemoveAll(c.o.dir)) }

func openForPerf(c *config, e perf.EngineOptions, stderr io.Writer) (perf.Engine, error) {
	o := coreOptionsFrom(c)
	o.dir, o.durability = filepath.Join(e.Dir, "journal"), e.Durability
	o.genesis = func() (*matcher.Genesis, error) { return e.Genesis, nil }
	o.fatal = func(err error) { exitOnJournalFailure(stderr, err) }
	k, err := openCore(o)
	if err != nil {
		return nil, err
	}
	return coreForPerf{k}, nil
}
