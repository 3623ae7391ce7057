package perf

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"posttrade/perf/load"
	"posttrade/ring/must"
)

func besideForTest() beside {
	clock := &stepped{}
	return beside{name: "nap", target: &instant{clock: clock}, clock: clock, perSecond: 1e6,
		alone: time.Nanosecond,
		work:  func(int) error { return nil }}
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
	p := must.Get(r.besideWork(b))(t)
	want := strings.Repeat("nothing nap nap nothing ", besideRounds/2)
	if got := strings.Join(phases, " ") + " "; rounds != besideRounds || got != want ||
		len(r.lines) != 2*besideRounds || p.rounds != besideRounds {
		t.Errorf("%d rounds, phases %q, lines %q, %+v", rounds, got, r.lines, p)
	}
	if !strings.HasPrefix(r.lines[1], "BenchmarkBeside/op=orders/work=nap/beside=nap/round=0 1 ") {
		t.Errorf("line %q", r.lines[1])
	}
}

// TestRoundsArePaired: the figure does not have what a noisy machine adds to both turns of a round,
// or to a few turns. It has what the work costs in most rounds.
func TestRoundsArePaired(t *testing.T) {
	us := func(v ...int) (d []time.Duration) {
		for _, n := range v {
			d = append(d, time.Duration(n)*time.Microsecond)
		}
		return d
	}
	for _, tt := range []struct {
		name          string
		without, with []time.Duration
		want          paired
	}{
		{"nothing costs nothing", us(100, 100, 100, 100), us(100, 100, 100, 100),
			paired{1, 1, 1, 100 * time.Microsecond, 4}},
		{"a machine that is slow for a while", us(100, 9000, 8000, 100), us(100, 9000, 8000, 100),
			paired{1, 1, 1, 4050 * time.Microsecond, 4}},
		{"a stall in one turn of each", us(100, 5000, 100, 100), us(100, 100, 7000, 100),
			paired{1, 0.02, 70, 100 * time.Microsecond, 4}},
		{"work that costs half as much again", us(100, 1000, 200, 400, 100),
			us(150, 1500, 9000, 600, 150), paired{1.5, 1.5, 45, 200 * time.Microsecond, 5}},
		{"a turn without a request", us(0), us(0), paired{0, 0, 0, 0, 1}},
	} {
		if got := pairs(tt.without, tt.with); got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
	}
	r := &Run{o: Options{Stdout: io.Discard}}
	r.judgeBeside(atMost("P13", besideLimit, "x"), pairs(us(100, 200, 100), us(130, 240, 110)))
	if want := "| P13 | x | 1.2 | <= 1.2 | met | median of 3 rounds, 1.1 to 1.3; " +
		"without 100 us |"; r.targets[0].String() != want {
		t.Errorf("got %s, want %s", r.targets[0], want)
	}
}

func TestTurnsGoForthAndBack(t *testing.T) {
	var order []string
	note := func(name string) func(int) error {
		return func(round int) error { order = append(order, fmt.Sprint(name, round)); return nil }
	}
	if err := inTurns(3, note("a"), note("b"), note("c")); err != nil ||
		strings.Join(order, " ") != "a0 b0 c0 c1 b1 a1 a2 b2 c2" {
		t.Errorf("%v, %v", order, err)
	}
	order = nil
	if err := inTurns(2, note("a"), func(int) error { return io.EOF }, note("c")); err != io.EOF ||
		len(order) != 1 {
		t.Errorf("%v, %v: a turn that fails ends it", order, err)
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
		if _, err := r.besideWork(b); !errors.Is(err, cause) {
			t.Errorf("%s: %v", name, err)
		}
	}
	b := besideForTest()
	b.perSecond = 0
	if _, err := r.besideWork(b); err == nil {
		t.Error("no rate is no error")
	}
	b.target = &instant{clock: b.clock, err: cause}
	if err := b.saturation(r, besideRate); !errors.Is(err, cause) {
		t.Errorf("saturation: %v", err)
	}
}

func TestOrdersComeUntilTheWorkIsDone(t *testing.T) {
	arrivals := must.Get(load.Constant(1e9))(t)
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
