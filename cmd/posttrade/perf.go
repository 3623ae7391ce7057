package main

import (
	"fmt"
	"io"
	"os"
	"runtime/pprof"
	"time"

	"posttrade/app/settings"
	"posttrade/perf"
)

// perfCommands are the subcommands of perf by their names.
func perfCommands() map[string]func([]string, io.Writer) error {
	return map[string]func([]string, io.Writer) error{
		"gate": runPerfGate, "sample": runPerfSample, "report": runPerfReport,
		"verdicts": runPerfVerdicts,
	}
}

// runPerf is `posttrade perf`, with its subcommands. Without one of their names it measures the
// table.
func runPerf(args []string, stdout, stderr io.Writer) int {
	if len(args) > 0 {
		if run := perfCommands()[args[0]]; run != nil {
			return settings.Exit(stderr, run(args[1:], stdout))
		}
	}
	return settings.Exit(stderr, runPerfRows(args, stdout, stderr))
}

// runPerfRows measures the performance table. Servers that a row needs are processes of this
// binary.
func runPerfRows(args []string, stdout, stderr io.Writer) error {
	var (
		o          perf.Options
		hello      bool
		standstill bool
		cpuProfile string
	)
	f := newFlags("perf [flags] | perf gate|report|sample|verdicts -h",
		"Measures every row of the performance table on this machine, beside floors and peers in the "+
			"same run,\n"+
			"and writes one results file. A slow row is shown, not an error.")
	f.BoolVar(&o.Smoke, "smoke", false, "a hundredth of the work: do all rows run?")
	f.StringVar(&o.Only, "only", "",
		"only the rows whose `name` contains this, or one of several behind commas")
	f.StringVar(&o.Out, "out", "", "results `file` (default perf/results/<commit>.<cpu>.txt)")
	f.StringVar(&o.Dir, "dir", "",
		"`folder` for the journals of the run (default: the system's for temporary files)")
	f.StringVar(&o.Postgres, "postgres", "",
		"`URL` of a PostgreSQL server to measure beside SQLite, in a database of its own")
	f.StringVar(&o.Lobster, "lobster", "", "`folder` with LOBSTER files to replay")
	f.DurationVar(&o.Pause, "pause", 0,
		"how `long` the matcher's thread is watched for pauses (default 20s)")
	f.IntVar(&o.Restart, "restart-commands", 0,
		"commands in the journal that is started from (default 20000000; the table asks for 100000000)")
	f.StringVar(&cpuProfile, "cpuprofile", "", "write a CPU profile of the run to this `file`")
	f.StringVar(&o.Profiles, "server-profiles", "",
		"`folder` for CPU profiles of the servers that the HTTP row loads")
	f.BoolVar(&hello, "hello-server", false, "be the bare HTTP server that orders are compared with")
	f.BoolVar(&standstill, "standstills", false,
		"be the watcher for times in which the whole machine stands still, until stdin ends")
	c, err := f.read(args, 0, stdout)
	if err != nil {
		return err
	}
	if hello {
		return perf.ServeHello(stdout)
	}
	if standstill {
		return perf.WatchStandstills(os.Stdin, stdout)
	}
	if o.Restart < 0 {
		return settings.Usagef("flag --restart-commands: %d is less than 0", o.Restart)
	}
	o.Commit, o.Stdout = settings.BuildCommit, stdout
	if o.Binary, err = os.Executable(); err != nil {
		return err
	}
	o.Config, o.Stderr = c, stderr
	return profiled(cpuProfile, func() error { return perf.Measure(o) })
}

// profiled runs f and writes a CPU profile of it into a file; "" writes none.
//
// The profile is of this process only; servers that a row starts write their own
// (--server-profiles).
func profiled(name string, f func() error) error {
	if name == "" {
		return f()
	}
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := pprof.StartCPUProfile(file); err != nil {
		return err
	}
	defer pprof.StopCPUProfile()
	return f()
}

