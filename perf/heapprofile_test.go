package perf

import (
	"io"
	"math"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"posttrade/ring/must"
)

func TestStagesOfStacks(t *testing.T) {
	for _, tt := range []struct{ functions, want string }{
		{"runtime.mallocgc posttrade/matcher.(*Engine).Apply posttrade/matcher.(*Stage).loop", "matcher"},
		{"posttrade/matcher.(*Engine).Apply posttrade/journal.(*Snapshotter).Run", "shadow"},
		{"posttrade/blotter.(*imageWriter).order posttrade/journal.(*Snapshotter).Run", "shadow"},
		{"github.com/cockroachdb/pebble/v2.(*DB).Apply posttrade/journal.(*Journal).apply " +
			"posttrade/journal.(*Recorder).loop", "commit"},
		{"posttrade/journal.(*Block).Command posttrade/journal.(*Recorder).loop", "recorder"},
		{"posttrade/blotter.(*Views).Observe posttrade/journal.(*Recorder).loop", "recorder"},
		{"posttrade/journal.get.func1 posttrade/journal.alike.func1", "reading"},
		{"posttrade/matcher/desk.(*Desk).Acquire posttrade/perf.pump", "desk"},
		{"posttrade/matcher/gate.(*Gate).Screen posttrade/perf.pump", "gate"},
		{"posttrade/perf.pump posttrade/perf.measureHeap", "load"},
		{"posttrade/sidecars/feeds.(*Sink).Apply x", "feed"},
		{"net.(*conn).Read", "other"},
		{"", "other"},
	} {
		if got := stageOf(strings.Fields(tt.functions)); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.functions, got, tt.want)
		}
	}
}

func TestSitesAreNamedByTheirOwnFunction(t *testing.T) {
	for _, tt := range []struct{ functions, want string }{
		{"runtime.mallocgc bytes.growSlice posttrade/journal.(*Block).Command x",
			"journal.(*Block).Command"},
		{"main.run", "main.run"},
		{"runtime.mallocgc", "runtime"},
	} {
		if got := siteName(strings.Fields(tt.functions)); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.functions, got, tt.want)
		}
	}
}

func TestProfilesAreSubtracted(t *testing.T) {
	before := heapProfile{"a": {name: "a", stage: "desk", objects: 10, bytes: 100},
		"gone": {name: "gone", stage: "load", objects: 5, bytes: 50}}
	after := heapProfile{"a": {name: "a", stage: "desk", objects: 30, bytes: 90},
		"b": {name: "b", stage: "gate", objects: 4, bytes: 8},
		"c": {name: "b", stage: "gate", objects: 2, bytes: 8}}
	d := after.since(before)
	if d.allocated("desk") != 20 || d.allocated("gate") != 6 || d.allocated("load") != 0 {
		t.Errorf("%+v", d)
	}
	// a and gone hold fewer bytes
	if g := d.growth(5); len(g) != 1 || g[0].name != "b" || g[0].bytes != 16 {
		t.Errorf("growth %+v", g)
	}
	if g := d.askers(1); len(g) != 1 || g[0].name != "a" || g[0].objects != 20 {
		t.Errorf("askers %+v", g)
	}
}

var kept [][]byte // package variable, so that it is on the heap

// TestProfileFindsWhatIsAskedFor allocates and finds the allocations again, approximately.
func TestProfileFindsWhatIsAskedFor(t *testing.T) {
	must.OK(t, profiled(func() error {
		before := readHeap()
		const n, size = 2000, 4096
		for range n {
			kept = append(kept, make([]byte, size))
		}
		after := readHeap()
		kept = nil
		d := after.profile.since(before.profile)
		if got := d.allocated("load"); got < n/2 || got > n*2 {
			t.Errorf("%v objects of %d found", got, n)
		}
		if asked := after.before - before.after; asked < n || asked > 2*n {
			t.Errorf("%d allocations counted, want %d", asked, n)
		}
		return nil
	}))
	if runtime.MemProfileRate == heapRate {
		t.Error("the rate stays")
	}
}

func TestUnsampledIsExactForLargeObjects(t *testing.T) {
	if objects, bytes := unsampled(3, 3<<20); math.Abs(objects-3) > 0.01 || math.Abs(bytes-3<<20) > 1 {
		t.Errorf("%v objects of %v bytes", objects, bytes)
	}
	if objects, _ := unsampled(1, 64); objects < 250 || objects > 260 {
		t.Errorf("one of 64 bytes stands for %v", objects)
	}
	if objects, bytes := unsampled(0, 0); objects != 0 || bytes != 0 {
		t.Error("nothing stands for something")
	}
}

