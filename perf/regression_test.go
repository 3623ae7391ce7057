package perf

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"posttrade/perf/regress"
	"posttrade/ring/must"
)

// madeUp are builds that exist only as figures.
type madeUp struct {
	random *rand.Rand
	known  map[string][]string // rows by program
	ns     map[string]float64  // by program; 100 when absent
	allocs map[string]float64  // by program
	broken map[string]error    // by program, when a sample is asked for
	asked  map[string]int      // samples by row
}

func newMadeUp(seed uint64) *madeUp {
	rows := []string{"ring", "book", "gate"}
	return &madeUp{
		random: rand.New(rand.NewPCG(seed, 1)), known: map[string][]string{"base": rows, "head": rows},
		ns: map[string]float64{}, allocs: map[string]float64{}, broken: map[string]error{},
		asked: map[string]int{},
	}
}

func (m *madeUp) rows(program string) ([]string, error) {
	if m.known[program] == nil {
		return nil, errors.New("no such program")
	}
	return m.known[program], nil
}

func (m *madeUp) sample(program, row string, burn float64) (regress.Sample, error) {
	m.asked[row]++
	ns := m.ns[program+"/"+row]
	if ns == 0 {
		ns = 100
	}
	return regress.Sample{Ns: ns * (1 + burn) * (1 + 0.01*m.random.Float64()),
		Allocs: m.allocs[program+"/"+row]}, m.broken[program]
}

func gateOf(m *madeUp, out *strings.Builder) GateOptions {
	return GateOptions{Base: "base", Head: "head", Stdout: out, children: m}
}

func TestGatePassesWhatIsTheSameAndNamesWhatIsNot(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*madeUp)
		only   string
		want   string // in the error; "" passes
	}{
		{"the same", func(*madeUp) {}, "", ""},
		{"a slower row", func(m *madeUp) { m.ns["head/book"] = 120 }, "", "book +"},
		{"two slower rows", func(m *madeUp) { m.ns["head/book"], m.ns["head/ring"] = 120, 130 }, "",
			"ring +"},
		{"one more allocation", func(m *madeUp) { m.allocs["head/gate"] = 1 }, "", "gate "},
		{"a faster row", func(m *madeUp) { m.ns["head/book"] = 80 }, "", ""},
		{"a slower row that nobody asked for", func(m *madeUp) { m.ns["head/book"] = 120 }, "ring,gate",
			""},
		{"a row that the base does not have", func(m *madeUp) { m.known["base"] = []string{"ring"} }, "",
			""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out strings.Builder
			m := newMadeUp(1)
			tt.change(m)
			o := gateOf(m, &out)
			o.Only = tt.only
			err := Gate(o)
			if tt.want == "" && err != nil || tt.want != "" &&
				(!errors.Is(err, ErrRegression) || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("got %v, want %q\n%s", err, tt.want, out.String())
			}
		})
	}
}

