package perf

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"posttrade/perf/load"
)

func besideForTest() beside {
	clock := &stepped{}
	return beside{name: "nap", target: &instant{clock: clock}, clock: clock, perSecond: 1e6, alone: time.Nanosecond,
		work: func(int) error { return nil }}
}

func TestBesideTakesTurnsAndShowsBoth(t *testing.T) {
	r := &Run{o: Options{Stdout: io.Discard}}
	b := besideForTest()
	rounds, phases := 0, []string{}
	b.work = func(round int) error {
		if round != rounds {
			t.Errorf("round %d, want %d", round, rounds)
		}
		rounds++
		return nil
	}
	b.after = func(name string, _ int) { phases = append(phases, name) }
	if _, _, err := r.besideWork(b); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(phases, " "); rounds != besideRounds || got != "nothing nap nothing nap nothing nap" || len(r.lines) != 2*besideRounds {
		t.Errorf("%d rounds, phases %q, lines %q", rounds, got, r.lines)
	}
	if !strings.HasPrefix(r.lines[1], "BenchmarkBeside/op=orders/work=nap/beside=nap/round=0 1 ") {
		t.Errorf("line %q", r.lines[1])
	}
}

func TestBesideReportsWhatGoesWrong(t *testing.T) {
	cause := errors.New("planted")
	r := &Run{o: Options{Stdout: io.Discard}}
	for name, spoil := range map[string]func(*beside){
		"the work":   func(b *beside) { b.work = func(int) error { return cause } },
		"the orders": func(b *beside) { b.target = &instant{clock: b.clock, err: cause} },
	} {
		b := besideForTest()
		spoil(&b)
		if _, _, err := r.besideWork(b); !errors.Is(err, cause) {
			t.Errorf("%s: %v", name, err)
		}
	}
	b := besideForTest()
	b.perSecond = 0
	if _, _, err := r.besideWork(b); err == nil {
		t.Error("no rate is no error")
	}
	b.target = &instant{clock: b.clock, err: cause}
	if err := b.saturation(r); !errors.Is(err, cause) {
		t.Errorf("saturation: %v", err)
	}
}

func TestOrdersComeUntilTheWorkIsDone(t *testing.T) {
	arrivals, err := load.Constant(1e9)
	if err != nil {
		t.Fatal(err)
	}
	u := &untilDone{Arrivals: arrivals}
	for want := range time.Duration(5) {
		if got := u.Next(); got != want {
			t.Fatalf("due at %v, want %v", got, want)
		}
	}
	u.done.Store(true)
	if got := u.Next(); got < longestPhase {
		t.Errorf("another one is due at %v", got)
	}
}

// TestFeedGivesEveryVersionOnce reads prepared deltas and others.
func TestFeedGivesEveryVersionOnce(t *testing.T) {
	f := &deltaFeed{more: make(chan int, 1), next: flowAccounts}
	f.prepare(300)
	version := uint64(flowAccounts)
	for _, n := range []int{300, 3, 600} {
		f.more <- n
		for n > 0 {
			payloads, err := f.Next(t.Context())
			if err != nil || len(payloads) > feedBatch {
				t.Fatalf("%d payloads, %v", len(payloads), err)
			}
			n -= len(payloads)
			for _, text := range payloads {
				version++
				if want := string(accountDelta(version)); string(text) != want {
					t.Fatalf("version %d: %s, want %s", version, text, want)
				}
			}
		}
		if n != 0 {
			t.Errorf("%d too many", -n)
		}
	}
}

func TestAnEngineThatLacksWhatARowNeeds(t *testing.T) {
	for _, name := range []string{"pause", "feed-replay", "cut"} {
		err := Measure(Options{Smoke: true, Only: name, Dir: t.TempDir(), Stdout: io.Discard,
			Open: func(EngineOptions) (Engine, error) { return bare{}, nil }})
		if err == nil || !strings.Contains(err.Error(), "row "+name+": the engine") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// bare is an engine that can do nothing but end.
type bare struct{ Engine }

func (bare) Close() error { return nil }
