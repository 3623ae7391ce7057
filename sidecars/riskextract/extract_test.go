package riskextract

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"posttrade/matcher"
	"posttrade/ring/must"
	"posttrade/sidecars/store"
)

// TestCrashAtEveryStep ends an extract at each of its steps and starts again as a
// new process would, while the marks and the reference change in between.
func TestCrashAtEveryStep(t *testing.T) {
	var steps []string
	r := goldenRig(t)
	x := New(r.o)
	x.step = func(step string) error { steps = append(steps, step); return nil }
	must.Get(x.Extract(t.Context(), goldenMarker))(t)
	golden := files(t, "testdata")
	if len(steps) != 7*3+1 {
		t.Errorf("%d steps: %q", len(steps), steps)
	}
	pinned := slices.Index(steps, "seq-42.sha256 linked")
	for at, step := range steps {
		t.Run(fmt.Sprint(at, " ", step), func(t *testing.T) {
			r := goldenRig(t)
			x := New(r.o)
			x.step = func(now string) error {
				if now == step {
					return errCrash
				}
				return nil
			}
			if _, err := x.Extract(t.Context(), goldenMarker); !errors.Is(err, errCrash) {
				t.Fatalf("got %v", err)
			}
			before := files(t, r.o.Sink)
			want := golden
			if at >= pinned {
				// What is published now comes too late: the inputs are pinned.
				r.o.Marks.(*fakeMarks).marks = []store.Mark{{Security: "ZULU", Price: 1}}
				write(t, r.o.Counterparties, strings.ReplaceAll(goldenCounterparties, "ELBE", "ODER"))
			}
			a := must.Get(New(r.o).Extract(t.Context(), goldenMarker))(t)
			got := files(t, filepath.Join(r.o.Sink, "2026-11-20", "v1"))
			if !maps.Equal(got, want) {
				t.Errorf("after the restart there are %q", slices.Sorted(maps.Keys(got)))
			}
			for name, content := range before {
				now, there := got[filepath.Base(name)]
				if !strings.HasPrefix(filepath.Base(name), ".") && (!there || now != content) {
					t.Errorf("%s was changed", name)
				}
			}
			if a.SHA256 != sumOf([]byte(golden["seq-42.csv"])) ||
				a.CutSHA256 != sumOf([]byte(golden["seq-42.cut"])) {
				t.Errorf("announced %+v", a)
			}
			announced := r.announcements()
			for _, other := range announced {
				if other != a {
					t.Errorf("announced %+v and %+v", other, a)
				}
			}
			if wanted := 1 + map[string]int{"announced": 1}[step]; len(announced) != wanted {
				t.Errorf("announced %d times, want %d", len(announced), wanted)
			}
			if r.engines != r.closed {
				t.Errorf("%d engines, %d closed", r.engines, r.closed)
			}
		})
	}
}

