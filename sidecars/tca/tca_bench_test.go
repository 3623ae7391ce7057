package tca

import (
	"fmt"
	"path/filepath"
	"testing"

	"posttrade/matcher"
	"posttrade/ring/must"
	"posttrade/sidecars/store"
	"posttrade/sidecars/store/storetest"
)

// benched is an index over that many commands of random flow.
func benched(tb testing.TB, commands int) (*venue, *TCA) {
	v := newVenue(tb)
	(&flow{v: v, rnd: seeded(tb)}).steps(commands)
	x := open(tb, v.options())
	follow(tb, x, v)
	return v, x
}

func TestReportAndFollowingDoNotAllocate(t *testing.T) {
	v, x := benched(t, 5_000)
	n := 0
	b := make([]byte, 0, 1024)
	report := testing.AllocsPerRun(1000, func() {
		r := must.Get(x.Report(t.Context(), v.trades[n%len(v.trades)]))(t)
		b = r.AppendJSON(b[:0])
		n += 7
	})
	if report > 0 {
		t.Errorf("a report allocates %v times, want none", report)
	}
	// The same two events again and again: only sequences and time change.
	executionsFile := must.Get(openBlocks(filepath.Join(t.TempDir(), arrivalsName)))(t)
	defer executionsFile.f.Close()
	y := &index{samples: *newSamples(t), executions: executions{file: executionsFile},
		open: map[uint32]arrival{}}
	events := []matcher.Event{v.events[0], v.events[0]}
	*events[0].Cmd() = tick(aaa, 5*unit)
	events[0].Kind, events[0].Flags = matcher.EventApplied, matcher.EventFirst|matcher.EventLast
	events[1].Kind, events[1].Flags = matcher.EventFilled, matcher.EventMarket
	follow := testing.AllocsPerRun(20_000, func() {
		for i := range events {
			events[i].SecurityID, events[i].Px, events[i].TimeMillis = aaa, 5*unit, events[i].TimeMillis+1
		}
		events[0].InputSeq = y.applied + 1
		events[1].TradeSeq = y.executions.count() + 1
		must.OK(t, y.observe(events))
	})
	if follow > 0 {
		t.Errorf("a command allocates %v times, want none", follow)
	}
}

func BenchmarkReport(b *testing.B) {
	for _, commands := range []int{10_000, 1_000_000} {
		b.Run(fmt.Sprintf("op=report/commands=%d", commands), func(b *testing.B) {
			v, x := benched(b, commands)
			n := 0
			b.ReportAllocs()
			for b.Loop() {
				if _, err := x.Report(b.Context(), v.trades[n%len(v.trades)]); err != nil {
					b.Fatal(err)
				}
				n += 7919
			}
		})
	}
}

func BenchmarkFollow(b *testing.B) {
	v, x := benched(b, 200_000)
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		if err := x.reset(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		if err := x.observe(v.events); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(v.events)), "ns/event")
}

func BenchmarkSummary(b *testing.B) {
	v, x := benched(b, 200_000)
	x.o.DB = storetest.Open(b, store.SQLite)
	insert(b, x.o.DB, v.trades)
	for b.Loop() {
		if _, err := x.Summary(b.Context(), SummaryQuery{}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(v.trades)), "ns/trade")
}
