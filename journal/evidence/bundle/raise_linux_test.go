package bundle_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"posttrade/journal/evidence/bundle"
	"posttrade/matcher"
	"posttrade/ring/must"
)

// TestRaisesLeaveNoTablesBehind: a bundle of a few KiB has hundreds of raises of a capacity, and
// its verification maps no more than some engines do.
func TestRaisesLeaveNoTablesBehind(t *testing.T) {
	v := newVenue(t)
	engine := must.Get(matcher.New(v.genesis))(t)
	defer func() { must.OK(t, engine.Close()) }()
	const raises = 300
	v.trade(engine, rand.New(rand.NewPCG(3, 4)), 20)
	room := engine.Capacities()
	for range raises {
		room.Open++
		room.Securities++
		v.send(engine, matcher.NewCapacityControl(room))
	}
	v.trade(engine, rand.New(rand.NewPCG(5, 6)), 200) // more securities than the first engine holds
	v.sign()
	files := v.export(1, 0)
	before, most := mapped(t), 0
	p, err := bundle.Verify(v.keys(), reading(files), bundle.Options{Progress: func(uint64, uint64) {
		most = max(most, mapped(t))
	}})
	if err != nil || p.To != raises+220 {
		t.Fatalf("%+v %v", p, err)
	}
	lines, total := v.reportOf(1, p.To)
	if p.Report != (bundle.Digest{total.Count, bundle.Sum(total.SHA256)}) {
		t.Errorf("report %+v, want %d records", p.Report, total.Count)
	}
	must.OK(t, v.compareReport(files, lines))
	if one := 1 << 20 * 16; most-before > 20*one { // levels and nodes alone are 5 MiB a raise
		t.Errorf("%d MiB are mapped for records of %d bytes", (most-before)>>20,
			len(files[bundle.RecordsName]))
	}
}

// mapped is how many bytes of addresses the process has.
func mapped(t *testing.T) (size int) {
	t.Helper()
	text := must.Get(os.ReadFile("/proc/self/statm"))(t)
	must.Get(fmt.Sscan(string(text), &size))(t)
	return size * os.Getpagesize()
}