// TestExtractErrors makes each dependency fail once; then it works.
func TestExtractErrors(t *testing.T) {
	down := errors.New("down")
	for _, tt := range []struct {
		name     string
		mess     func(*rig)
		mend     func(*rig)
		is       error
		want     string
		announce bool // the files are there already
	}{
		{"no engine", func(r *rig) { r.fail(down) }, func(r *rig) { r.fail(nil) }, down,
			"engine at seq=42", false},
		{"no marks", func(r *rig) { r.o.Marks.(*fakeMarks).err = down },
			func(r *rig) { r.o.Marks.(*fakeMarks).err = nil },
			down, "marks sessionDate=2026-11-20 version=1", false},
		{"no reference", func(r *rig) { _ = os.Rename(r.o.Counterparties, r.o.Counterparties+".away") },
			func(r *rig) { _ = os.Rename(r.o.Counterparties+".away", r.o.Counterparties) }, os.ErrNotExist,
			"read reference", false},
		{"an account missing in the reference",
			func(r *rig) {
				write(t, r.o.Counterparties, strings.Replace(goldenCounterparties, "\n10,", "\n11,", 1))
			},
			func(r *rig) { write(t, r.o.Counterparties, goldenCounterparties) }, ErrRefused,
			"accountId=10 ", false},
		{"a bad reference", func(r *rig) { write(t, r.o.Counterparties, "x") },
			func(r *rig) { write(t, r.o.Counterparties, goldenCounterparties) }, ErrRefused,
			"counterparties line=1", false},
		{"bad marks",
			func(r *rig) { r.o.Marks.(*fakeMarks).marks = []store.Mark{{Security: "ZULU", Price: -1}} },
			func(r *rig) { r.o.Marks.(*fakeMarks).marks = goldenMarks }, ErrRefused, "priceTicks", false},
		{"a file in the way of the sink", func(r *rig) { write(t, r.o.Sink, "") },
			func(r *rig) { _ = os.Remove(r.o.Sink) }, nil, "make sink", false},
		{"no announcement", func(r *rig) {
			fail := r.o.Announce
			r.o.Announce = func(context.Context, Announcement) error { r.o.Announce = fail; return down }
		}, func(*rig) {}, down, "announce seq=42", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := goldenRig(t)
			tt.mess(r)
			x := New(r.o)
			if _, err := x.Extract(t.Context(), goldenMarker); err == nil ||
				tt.is != nil && !errors.Is(err, tt.is) ||
				!strings.Contains(err.Error(), tt.want) {
				t.Fatalf("got %v, want %q", err, tt.want)
			}
			if len(r.announcements()) != 0 {
				t.Error("announced all the same")
			}
			csv := filepath.Join(r.o.Sink, "2026-11-20", "v1", "seq-42.csv")
			if _, err := os.Stat(csv); (err == nil) != tt.announce {
				t.Errorf("the positions file: %v", err)
			}
			tt.mend(r)
			x.o = New(r.o).o
			a, err := x.Extract(t.Context(), goldenMarker)
			if err != nil || !slices.Equal(r.announcements(), []Announcement{a}) {
				t.Fatalf("then %v, announced %+v", err, r.announcements())
			}
			got, want := files(t, filepath.Dir(csv)), files(t, "testdata")
			for name := range want {
				if got[name] != want[name] {
					t.Errorf("%s differs", name)
				}
			}
		})
	}
}

func TestStoredFilesAreNeverReplaced(t *testing.T) {
	for name := range files(t, "testdata") {
		t.Run(name, func(t *testing.T) {
			r := goldenRig(t)
			path := filepath.Join(r.o.Sink, "2026-11-20", "v1", name)
			must.OK(t, os.MkdirAll(filepath.Dir(path), 0o755))
			write(t, path, "not this")
			if _, err := New(r.o).Extract(t.Context(), goldenMarker); !errors.Is(err, ErrMismatch) {
				t.Errorf("got %v", err)
			}
			if got := files(t, filepath.Dir(path)); got[name] != "not this" || len(r.announcements()) != 0 {
				t.Errorf("%s is %q, announced %v", name, got[name], r.announcements())
			}
		})
	}
}

// TestSecondExtractKeepsToTheFirst repeats a finished extract after all its sources have changed.
func TestSecondExtractKeepsToTheFirst(t *testing.T) {
	r := goldenRig(t)
	first, err := New(r.o).Extract(t.Context(), goldenMarker)
	must.OK(t, err)
	r.o.Marks.(*fakeMarks).marks = nil
	r.o.Counterparties = ""
	second, err := New(r.o).Extract(t.Context(), goldenMarker)
	if err != nil || first != second {
		t.Errorf("%v\n%+v\n%+v", err, first, second)
	}
	// The engine's state at a sequence cannot change: a difference is a bug.
	other := *goldenState
	other.positions = other.positions[1:]
	r.states[42] = &other
	if _, err := New(r.o).Extract(t.Context(), goldenMarker); !errors.Is(err, ErrMismatch) {
		t.Errorf("another state: %v", err)
	}
}

func TestFollowerKeepsTheCutAlone(t *testing.T) {
	r := goldenRig(t)
	r.o.Role = func() string { return RoleFollower }
	x := New(r.o)
	for range 3 {
		if _, err := x.Extract(t.Context(), goldenMarker); !errors.Is(err, ErrFollower) {
			t.Fatalf("got %v", err)
		}
	}
	want := files(t, "testdata")["seq-42.cut"]
	got := files(t, r.o.Sink)
	if len(got) != 1 || got[filepath.Join("2026-11-20", "v1", "seq-42.cut")] != want {
		t.Errorf("the sink is %q", slices.Sorted(maps.Keys(got)))
	}
	line := "RISK-EXTRACT-CUT seq=42 rows=7 contracts=3 sha256=" + sumOf([]byte(want)) +
		" role=FOLLOWER"
	if !containsOnce(r.log.String(), line) || r.engines != 1 || len(r.announcements()) != 0 {
		t.Errorf("%d engines, announced %v, log %s", r.engines, r.announcements(), r.log)
	}
	x.o.Role = func() string { return RoleLeader }
	if _, err := x.Extract(t.Context(), goldenMarker); err != nil || r.engines != 1 {
		t.Errorf("as the leader: %v, %d engines", err, r.engines)
	}
}

