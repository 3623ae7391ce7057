package perf

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"posttrade/perf/regress"
)

// GateOptions say which builds to compare.
//
// Both programs must have the subcommand `perf sample`. The two builds should be made in the same
// way: the gate sees the difference of two programs, whatever has made it.
type GateOptions struct {
	// Base and Head are the programs' paths: what to compare with, and what to judge.
	Base, Head string
	// Only has texts, separated by commas, one of which a row's name must contain; "" for all rows.
	Only string
	// Out is the results file; "" for none.
	Out string
	// Dir is where journals are written, by each sample in a folder of its own; "" for the system's.
	Dir string
	// Commit is that of the program that makes the comparison, for the header of the results.
	Commit string
	// Stdout gets a line for each row as soon as it is decided.
	Stdout io.Writer
	// Rules are what counts as a change; zero for the default ones.
	Rules regress.Rules

	// burnRow and burn are the slow-down that a self-test adds to the head's samples of one row: its
	// name, and a share of its time.
	burnRow string
	burn    float64
	// children runs a program; tests replace it.
	children children
}

// children are the processes that the gate runs, one at a time.
type children interface {
	// rows are the micro rows of a program.
	rows(program string) ([]string, error)
	// sample runs a row once in a new process, with a share of its time burnt in addition.
	sample(program, row string, burn float64) (regress.Sample, error)
}

// ErrRegression reports that the gate has failed: it has measured, and found a regression. Every
// other error means that it could not measure. Test by errors.Is.
var ErrRegression = errors.New("the head is slower or allocates more")

// Gate measures the micro rows of two builds in turns. It returns ErrRegression when the head is
// slower beyond this run's own noise, or allocates more; the error names the rows. The verdicts are
// written first, also then.
//
// It blocks for some seconds a row, longer on a machine that is not quiet: other work makes its
// limits wider, and it then measures more rounds.
func Gate(o GateOptions) error {
	env := readEnvironment(o.Commit, filepath.Dir(o.Out))
	verdicts, err := o.judge()
	if err != nil {
		return err
	}
	var worse []string
	for _, v := range verdicts {
		if v.Outcome.Regressed() {
			worse = append(worse, fmt.Sprintf("%s %+.1f %%", v.Row, 100*v.Shift))
		}
	}
	if o.Out != "" {
		if err := o.write(env, verdicts); err != nil {
			return err
		}
	}
	if len(worse) > 0 {
		return fmt.Errorf("perf: gate: %s: %w", strings.Join(worse, ", "), ErrRegression)
	}
	return nil
}

// judge measures and prints every row that both builds have, in the order of the head.
func (o *GateOptions) judge() (verdicts []regress.Verdict, err error) {
	if o.children == nil {
		o.children = programs{dir: o.Dir}
	}
	if o.Rules == (regress.Rules{}) {
		o.Rules = regress.DefaultRules()
	}
	rows, err := o.commonRows()
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		v, err := regress.Judge(o.Rules, row, func() (regress.Round, error) { return o.round(row) })
		if err != nil {
			return nil, fmt.Errorf("perf: gate: %w", err)
		}
		fmt.Fprintln(o.Stdout, v)
		verdicts = append(verdicts, v)
	}
	return verdicts, nil
}

// commonRows are the wanted rows of the head that the base also has. A row that is new in the head
// is named and not judged; one that the head has lost is not noticed. No row at all is an error, or
// a misspelled name would pass every build.
func (o *GateOptions) commonRows() (rows []string, err error) {
	old, err := o.children.rows(o.Base)
	if err != nil {
		return nil, fmt.Errorf("perf: gate: ask the base for its rows: %w", err)
	}
	now, err := o.children.rows(o.Head)
	if err != nil {
		return nil, fmt.Errorf("perf: gate: ask the head for its rows: %w", err)
	}
	for _, row := range now {
		switch {
		case !wanted(row, o.Only):
		case slices.Contains(old, row):
			rows = append(rows, row)
		default:
			fmt.Fprintf(o.Stdout, "%-14s not judged: the base does not have it\n", row)
		}
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("perf: gate: no row of %q is in both builds", o.Only)
	}
	return rows, nil
}

// round is the base, the head and the base again: a machine that grows slower meanwhile makes both
// sides slower by as much.
func (o *GateOptions) round(row string) (r regress.Round, err error) {
	burn := 0.0
	if row == o.burnRow {
		burn = o.burn
	}
	for _, turn := range []struct {
		side, program string
		burn          float64
		sample        *regress.Sample
	}{{"base", o.Base, 0, &r.Before}, {"head", o.Head, burn, &r.Head}, {"base", o.Base, 0, &r.After}} {
		if *turn.sample, err = o.children.sample(turn.program, row, turn.burn); err != nil {
			return r, fmt.Errorf("%s: sample row=%s: %w", turn.side, row, err)
		}
	}
	return r, nil
}

