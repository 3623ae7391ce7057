package installation

import (
	"slices"
	"testing"

	"posttrade/app/engine"
	"posttrade/matcher"
	"posttrade/matcher/desk"
	"posttrade/ring/must"
	"posttrade/sidecars/riskextract"
)

// marker sequences an extract marker of a day.
func marker(t *testing.T, k *engine.Engine, day int64) {
	t.Helper()
	err := desk.SubmitUntil(t.Context(), k.Desk, 1, func(_ int, c *matcher.Command) error {
		*c = matcher.NewRiskExtract(day, 1)
		return nil
	}, func(*desk.Answer) error { return nil })
	must.OK(t, err)
}

// TestSeenMarkersAreThoseOfTheJournal compares what a member finds with the markers that have
// passed, from any command of the journal on, with what it finds when it reads the whole journal.
func TestSeenMarkersAreThoseOfTheJournal(t *testing.T) {
	k := testCore(t, t.TempDir())
	defer k.Stop()
	commands := []matcher.Command{{}} // by sequence
	for day := range int64(3) {
		submit(t, k, 2)
		marker(t, k, 20_000+day)
		plain := matcher.NewCommand(matcher.OrderNew)
		commands = append(commands, plain, plain, matcher.NewRiskExtract(20_000+day, 1))
	}
	submit(t, k, 1)
	commands = append(commands, matcher.NewCommand(matcher.OrderNew))
	head := uint64(len(commands) - 1)

	x := &extracts{k: k}
	find := func(from uint64) []riskextract.Marker {
		t.Helper()
		list, next, err := x.markers(t.Context(), from)
		if err != nil || next != max(from, head+1) {
			t.Fatalf("from %d: next %d of %d, %v", from, next, head, err)
		}
		return list
	}
	all := find(1)
	if len(all) != 3 || all[0].Seq != 3 || all[2].Seq != 9 {
		t.Fatalf("the journal has %+v", all)
	}
	for seen := range head + 1 {
		k.Markers.Begin(seen)
		for first := seen + 1; first <= head; first += 2 {
			k.Markers.Pass(first, commands[first:min(first+2, head+1)])
		}
		// handed over, but not durable yet
		k.Markers.Pass(head+1, []matcher.Command{matcher.NewRiskExtract(1, 1)})
		for from := uint64(1); from <= head+2; from++ {
			want := slices.DeleteFunc(slices.Clone(all),
				func(m riskextract.Marker) bool { return m.Seq < from })
			if got := find(from); !slices.Equal(got, want) {
				t.Errorf("seen from %d, found from %d: %+v, want %+v", seen, from, got, want)
			}
		}
	}
	// When every command has passed, the journal is not read for other markers.
	k.Markers.Begin(0)
	if got := find(1); len(got) != 0 {
		t.Errorf("the journal was read for %+v", got)
	}
}
