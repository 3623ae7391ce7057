package regress

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"posttrade/ring/must"
)

// machine generates samples like a real machine: each process differs a little by its memory
// layout, and other work slows some processes down.
type machine struct {
	name   string
	layout float64 // spread of the processes, share of the time
	busy   float64 // share of the processes that are disturbed
	slowed float64 // average slow-down of those
	drift  float64 // slow-down of the machine in ten rounds
	modes  float64 // slow-down of every second process
	moods  float64 // slow-down of whole rounds, four of five
}

var machines = []machine{
	{name: "quiet", layout: 0.005},
	{name: "neighbours", layout: 0.01, busy: 0.5, slowed: 0.3},
	{name: "crowded", layout: 0.015, busy: 0.7, slowed: 0.6},
	{name: "throttling", layout: 0.01, busy: 0.2, slowed: 0.2, drift: 0.1},
	{name: "two speeds", layout: 0.005, modes: 0.08},
	{name: "a busy sibling", layout: 0.01, busy: 0.1, slowed: 0.2, moods: 0.9},
}

// change is the difference of the head.
type change struct {
	factor             float64
	allocs, headAllocs float64
}

// rounds returns a function that gives the samples of one round after the other.
func (m machine) rounds(seed uint64, c change) func() (Round, error) {
	random := rand.New(rand.NewPCG(seed, 99))
	n, mood := 0.0, 1.0
	sample := func(factor, allocs float64) Sample {
		ns := 100 * mood * factor * (1 + m.layout*random.NormFloat64())
		if random.Float64() < m.busy {
			ns *= 1 + m.slowed*random.ExpFloat64()
		}
		if random.Float64() < 0.5 {
			ns *= 1 + m.modes
		}
		stray := float64(random.IntN(3)) / 1000 // of the runtime
		return Sample{ns * (1 + m.drift*n/10), allocs + stray}
	}
	return func() (Round, error) {
		if n++; random.Float64() < 0.8 {
			mood = 1 + m.moods
		} else {
			mood = 1
		}
		return Round{Before: sample(1, c.allocs), Head: sample(c.factor, c.headAllocs),
			After: sample(1, c.allocs)}, nil
	}
}

// row is eight rounds.
func (m machine) row(seed uint64) (row Row) {
	next := m.rounds(seed, change{factor: 1})
	row.Name = m.name
	for range 8 {
		round, _ := next()
		row.Add(round)
	}
	return row
}

func judge(t *testing.T, m machine, seed uint64, c change) Verdict {
	t.Helper()
	return must.Get(Judge(DefaultRules(), m.name, m.rounds(seed, c)))(t)
}

func TestAFifthSlowerIsAlwaysSeenAndTheSameNever(t *testing.T) {
	for _, m := range machines {
		t.Run(m.name, func(t *testing.T) {
			for seed := range uint64(60) {
				if v := judge(t, m, seed, change{1, 0, 0}); v.Outcome.Regressed() {
					t.Errorf("seed %d: the same build: %v", seed, v)
				}
				if v := judge(t, m, seed, change{1.2, 0, 0}); v.Outcome != Slower {
					t.Errorf("seed %d: a fifth slower: %v", seed, v)
				}
			}
		})
	}
}

func TestOneMoreAllocationIsARegressionAndStrayOnesAreNot(t *testing.T) {
	for _, m := range machines {
		for seed := range uint64(20) {
			if v := judge(t, m, seed, change{1, 3, 3}); v.Outcome.Regressed() {
				t.Errorf("%s, seed %d: as many allocations: %v", m.name, seed, v)
			}
			if v := judge(t, m, seed,
				change{1, 3, 3.01}); v.Outcome != MoreAllocs { // one in a hundred operations
				t.Errorf("%s, seed %d: more allocations: %v", m.name, seed, v)
			}
			if v := judge(t, m, seed, change{0.7, 3, 4}); v.Outcome != MoreAllocs {
				t.Errorf("%s, seed %d: faster does not pay for an allocation: %v", m.name, seed, v)
			}
			if v := judge(t, m, seed, change{1, 3, 2}); v.Outcome.Regressed() {
				t.Errorf("%s, seed %d: fewer allocations: %v", m.name, seed, v)
			}
		}
	}
}

