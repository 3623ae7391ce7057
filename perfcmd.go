package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"runtime/pprof"

	"posttrade/httpapi"
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
	f.StringVar(&o.Only, "only", "", "only the rows whose `name` contains this, or one of several behind commas")
	f.StringVar(&o.Out, "out", "", "results `file` (default perf/results/<commit>.<cpu>.txt)")
	f.StringVar(&o.Dir, "dir", "", "`folder` for the journals of the run (default: the system's for temporary files)")
	f.StringVar(&o.Postgres, "postgres", "", "`URL` of a PostgreSQL server to measure beside SQLite, in a database of its own")
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
