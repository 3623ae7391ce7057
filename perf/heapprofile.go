package perf

import (
	"cmp"
	"math"
	"runtime"
	"slices"
	"strings"
)

// heapStages are the stages for which allocations are counted separately. A stack belongs to the
// first stage that one of its functions names, so the order decides: a shadow engine's stack has
// functions of the matcher too. A hot stage must allocate nothing; what a commit allocates is
// allocated once for all commands in it.
//
// A function that is renamed or moved changes its stage without an error: its allocations then
// count for "other" or "load", and the hot stages look better than they are.
var heapStages = []struct {
	name string
	// of has parts of a function's full name, as the runtime writes it; "" is in every name.
	of []string
	// hot says that the stage decides and records every command, and may allocate nothing.
	hot bool
}{
	{"shadow", []string{"journal.(*Snapshotter)", "journal.(*Shadow)", "journal.NewShadow"},
		false}, // a second engine, beside the path
	{"feed", []string{"sidecars/bootstrap", "sidecars/control", "perf.(*deltaFeed)", "sidecars/feeds"},
		false},
	{"matcher", []string{"posttrade/matcher.", "perf.(*watchedLoop)"}, true},
	{"commit", []string{"journal.(*Journal)", "cockroachdb/pebble"}, false},
	{"recorder", []string{"journal.(*Recorder)", "posttrade/blotter."}, true},
	{"reading", []string{"posttrade/journal."}, false}, // followers of the journal read ahead
	{"gate", []string{"matcher/gate."}, true},
	{"desk", []string{"matcher/desk."}, true},
	{"load", []string{"posttrade/perf"}, false},
	{"other", []string{""}, false},
}

// stageOf is the stage of a stack.
func stageOf(functions []string) string {
	for _, stage := range heapStages {
		for _, part := range stage.of {
			if slices.ContainsFunc(functions, func(f string) bool { return strings.Contains(f, part) }) {
				return stage.name
			}
		}
	}
	return "other" // a stack without a name
}

// heapSites is how many places are named, of growth as of allocations.
const heapSites = 5

// heapProfile is the heap as estimated from its samples. The key is the stack: its functions'
// names, a line for each, the innermost first.
type heapProfile map[string]heapSite

// heapSite is one stack's share, or the sum of several stacks of one place.
type heapSite struct {
	name  string // the function that asked, and its caller
	stage string
	// objects were allocated so far; after since, in between. An estimate, so not a whole number.
	objects float64
	// bytes are reachable now, as of the last collection but one; after since, they may be negative.
	bytes float64
}

// readHeapProfile reads the samples as of the last collection. Stacks without a live object are
// among them, because their allocations count. It asks again with more room when the profile has
// grown.
func readHeapProfile() heapProfile {
	var records []runtime.MemProfileRecord
	for n, ok := runtime.MemProfile(nil, true); !ok; {
		records = make([]runtime.MemProfileRecord, n+64)
		if n, ok = runtime.MemProfile(records, true); ok {
			records = records[:n]
		}
	}
	p := heapProfile{}
	for i := range records {
		p.add(&records[i])
	}
	return p
}

// ownReader is the prefix of the functions that read the heap (readHeap, readHeapProfile): their
// allocations are not counted. A reader with another name would be.
const ownReader = "posttrade/perf.readHeap"

// add adds a record, scaled up from samples to the estimated total.
func (p heapProfile) add(record *runtime.MemProfileRecord) {
	functions := functionsOf(record.Stack())
	if slices.ContainsFunc(functions, func(f string) bool { return strings.HasPrefix(f, ownReader) }) {
		return
	}
	site := heapSite{name: siteName(functions), stage: stageOf(functions)}
	site.objects, _ = unsampled(record.AllocObjects, record.AllocBytes)
	_, site.bytes = unsampled(record.InUseObjects(), record.InUseBytes())
	key := strings.Join(functions, "\n")
	before := p[key]
	site.objects += before.objects
	site.bytes += before.bytes
	p[key] = site
}

// unsampled is the estimated total for sampled objects: one of size s is sampled with probability 1
// - e^(-s/rate). It is exact for objects much larger than heapRate, and the error of small ones
// falls with their number.
func unsampled(objects, bytes int64) (allObjects, allBytes float64) {
	if objects <= 0 || bytes <= 0 {
		return 0, 0
	}
	size := float64(bytes) / float64(objects)
	scale := 1 / (1 - math.Exp(-size/heapRate))
	return float64(objects) * scale, float64(bytes) * scale
}

// functionsOf names a stack's functions, the innermost first.
func functionsOf(stack []uintptr) (names []string) {
	frames := runtime.CallersFrames(stack)
	for {
		frame, more := frames.Next()
		if frame.Function != "" {
			names = append(names, frame.Function)
		}
		if !more {
			return names
		}
	}
}

// siteName is the innermost function outside of the runtime and the standard library, as one word
// without the path of its package: the place to look at. A stack without one is "runtime".
func siteName(functions []string) string {
	for _, f := range functions {
		if first, _, _ := strings.Cut(f, "."); strings.Contains(first, "/") || first == "main" {
			return strings.ReplaceAll(f[strings.LastIndexByte(f, '/')+1:], " ", "")
		}
	}
	return "runtime"
}

// since is the difference to an earlier profile. A stack that is gone counts with minus its bytes
// and with no objects.
func (p heapProfile) since(before heapProfile) heapProfile {
	out := heapProfile{}
	for key, site := range p {
		site.objects -= before[key].objects
		site.bytes -= before[key].bytes
		out[key] = site
	}
	for key, site := range before {
		if _, still := p[key]; !still {
			site.objects, site.bytes = 0, -site.bytes
			out[key] = site
		}
	}
	return out
}

// allocated is the number of objects that a stage has allocated.
func (p heapProfile) allocated(stage string) (objects float64) {
	for _, site := range p {
		if site.stage == stage {
			objects += site.objects
		}
	}
	return objects
}

// growth are the n places with the greatest growth of reachable bytes, the largest first.
func (p heapProfile) growth(n int) []heapSite {
	return p.largest(n, func(s heapSite) float64 { return s.bytes })
}

// askers are the n places that allocated the most objects, the largest first.
func (p heapProfile) askers(n int) []heapSite {
	return p.largest(n, func(s heapSite) float64 { return s.objects })
}

// largest adds up the stacks of a place and returns the n places with the most.
func (p heapProfile) largest(n int, of func(heapSite) float64) (sites []heapSite) {
	byName := map[string]heapSite{}
	for _, site := range p {
		sum := byName[site.name]
		sum.name = site.name
		sum.bytes += site.bytes
		sum.objects += site.objects
		byName[site.name] = sum
	}
	for _, site := range byName {
		if of(site) > 0 {
			sites = append(sites, site)
		}
	}
	slices.SortFunc(sites, func(a, b heapSite) int {
		return cmp.Or(cmp.Compare(of(b), of(a)), cmp.Compare(a.name, b.name))
	})
	return sites[:min(n, len(sites))]
}
