package perf

import (
	"io"
	"math"
	"runtime"
	"strings"
	"testing"
)

func TestStagesOfStacks(t *testing.T) {
	for _, tt := range []struct{ functions, want string }{
		{"runtime.mallocgc posttrade/matcher.(*Engine).Apply posttrade/matcher.(*Stage).loop", "matcher"},
		{"posttrade/matcher.(*Engine).Apply posttrade/journal.(*Snapshotter).Run", "shadow"},
		{"posttrade/blotter.(*imageWriter).order posttrade/journal.(*Snapshotter).Run", "shadow"},
		{"github.com/cockroachdb/pebble/v2.(*DB).Apply posttrade/journal.(*Journal).apply posttrade/journal.(*Recorder).loop", "commit"},
		{"posttrade/journal.(*Block).Command posttrade/journal.(*Recorder).loop", "recorder"},
		{"posttrade/blotter.(*Views).Observe posttrade/journal.(*Recorder).loop", "recorder"},
		{"posttrade/journal.get.func1 posttrade/journal.alike.func1", "reading"},
		{"posttrade/matcher/desk.(*Desk).Acquire posttrade/perf.pump", "desk"},
		{"posttrade/matcher/gate.(*Gate).Screen posttrade/perf.pump", "gate"},
		{"posttrade/perf.pump posttrade/perf.measureHeap", "load"},
		{"main.(*controlSink).Apply posttrade/sidecars/bootstrap.(*Bootstrap).Run", "feed"},
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
		{"runtime.mallocgc bytes.growSlice posttrade/journal.(*Block).Command x", "journal.(*Block).Command"},
		{"main.run", "main.run"},
		{"runtime.mallocgc", "runtime"},
	} {
		if got := siteName(strings.Fields(tt.functions)); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.functions, got, tt.want)
		}
	}
}

func TestProfilesAreSubtracted(t *testing.T) {
	before := heapProfile{"a": {name: "a", stage: "desk", objects: 10, bytes: 100}, "gone": {name: "gone", stage: "load", objects: 5, bytes: 50}}
	after := heapProfile{"a": {name: "a", stage: "desk", objects: 30, bytes: 90}, "b": {name: "b", stage: "gate", objects: 4, bytes: 8},
		"c": {name: "b", stage: "gate", objects: 2, bytes: 8}}
	d := after.since(before)
	if d.allocated("desk") != 20 || d.allocated("gate") != 6 || d.allocated("load") != 0 {
		t.Errorf("%+v", d)
	}
	if g := d.growth(5); len(g) != 1 || g[0].name != "b" || g[0].bytes != 16 { // a and gone hold less
		t.Errorf("growth %+v", g)
	}
	if g := d.askers(1); len(g) != 1 || g[0].name != "a" || g[0].objects != 20 {
		t.Errorf("askers %+v", g)
	}
}

var kept [][]byte // of the next test, so that it is on the heap

// TestProfileFindsWhatIsAskedFor allocates and finds it again, near enough.
func TestProfileFindsWhatIsAskedFor(t *testing.T) {
	if err := profiled(func() error {
		before := readHeap(nil)
		const n, size = 2000, 4096
		for range n {
			kept = append(kept, make([]byte, size))
		}
		after := readHeap(nil)
		kept = nil
		d := after.profile.since(before.profile)
		if got := d.allocated("load"); got < n/2 || got > n*2 {
			t.Errorf("%v objects of %d found", got, n)
		}
		if grown := after.bytes - before.bytes; grown < n*size || grown > 2*n*size {
			t.Errorf("grown by %d", grown)
		}
		if asked := after.before - before.after; asked < n || asked > 2*n {
			t.Errorf("%d allocations counted, want %d", asked, n)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
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
	grown := heapProfile{"x": {name: "journal.leak", stage: "recorder", objects: 1000, bytes: 9_000_000}}
	for _, tt := range []struct {
		name    string
		late    heapState
		verdict []string
	}{
		{"flat", heapState{bytes: 1<<20 + 40_000, profile: heapProfile{}}, []string{"| 0 | <= 0 | met |", "| 0 | <= 0 | met |"}},
		{"smaller", heapState{bytes: 1, profile: heapProfile{}}, []string{"| 0 | <= 0 | met |", "| 0 | <= 0 | met |"}},
		{"a leak", heapState{bytes: 10 << 20, profile: grown}, []string{"| 10.5 | <= 0 | missed |", "| 0.001 | <= 0 | missed |"}},
	} {
		r := &Run{o: Options{Stdout: io.Discard}}
		r.heapFigures(heapState{bytes: 1 << 20, profile: heapProfile{}}, tt.late, 1_000_000, 900_000)
		for i, want := range tt.verdict {
			if !strings.Contains(r.targets[i].String(), want) {
				t.Errorf("%s: %s, want %s", tt.name, r.targets[i], want)
			}
		}
		if text := strings.Join(r.lines, "\n"); (tt.name == "a leak") != strings.Contains(text, "Heap/op=grown/at=journal.leak 1 9e+06 bytes") {
			t.Errorf("%s:\n%s", tt.name, text)
		}
	}
}
