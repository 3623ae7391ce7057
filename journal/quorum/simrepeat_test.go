package quorum

import (
	"fmt"
	legacyrand "math/rand"
	"slices"
	"strings"
	"testing"
)

// TestFaultScheduleIsAFunctionOfTheSeed draws schedules twice, and checks that other seeds draw
// other schedules and that every kind of fault is drawn.
func TestFaultScheduleIsAFunctionOfTheSeed(t *testing.T) {
	seen, kinds := map[string]uint64{}, map[string]int{}
	for seed := uint64(1); seed <= 50; seed++ {
		faults := simSchedule(seed, simHorizon)
		if !slices.Equal(faults, simSchedule(seed, simHorizon)) {
			t.Errorf("seed %d draws two schedules", seed)
		}
		text := fmt.Sprint(faults)
		if other, known := seen[text]; known {
			t.Errorf("seeds %d and %d draw the same schedule", seed, other)
		}
		seen[text] = seed
		for i, f := range faults {
			kinds[f.kind]++
			under := 0
			for _, other := range faults[:i] {
				if other.at+other.lasts > f.at {
					under++
				}
			}
			if under > 1 {
				t.Errorf("seed %d: %v comes while %d others last", seed, f, under)
			}
		}
	}
	for _, kind := range simKinds() {
		if kinds[kind] < 10 {
			t.Errorf("%q comes %d times in 50 schedules", kind, kinds[kind])
		}
	}
	t.Logf("%v", kinds)
}

// TestSimulationRepeats runs one seed twice. The faults, their times, the fate of a message of a
// given number, and the library's own draws are the same. The runtime decides which goroutine runs
// first at one instant, so leaders and answers may differ from some point on; the log line names
// that point.
func TestSimulationRepeats(t *testing.T) {
	a, b := simulate(t, 7), simulate(t, 7)
	if x, y := a.scheduled(), b.scheduled(); !slices.Equal(x, y) {
		t.Errorf("the same seed had other faults:\n%s\n%s", strings.Join(x, "\n"), strings.Join(y, "\n"))
	}
	x, y := a.events(), b.events()
	same := 0
	for same < min(len(x), len(y)) && x[same] == y[same] {
		same++
	}
	t.Logf("%d and %d events, the first %d are the same; %d and %d operations",
		len(x), len(y), same, len(a.history), len(b.history))
}

// TestTheLibrarysTimeoutsAreSeeded checks that seeding has an effect.
func TestTheLibrarysTimeoutsAreSeeded(t *testing.T) {
	seedLibrary(5)
	want := legacyrand.Int63()
	seedLibrary(5)
	if got := legacyrand.Int63(); got != want {
		t.Errorf("the same seed gives %d and %d", want, got)
	}
}

// events is the trace without what members log, which holds random names.
func (s *simulation) events() []string {
	return slices.DeleteFunc(slices.Clone(s.trace),
		func(line string) bool { return strings.Contains(line, " says: ") })
}

// scheduled is the part of the trace that a schedule determines.
func (s *simulation) scheduled() (lines []string) {
	for _, line := range s.trace {
		at, _, chosen := strings.Cut(line, ": member ")
		if strings.Contains(at, " fault ") && chosen {
			lines = append(lines, at)
		}
	}
	return lines
}