// runPerfGate is `posttrade perf gate`.
//
// The head is this program unless another is named. The self-test proves that the gate finds a
// slow-down and does not find one that is not there.
//
// Exit code 1 says that the head is slower or allocates more: a build script can stop there.
func runPerfGate(args []string, stdout io.Writer) error {
	o := perf.GateOptions{Commit: settings.BuildCommit, Stdout: stdout}
	var (
		selfTest bool
		times    int
	)
	f := newFlags("perf gate --base=program --head=program | --self-test",
		"Compares two builds: runs small pieces of the path as processes of both in turns and "+
			"judges each\n"+
			"against what the base differs from itself. Exit 1 when the head is slower or allocates more.")
	f.StringVar(&o.Base, "base", "", "the `program` to compare with")
	f.StringVar(&o.Head, "head", "", "the `program` to judge (default: this one)")
	f.StringVar(&o.Only, "only", "",
		"only the rows whose `name` contains this, or one of several behind commas")
	f.StringVar(&o.Out, "out", "", "results `file` (default: none)")
	f.StringVar(&o.Dir, "dir", "",
		"`folder` for the journals (default: the system's for temporary files)")
	f.BoolVar(&selfTest, "self-test", false,
		"judge this program against itself, and against itself with a fifth burnt on top in one row")
	f.IntVar(&times, "times", 10, "how `often` the self-test does each")
	if _, err := f.read(args, 0, stdout); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if o.Head == "" {
		o.Head = self
	}
	switch {
	case selfTest && times < 1:
		return settings.Usagef("--times must be at least 1")
	case selfTest:
		o.Base = self
		return perf.SelfTest(o, times)
	case o.Base == "":
		return settings.Usagef("--base is required")
	}
	return perf.Gate(o)
}

// runPerfReport is `posttrade perf report`. It measures nothing: it reads results files.
func runPerfReport(args []string, stdout io.Writer) error {
	var out string
	f := newFlags("perf report [--out=file] <results file or folder>",
		"Draws results files as one page of plots that needs nothing else.")
	f.StringVar(&out, "out", "", "the page's `file` (default: beside the results, .html)")
	if _, err := f.read(args, 1, stdout); err != nil {
		return err
	}
	if len(f.rest) == 0 {
		return settings.Usagef("perf report needs a results file or a folder of them")
	}
	return perf.WriteReport(f.rest[0], out, stdout)
}

// runPerfVerdicts is `posttrade perf verdicts`. A target that one run has missed may be noise of
// that run, so it counts over the last runs of a kind of machine.
func runPerfVerdicts(args []string, stdout io.Writer) error {
	var (
		cpu  string
		last int
	)
	f := newFlags("perf verdicts [--cpu=text] [--last=8] <results file or folder>",
		"Prints how often the last runs of each kind of machine have met each target of the fullest one.")
	f.StringVar(&cpu, "cpu", "", "only machines with this `text` in the processor's name")
	f.IntVar(&last, "last", perf.LastRuns, "how many `runs` of a kind count")
	if _, err := f.read(args, 1, stdout); err != nil {
		return err
	}
	switch {
	case len(f.rest) == 0:
		return settings.Usagef("perf verdicts needs a results file or a folder of them")
	case last < 1:
		return settings.Usagef("--last must be at least 1")
	}
	return perf.WriteVerdicts(f.rest[0], cpu, last, stdout)
}

// runPerfSample is `posttrade perf sample`: what the gate runs, once for each piece, so that each
// is measured in a fresh process.
func runPerfSample(args []string, stdout io.Writer) error {
	var (
		o    perf.SampleOptions
		list bool
	)
	f := newFlags("perf sample --row=name | --list",
		"Measures one small piece of the path in this process, for perf gate.")
	f.StringVar(&o.Row, "row", "", "`name` of the row")
	f.StringVar(&o.Dir, "dir", "",
		"`folder` for a journal (default: the system's for temporary files)")
	f.Float64Var(&o.Burn, "burn", 0,
		"burn this `share` of the row's time on top of it: a slow-down to find")
	f.DurationVar(&o.For, "for", 80*time.Millisecond, "how `long` to measure")
	f.BoolVar(&list, "list", false, "list the rows")
	if _, err := f.read(args, 0, stdout); err != nil {
		return err
	}
	if list {
		for _, row := range perf.MicroRows() {
			fmt.Fprintln(stdout, row)
		}
		return nil
	}
	s, err := perf.Sample(o)
	if err != nil {
		return err
	}
	return perf.WriteSample(stdout, s)
}