// write puts the verdicts into a results file that benchstat and the report read.
func (o *GateOptions) write(env Environment, verdicts []regress.Verdict) error {
	r := &Run{o: Options{Out: o.Out, Stdout: o.Stdout}, env: env}
	for _, v := range verdicts {
		line := fmt.Sprintf(
			"BenchmarkRegression/row=%s 1 %.5g ns/op %.5g base-ns/op %.4g shift-%% %.4g noise-%% %.4g "+
				"limit-%% %.6g allocs/op %.6g base-allocs/op",
			v.Row, v.HeadNs, v.BaseNs, 100*v.Shift, 100*v.Noise, 100*v.Limit, v.HeadAllocs, v.BaseAllocs)
		r.lines = append(r.lines, line, "# "+v.String())
	}
	return r.write()
}

// SelfTest tests the gate on one build. The same build must pass, times times. With a fifth more
// instructions burnt in one row it must fail, times times, with that row named and no other. Rows
// take turns.
//
// An error other than a wrong verdict ends it at once. It takes as long as two gates for each time.
func SelfTest(o GateOptions, times int) error {
	if o.children == nil {
		o.children = programs{dir: o.Dir}
	}
	o.Head, o.Out = o.Base, ""
	rows, err := o.commonRows()
	if err != nil {
		return err
	}
	wrong := 0
	for n := range times {
		for _, planted := range []string{"", rows[n%len(rows)]} {
			fmt.Fprintf(o.Stdout, "\n== self-test %d of %d: %s (load %s)\n", n+1, times,
				plantedText(planted), firstLine("/proc/loadavg"))
			o.burnRow, o.burn = planted, plantedBurn
			verdicts, err := o.judge()
			if err != nil {
				return err
			}
			wrong += o.wrongAbout(verdicts, planted)
		}
	}
	fmt.Fprintf(o.Stdout, "\nself-test: %d wrong of %d\n", wrong, 2*times)
	if wrong > 0 {
		return fmt.Errorf("perf: gate self-test: %d of %d verdicts are wrong", wrong, 2*times)
	}
	return nil
}

// plantedBurn is the slow-down that a self-test adds.
const plantedBurn = 0.2

// plantedText is what a self-test says about a turn; "" as the row plants nothing.
func plantedText(row string) string {
	if row == "" {
		return "the same build"
	}
	return fmt.Sprintf("%.0f %% burnt in row %s", 100*plantedBurn, row)
}

// wrongAbout is 1 when the rows that regressed are not exactly the planted one, otherwise 0.
func (o *GateOptions) wrongAbout(verdicts []regress.Verdict, planted string) int {
	var found []string
	for _, v := range verdicts {
		if v.Outcome.Regressed() {
			found = append(found, v.Row)
		}
	}
	got := strings.Join(found, ", ")
	if got == planted {
		return 0
	}
	fmt.Fprintf(o.Stdout, "WRONG: regressed %q, planted %q\n", got, planted)
	return 1
}

// programs are builds of this program, run as short processes that end with this one.
type programs struct{ dir string }

// childTimeout is how long a sample may take on a very busy machine.
const childTimeout = time.Minute

// rows asks a program for its list. A program that is too old to know the subcommand is an error.
func (p programs) rows(program string) ([]string, error) {
	out, err := p.run(program, "--list")
	return strings.Fields(out), err
}

// sample runs one row in a new process, for childTimeout at most, and reads its answer.
func (p programs) sample(program, row string, burn float64) (regress.Sample, error) {
	out, err := p.run(program, "--row="+row, fmt.Sprintf("--burn=%g", burn), "--dir="+p.dir)
	if err != nil {
		return regress.Sample{}, err
	}
	return readSample(out)
}

// run runs `perf sample` of a program and returns what it printed. The error has the program's name
// without its folder, and the first line of its stderr.
func (p programs) run(program string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), childTimeout)
	defer cancel()
	var out, complaint bytes.Buffer
	cmd := exec.CommandContext(ctx, program, append([]string{"perf", "sample"}, args...)...)
	cmd.Stdout, cmd.Stderr = &out, &complaint
	err := start(cmd)
	if err == nil {
		err = cmd.Wait()
	}
	if err != nil {
		return "", fmt.Errorf("run %s: %w: %s", filepath.Base(program), err, firstOf(complaint.String()))
	}
	return out.String(), nil
}