// TestExtractOfAnEngine takes the cut of a real engine, with and without bookings
// between the trades: they add contracts and change nothing else.
func TestExtractOfAnEngine(t *testing.T) {
	cutOf := func(book bool) string {
		g := &matcher.Genesis{
			Format: matcher.GenesisFormat,
			Limits: matcher.Limits{
				MaxOrderQty: 1e6, MaxOrderNotional: 1 << 62, MaxPositionQty: 1 << 40,
				MaxConcentrationNotional: 1 << 62,
				CreditLimit:              1 << 62, PriceMaxAgeMillis: 1 << 50, IdempotencyCapacity: 64,
				MaxAccounts:   8,
				MaxSecurities: 8,
				MaxContracts:  8, MaxOpenOrders: 64, RetainedOrders: 32,
			},
			Accounts: []matcher.GenesisAccount{{ID: 8, Enabled: true}, {ID: 3, Enabled: true}},
			Securities: []matcher.GenesisSecurity{{Ticker: "SPY", Enabled: true},
				{Ticker: "AAA", Enabled: true}}, TickPx: 1000,
		}
		e := must.Get(matcher.New(g))(t)
		defer e.Close()
		out := matcher.NewOutlet(16, func([]matcher.Event) {})
		do := func(c matcher.Command) {
			c.EventTimeMillis = 1_700_000_000_000
			e.Apply(&c, out)
			out.Flush()
		}
		order := func(account, security uint32, side matcher.Side, qty int32, px int64) {
			c := matcher.NewCommand(matcher.OrderNew)
			c.AccountID, c.SecurityID, c.Side, c.Qty, c.LimitPx = account, security, side, qty, px
			do(c)
		}
		swap := func(terms matcher.ContractTerms) {
			if book {
				do(terms.Command())
			}
		}
		order(8, 2, matcher.Sell, 10, 5_000_000)
		swap(matcher.ContractTerms{AccountID: 8, Side: matcher.Buy, Notional: 10_000_000,
			FixedRate: 42_000, Effective: 100, Maturity: 200})
		order(3, 2, matcher.Buy, 4, 5_000_000)
		swap(matcher.ContractTerms{AccountID: 3, Side: matcher.Sell, Notional: 10_000_000,
			FixedRate: 43_000, Effective: 100, Maturity: 200,
			Convention: 1, Swaption: true, Expiry: 99, Style: matcher.American})
		order(3, 1, matcher.Sell, 1, 600_000_000)
		order(8, 1, matcher.Buy, 1, 600_000_000)
		order(8, 1, matcher.Sell, 1, 601_000_000)
		order(3, 1, matcher.Buy, 1, 601_000_000)
		cut := must.Get(renderCut(Marker{Seq: 99, SessionDate: 20_000, PriceVersion: 2}, e))(t)
		return string(cut.Bytes)
	}
	const positions = cutColumns + "3,SPY,0,0,1,601000000\n3,AAA,4,5000000,1,5000000\n" +
		"8,SPY,0,0,1,601000000\n8,AAA,-4,5000000,1,5000000\n" + cutSection + cutTerms
	const head = "#cut schema=3 seq=99 sessionDateEpochDay=20000 priceVersion=2 rows=4 contracts="
	if got, want := cutOf(false), head+"0\n"+positions; got != want {
		t.Errorf("without bookings\n%s\nwant\n%s", got, want)
	}
	contracts := "2,8,0,10000000,42000,0,100,200,0,0,0\n4,3,1,10000000,43000,1,100,200,1,99,2\n"
	if got, want := cutOf(true), head+"2\n"+positions+contracts; got != want {
		t.Errorf("with bookings\n%s\nwant\n%s", got, want)
	}
}