// TestHeapFigures states a heap that grew and one that did not.
func TestHeapFigures(t *testing.T) {
	leaking := heapProfile{"x": {name: "journal.leak", stage: "recorder", objects: 10_000,
		bytes: 9_000_000}}
	for _, tt := range []struct {
		name    string
		growth  float64 // bytes a command
		late    heapState
		verdict []string
	}{
		{"flat", 0, heapState{profile: heapProfile{}},
			[]string{"| 0 | <= 0 | met |", "| 0 | <= 0 | met |"}},
		{"smaller", -1, heapState{profile: heapProfile{}},
			[]string{"| 0 | <= 0 | met |", "| 0 | <= 0 | met |"}},
		{"a leak", 10.5, heapState{profile: leaking},
			[]string{"| 10.5 | <= 0 | missed |", "| 0.001 | <= 0 | missed |"}},
	} {
		r := &Run{o: Options{Stdout: io.Discard}}
		readings := readingsOf(func(commands float64) float64 { return 10<<20 + tt.growth*commands })
		r.heapFigures(heapState{profile: heapProfile{}}, tt.late, readings)
		for i, want := range tt.verdict {
			if !strings.Contains(r.targets[i].String(), want) {
				t.Errorf("%s: %s, want %s", tt.name, r.targets[i], want)
			}
		}
		text := strings.Join(r.lines, "\n")
		if (tt.name == "a leak") != strings.Contains(text,
			"Heap/op=grown/at=journal.leak 1 9e+06 bytes") ||
			strings.Count(text, "Heap/op=reading/commands=") != len(readings) {
			t.Errorf("%s:\n%s", tt.name, text)
		}
	}
}

// readingsOf are the row's readings of a heap; bytes gives its size by the number of commands.
func readingsOf(bytes func(commands float64) float64) (readings []heapReading) {
	for part := range heapParts {
		commands := (part + 1) * (10_000_000 / heapParts)
		readings = append(readings, heapReading{commands, bytes(float64(commands))})
	}
	return readings
}

// TestGrowthOfTheHeap: fluctuation of a store is no growth. A tenth of a byte per command is
// growth, in whatever steps it comes.
func TestGrowthOfTheHeap(t *testing.T) {
	const seed, leak = 7, 0.1
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	// 70,000 to either side, as measured on a real store
	store := func() float64 { return random.Float64() * 140_000 }
	// a table that holds at least a tenth of a byte per command
	doubling := func(commands float64) float64 {
		size := 1024.0
		for size < leak*commands {
			size *= 2
		}
		return size
	}
	for _, tt := range []struct {
		name  string
		bytes func(commands float64) float64
		want  float64
	}{
		{"nothing", func(float64) float64 { return 1e7 }, 0},
		{"a store", func(float64) float64 { return 1e7 + store() }, 0},
		{"one reading is high", func(c float64) float64 {
			if c == 6_000_000 {
				return 3e7
			}
			return 1e7 + store()
		}, 0},
		{"a leak", func(c float64) float64 { return 1e7 + leak*c }, 0.1},
		{"a leak beside a store", func(c float64) float64 { return 1e7 + leak*c + store() }, 0.1},
		{"a table that doubles", func(c float64) float64 { return 1e7 + doubling(c) + store() }, 0.1},
		{"a heap that shrinks", func(c float64) float64 { return 1e8 - 3*c }, 0},
	} {
		got := roundTo(growthOf(readingsOf(tt.bytes)), heapNoise)
		if low, high := tt.want/2, tt.want*2; got < low || got > high {
			t.Errorf("%s: %v bytes a command, want about %v", tt.name, got, tt.want)
		}
	}
	if growthOf([]heapReading{{1, 1}}) != 0 || growthOf(nil) != 0 {
		t.Error("one reading grows")
	}
}

// TestReadingsSeeALeak keeps a tenth of a byte for each of ten million commands on the real heap,
// and then nothing.
func TestReadingsSeeALeak(t *testing.T) {
	const part, object = 10_000_000 / heapParts, 64
	for _, tt := range []struct{ leak, want float64 }{{0.1, 0.1}, {0, 0}} {
		kept = make([][]byte, 0, 1<<17)
		if got := roundTo(growthOf(readingsOf(func(float64) float64 {
			for range int(tt.leak * part / object) {
				kept = append(kept, make([]byte, object))
			}
			return reachable()
		})), heapNoise); got != tt.want {
			t.Errorf("a leak of %v bytes a command is %v", tt.leak, got)
		}
		kept = nil
	}
}