func TestGateReportsWhatItCannotDo(t *testing.T) {
	cause := errors.New("planted")
	for name, tt := range map[string]struct {
		change func(*madeUp, *GateOptions)
		want   string
	}{
		"no base": {func(m *madeUp, _ *GateOptions) { delete(m.known, "base") }, "ask the base"},
		"no head": {func(m *madeUp, _ *GateOptions) { delete(m.known, "head") }, "ask the head"},
		"no common row": {func(m *madeUp, _ *GateOptions) { m.known["base"] = []string{"other"} },
			"in both builds"},
		"a broken base": {func(m *madeUp, _ *GateOptions) { m.broken["base"] = cause },
			"base: sample row=ring: planted"},
		"a broken head": {func(m *madeUp, _ *GateOptions) { m.broken["head"] = cause },
			"head: sample row=ring: planted"},
		"an odd file name": {func(_ *madeUp, o *GateOptions) { o.Out = "/dev/null/x/y" }, "results"},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			m := newMadeUp(1)
			o := gateOf(m, &out)
			tt.change(m, &o)
			if err := Gate(o); err == nil || errors.Is(err, ErrRegression) ||
				!strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestGateWritesItsVerdicts(t *testing.T) {
	var out strings.Builder
	m := newMadeUp(1)
	m.ns["head/book"], m.allocs["head/gate"] = 120, 2
	o := gateOf(m, &out)
	o.Out, o.Commit = filepath.Join(t.TempDir(), "results", "gate.txt"), "abc"
	if err := Gate(o); !errors.Is(err, ErrRegression) {
		t.Fatal(err)
	}
	text := must.Get(os.ReadFile(o.Out))(t)
	for _, want := range []string{"commit: abc\n", "BenchmarkRegression/row=ring 1 ", " base-ns/op ",
		"# book ", "SLOWER", "MORE ALLOCATIONS", " 2 allocs/op 0 base-allocs/op"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

func TestGateMeasuresARegressionTwice(t *testing.T) {
	var out strings.Builder
	m := newMadeUp(1)
	m.ns["head/book"] = 120
	if err := Gate(gateOf(m, &out)); !errors.Is(err, ErrRegression) {
		t.Fatal(err)
	}
	if m.asked["book"] != 2*m.asked["ring"] || m.asked["ring"] != 3*regress.DefaultRules().Rounds {
		t.Errorf("asked %v", m.asked)
	}
}

func TestSelfTestPassesWithAGoodGateAndFailsWithABadOne(t *testing.T) {
	var out strings.Builder
	if err := SelfTest(gateOf(newMadeUp(5), &out), 10); err != nil {
		t.Errorf("%v\n%s", err, out.String())
	}
	if got := strings.Count(out.String(), "== self-test"); got != 20 {
		t.Errorf("%d of 20 gates were run", got)
	}
	out.Reset()
	blind := gateOf(newMadeUp(5), &out)
	blind.Rules = regress.DefaultRules()
	blind.Rules.Floor = 0.5 // detects nothing
	if err := SelfTest(blind, 3); err == nil || !strings.Contains(err.Error(), "3 of 6") {
		t.Errorf("a blind gate: %v", err)
	}
	out.Reset()
	jumpy := gateOf(newMadeUp(5), &out)
	jumpy.Rules = regress.DefaultRules()
	jumpy.Rules.Floor, jumpy.Rules.Margin = -1, -1 // detects changes that do not exist
	if err := SelfTest(jumpy, 3); err == nil || !strings.Contains(out.String(), "WRONG") {
		t.Errorf("a jumpy gate: %v", err)
	}
	m := newMadeUp(5)
	m.broken["base"] = errors.New("planted")
	if err := SelfTest(gateOf(m, &out), 1); err == nil {
		t.Error("a broken build passes the self-test")
	}
	delete(m.known, "base")
	if err := SelfTest(gateOf(m, &out), 1); err == nil {
		t.Error("a missing build passes the self-test")
	}
}

// TestProgramsRunAndReportChildren uses programs that every machine has.
func TestProgramsRunAndReportChildren(t *testing.T) {
	script := filepath.Join(t.TempDir(), "build")
	write := func(text string) {
		must.OK(t, os.WriteFile(script, []byte("#!/bin/sh\n"+text), 0o700))
	}
	p := programs{dir: t.TempDir()}
	write(`[ "$1 $2 $3" = "perf sample --list" ] && echo "ring book" || echo "sample ns=12.5 ` +
		`allocs=0.25"`)
	if rows, err := p.rows(script); err != nil || !slices.Equal(rows, []string{"ring", "book"}) {
		t.Errorf("rows %v, %v", rows, err)
	}
	if s, err := p.sample(script, "ring", 0.2); err != nil ||
		s != (regress.Sample{Ns: 12.5, Allocs: 0.25}) {
		t.Errorf("sample %+v, %v", s, err)
	}
	write("echo 'unexpected argument sample' >&2; exit 2")
	if _, err := p.rows(script); err == nil || !strings.Contains(err.Error(), "unexpected argument") {
		t.Errorf("an old build: %v", err)
	}
	if _, err := p.sample(script, "ring", 0); err == nil {
		t.Error("a failing child is no error")
	}
	write("echo hello")
	if _, err := p.sample(script, "ring", 0); err == nil || !strings.Contains(err.Error(), "hello") {
		t.Errorf("got %v", err)
	}
}