func TestVerdictsOfKnownSamples(t *testing.T) {
	flat := func(n int, ns, allocs float64) []Sample {
		out := make([]Sample, n)
		for i := range out {
			out[i] = Sample{ns, allocs}
		}
		return out
	}
	wild := flat(8, 100, 0)
	for i := range wild {
		wild[i].Ns *= 1 + float64(i)/4
	}
	for _, tt := range []struct {
		name string
		row  Row
		want Outcome
		in   string
	}{
		{"the same", Row{"r", flat(8, 100, 0), flat(4, 100, 0)}, Same, "+0.0 %"},
		{"within the limit", Row{"r", flat(8, 100, 0), flat(4, 104.9, 0)}, Same, "limit 5.0 %"},
		{"beyond the limit", Row{"r", flat(8, 100, 0), flat(4, 105.1, 0)}, Slower,
			"r              SLOWER"},
		{"faster", Row{"r", flat(8, 100, 0), flat(4, 90, 0)}, Faster, "-10.0 %"},
		{"one more allocation", Row{"r", flat(8, 100, 1), flat(4, 100, 2)}, MoreAllocs,
			"allocs/op base 1, head 2"},
		{"fewer allocations", Row{"r", flat(8, 100, 2), flat(4, 100, 1)}, Same,
			"allocs/op base 2, head 1"},
		{"too noisy to say", Row{"r", wild, flat(4, 120, 0)}, Unsure, "unsure"},
		{"so slow that no noise explains it", Row{"r", wild, flat(4, 1000, 0)}, Slower, "SLOWER"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v := must.Get(Decide(DefaultRules(), tt.row))(t)
			if v.Outcome != tt.want || !strings.Contains(v.String(), tt.in) {
				t.Errorf("got %v, want %v and %q", v, tt.want, tt.in)
			}
		})
	}
}

func TestRowsThatCannotBeDecidedAreErrors(t *testing.T) {
	good := machines[0].row(1)
	with := func(s Sample) Row {
		row := machines[0].row(1)
		row.Head[1] = s
		return row
	}
	for name, row := range map[string]Row{
		"no samples":         {Name: "r"},
		"few of the head":    {Name: "r", Base: good.Base, Head: good.Head[:LeastSamples-1]},
		"one of the base":    {Name: "r", Base: good.Base[1:], Head: good.Head},
		"no time":            with(Sample{0, 0}),
		"time without end":   with(Sample{math.Inf(1), 0}),
		"not a time":         with(Sample{math.NaN(), 0}),
		"negative counts":    with(Sample{1, -1}),
		"counts of nonsense": with(Sample{1, math.NaN()}),
	} {
		if _, err := Decide(DefaultRules(), row); !errors.Is(err, ErrSamples) {
			t.Errorf("%s: got %v, want %v", name, err, ErrSamples)
		}
	}
}

func TestDecideDoesNotTouchItsSamples(t *testing.T) {
	row := machines[1].row(3)
	before := fmt.Sprint(row)
	must.Get(Decide(DefaultRules(), row))(t)
	if fmt.Sprint(row) != before {
		t.Error("the samples were changed")
	}
}

func TestOutcomesHaveWords(t *testing.T) {
	for o, want := range map[Outcome]string{Same: "same", MoreAllocs: "MORE ALLOCATIONS",
		Outcome(9): "unknown", Outcome(-1): "unknown"} {
		if o.String() != want {
			t.Errorf("%d is %q, want %q", int(o), o, want)
		}
	}
}

func TestJudgeAsksForMoreWhenItIsUnsure(t *testing.T) {
	rules := Rules{Floor: 0.05, Margin: 1.5, Unsure: 0.15, Rounds: 4, MostRounds: 9}
	for _, tt := range []struct {
		name   string
		head   float64
		wild   bool
		rounds int
		want   Outcome
	}{
		{"the same", 100, false, 4, Same},
		{"slower, twice", 120, false, 8, Slower},
		{"noise that does not end", 100, true, 9, Unsure},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := 0
			v, err := Judge(rules, "r", func() (Round, error) {
				n++
				base := Sample{Ns: 100}
				if tt.wild {
					base.Ns *= math.Pow(2, float64(n))
				}
				return Round{base, Sample{Ns: tt.head}, base}, nil
			})
			if err != nil || n != tt.rounds || v.Outcome != tt.want {
				t.Errorf("%d rounds, %v, %v; want %d rounds and %v", n, v, err, tt.rounds, tt.want)
			}
		})
	}
}

func TestJudgeForgivesWhatDoesNotHappenAgain(t *testing.T) {
	rules := Rules{Floor: 0.05, Margin: 1.5, Unsure: 0.15, Rounds: 4, MostRounds: 4}
	n := 0
	v, err := Judge(rules, "r", func() (Round, error) {
		n++
		head := Sample{Ns: 100}
		if n <= 4 {
			head.Ns = 150
		}
		return Round{Sample{Ns: 100}, head, Sample{Ns: 100}}, nil
	})
	if err != nil || v.Outcome != Same || n != 8 {
		t.Errorf("%v, %v after %d rounds", v, err, n)
	}
}

func TestJudgeReturnsWhatWentWrong(t *testing.T) {
	cause := errors.New("planted")
	if _, err := Judge(DefaultRules(), "r",
		func() (Round, error) { return Round{}, cause }); !errors.Is(err, cause) {
		t.Errorf("got %v, want %v", err, cause)
	}
	if _, err := Judge(DefaultRules(), "r",
		func() (Round, error) { return Round{}, nil }); !errors.Is(err, ErrSamples) {
		t.Errorf("got %v, want %v", err, ErrSamples)
	}
}
