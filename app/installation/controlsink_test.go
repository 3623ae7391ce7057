package installation

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"posttrade/app/engine"
	"posttrade/blotter"
	"posttrade/matcher"
	"posttrade/matcher/desk"
	"posttrade/matcher/gate"
	"posttrade/ring/must"
	"posttrade/sidecars/bootstrap"
	"posttrade/sidecars/control"
	"posttrade/sidecars/feeds"
)

var sinkDeltas = flag.Int("sink.deltas", 100_000, "deltas of TestDeltasLeaveTheOrderPathAlone")

// feedCore opens an engine with a gate that waits for the control sources, on a universe of three
// accounts and two securities.
func feedCore(t *testing.T, dir string, nameValue ...string) *engine.Engine {
	t.Helper()
	return openTestCore(t, dir, true, append([]string{"risk.seed.accounts", "1,2,3",
		"risk.seed.securities", "AAPL,MSFT"}, nameValue...)...)
}

// sinkRig is the sinks of both sources on one engine, which may be restarted.
type sinkRig struct {
	t   *testing.T
	dir string
	k   *engine.Engine
}

func newSinkRig(t *testing.T, nameValue ...string) *sinkRig {
	r := &sinkRig{t: t, dir: t.TempDir()}
	r.k = feedCore(t, r.dir, nameValue...)
	t.Cleanup(func() {
		if err := r.k.Stop(); err != nil {
			t.Error(err)
		}
	})
	return r
}

func (r *sinkRig) restart() {
	r.t.Helper()
	must.OK(r.t, r.k.Stop())
	r.k = feedCore(r.t, r.dir)
}

func (r *sinkRig) sink(s control.Source) *feeds.Sink {
	return &feeds.Sink{Source: s, Gate: r.k.Gate, Desk: r.k.Desk, Views: r.k.Views, Now: time.Now,
		Log: slog.New(slog.DiscardHandler)}
}

// install installs a snapshot and returns how many commands that took.
func (r *sinkRig) install(s control.Snapshot) (commands uint64) {
	r.t.Helper()
	before := r.k.Journal.Answered()
	must.OK(r.t, r.sink(s.Source).Install(r.t.Context(), s))
	return r.k.Journal.Answered() - before
}

// want compares the gate's image, which follows the engine's events, with
// "key:enabled,halted" of every record.
func (r *sinkRig) want(want ...string) {
	r.t.Helper()
	image := r.k.Gate.Snapshot()
	var got []string
	for _, a := range image.Accounts {
		got = append(got, fmt.Sprintf("%d:%v", a.ID, a.Enabled))
	}
	for _, s := range image.Securities {
		got = append(got, fmt.Sprintf("%s:%v,%v", s.Ticker, s.Enabled, s.Halted))
	}
	if !reflect.DeepEqual(got, want) {
		r.t.Errorf("the gate has %v, want %v", got, want)
	}
	for _, row := range r.k.Views.Securities() { // a second id would be a second row
		if id, ok := r.k.Gate.Security([]byte(row.Ticker)); !ok || id != row.ID {
			r.t.Errorf("%s is %d in the views, %d in the gate", row.Ticker, row.ID, id)
		}
	}
}

func accountsAt(epoch, watermark uint64, records ...control.Record) control.Snapshot {
	return control.Snapshot{Source: control.Account, Epoch: epoch, Watermark: watermark,
		Records: records}
}

func account(id uint32, enabled bool, version uint64) control.Record {
	return control.Record{ID: id, Name: "x", Enabled: enabled, Version: version}
}

func stock(ticker string, enabled, halted bool, version uint64) control.Record {
	return control.Record{Ticker: ticker, Name: "x", Enabled: enabled, Halted: halted,
		Version: version}
}

func TestInstallAccounts(t *testing.T) {
	r := newSinkRig(t)
	r.want("1:true", "2:true", "3:true", "AAPL:true,false", "MSFT:true,false")
	// From scratch: two are known, one is new, one is no longer in the source.
	s := accountsAt(100, 9, account(1, true, 4), account(2, false, 9), account(8, true, 7))
	if n := r.install(s); n != 4 {
		t.Errorf("%d commands for three records and one that is absent", n)
	}
	r.want("1:true", "2:false", "3:false", "8:true", "AAPL:true,false", "MSFT:true,false")
	mark := r.k.Views.SourceMark(blotter.AccountSource)
	if want := (blotter.SourceMark{Mark: feeds.EpochMark(100), Watermark: 9}); mark != want {
		t.Errorf("the journal is at %+v, want %+v", mark, want)
	}
	for range 2 {
		if n := r.install(s); n != 0 {
			t.Errorf("%d commands for what is known", n)
		}
		r.restart()
		if got := r.k.Views.SourceMark(blotter.AccountSource); got != mark {
			t.Errorf("after a restart the journal is at %+v, before %+v", got, mark)
		}
	}
	// Above the watermark only.
	s.Watermark, s.Records = 12, []control.Record{account(1, true, 4), account(2, true, 11),
		account(8, false, 12)}
	if n := r.install(s); n != 2 {
		t.Errorf("%d commands for two changes", n)
	}
	r.want("1:true", "2:true", "3:false", "8:false", "AAPL:true,false", "MSFT:true,false")
	// The source has lost its data.
	before := r.k.Journal.Answered()
	s.Watermark, s.Records = 11, s.Records[:2]
	if err := r.sink(control.Account).Install(t.Context(), s); !errors.Is(err,
		bootstrap.ErrRegression) || r.k.Journal.Answered() != before {
		t.Errorf("an older snapshot of the same epoch: %v, %d commands", err,
			r.k.Journal.Answered()-before)
	}
	r.want("1:true", "2:true", "3:false", "8:false", "AAPL:true,false", "MSFT:true,false")
}

func TestInstallSecurities(t *testing.T) {
	r := newSinkRig(t)
	s := control.Snapshot{Source: control.Security, Epoch: 100, Watermark: 3,
		Records: []control.Record{stock("AAPL", true, true, 2), stock("IBM", true, false, 3),
			stock("ZM", false, false, 1)}}
	if n := r.install(s); n != 2+3+1 {
		t.Errorf("%d commands for two new tickers, three records and one that is absent", n)
	}
	r.want("1:true", "2:true", "3:true", "AAPL:true,true", "IBM:true,false", "MSFT:false,false",
		"ZM:false,false")
	if n := r.install(s); n != 0 {
		t.Errorf("%d commands for what is known", n)
	}
	before := r.k.Journal.Answered()
	err := r.sink(control.Security).Apply(t.Context(), []control.Delta{
		{Source: control.Security, Epoch: 100, Version: 4, Record: stock("NEW", true, false, 4)},
		{Source: control.Security, Epoch: 100, Version: 5, Record: stock("NEW", true, true, 5)},
		{Source: control.Security, Epoch: 100, Version: 6, Record: stock("MSFT", true, false, 6)},
		{Source: control.Security, Epoch: 100, Version: 7, Record: stock("NEW", true, false, 7)},
	})
	if n := r.k.Journal.Answered() - before; err != nil || n != 1+4 {
		t.Fatalf("%d commands for a new ticker and four changes: %v", n, err)
	}
	r.want("1:true", "2:true", "3:true", "AAPL:true,true", "IBM:true,false", "MSFT:true,false",
		"NEW:true,false", "ZM:false,false")
	r.restart()
	r.want("1:true", "2:true", "3:true", "AAPL:true,true", "IBM:true,false", "MSFT:true,false",
		"NEW:true,false", "ZM:false,false")
	if got, want := r.k.Views.SourceMark(blotter.SecuritySource),
		(blotter.SourceMark{Mark: feeds.EpochMark(100), Watermark: 7}); got != want {
		t.Errorf("the journal is at %+v, want %+v", got, want)
	}
}

// TestOperatorsWordStands closes an account as an operator does. The account stays closed after the
// source's changes of other accounts, after its changes of this account that do not state the flag,
// after another bootstrap, a restart and a new epoch. A change that states the flag opens it.
func TestOperatorsWordStands(t *testing.T) {
	r := newSinkRig(t)
	s := accountsAt(100, 3, account(1, true, 1), account(2, true, 2), account(3, true, 3))
	r.install(s)
	byHand := func(id uint32, enabled bool) {
		t.Helper()
		err := desk.SubmitUntil(t.Context(), r.k.Desk, 1, func(_ int, c *matcher.Command) error {
			*c = matcher.NewCommand(matcher.AccountControl)
			c.AccountID, c.EventTimeMillis, c.PriceTicks = id, 1, int64(r.k.Journal.Answered()+1)
			if enabled {
				c.Side = 1
			}
			return nil
		}, func(*desk.Answer) error { return nil })
		must.OK(t, err)
	}
	byHand(1, false)
	securities := []string{"AAPL:true,false", "MSFT:true,false"}
	want := func(accounts ...string) {
		t.Helper()
		r.want(append(accounts, securities...)...)
	}
	want("1:false", "2:true", "3:true")
	r.install(s)
	want("1:false", "2:true", "3:true")
	s.Watermark, s.Records[1] = 4, account(2, false, 4)
	r.install(s)
	r.restart()
	r.install(s)
	want("1:false", "2:false", "3:true")
	s.Watermark, s.Records[0] = 5, account(1, true, 5)
	r.install(s)
	want("1:true", "2:false", "3:true")
	byHand(3, false)
	s.Epoch = 101
	if n := r.install(s); n != 3 {
		t.Errorf("%d commands for a new epoch of three records", n)
	}
	want("1:true", "2:false", "3:false")
	if n := r.install(s); n != 0 {
		t.Errorf("%d commands for what is known", n)
	}
	// Renamed, in a delta and in a snapshot; both times the source stated enabled before.
	renamed := account(3, true, 6)
	renamed.EnabledVersion = 3
	delta := control.Delta{Source: control.Account, Epoch: 101, Version: 6, Record: renamed}
	must.OK(t, r.sink(control.Account).Apply(t.Context(), []control.Delta{delta}))
	want("1:true", "2:false", "3:false")
	renamed.Version, s.Watermark = 7, 7
	s.Records[2] = renamed
	r.restart()
	if n := r.install(s); n != 1 {
		t.Errorf("%d commands for a renamed record", n)
	}
	want("1:true", "2:false", "3:false")
	for _, a := range r.k.Gate.Snapshot().Accounts {
		if held := gate.Holder(a.ID == 3); a.HeldBy != held {
			t.Errorf("account %d is held by the operator: %v", a.ID, a.HeldBy)
		}
	}
	// The source states the flag, then renames again before the replica gets either change.
	renamed.Version, renamed.EnabledVersion, s.Watermark = 9, 8, 9
	s.Records[2] = renamed
	r.install(s)
	want("1:true", "2:false", "3:true")
	if a, _ := r.k.Views.Account(3); a.ByHand {
		t.Error("account 3 is still the operator's")
	}
}

// TestEachFlagIsHeldByItself: an operator has closed and halted a security. A change that states
// one of the flags leaves the other.
func TestEachFlagIsHeldByItself(t *testing.T) {
	r := newSinkRig(t)
	s := control.Snapshot{Source: control.Security, Epoch: 1, Watermark: 2,
		Records: []control.Record{stock("AAPL", true, false, 1), stock("MSFT", true, false, 2)}}
	r.install(s)
	id, _ := r.k.Gate.Security([]byte("AAPL"))
	err := desk.SubmitUntil(t.Context(), r.k.Desk, 1, func(_ int, c *matcher.Command) error {
		*c = matcher.NewCommand(matcher.SecurityControl)
		c.SecurityID, c.EventTimeMillis, c.Side = id, 1, matcher.SecurityHalted
		return nil
	}, func(*desk.Answer) error { return nil })
	must.OK(t, err)
	steps := []struct {
		enabledSaid, haltedSaid bool
		want                    string
		held                    gate.Holder
	}{
		{false, false, "AAPL:false,true", gate.HeldByOperator},
		{true, false, "AAPL:true,true", gate.HeldByOperator},
		{false, true, "AAPL:true,false", gate.HeldBySource},
	}
	for i, step := range steps {
		record := stock("AAPL", true, false, uint64(3+i))
		if !step.enabledSaid {
			record.EnabledVersion = 1
		}
		if !step.haltedSaid {
			record.HaltedVersion = 1
		}
		delta := control.Delta{Source: control.Security, Epoch: 1, Version: record.Version,
			Record: record}
		must.OK(t, r.sink(control.Security).Apply(t.Context(), []control.Delta{delta}))
		r.want("1:true", "2:true", "3:true", step.want, "MSFT:true,false")
		if i == 0 {
			r.restart() // the replay of the views gives the same
			r.want("1:true", "2:true", "3:true", step.want, "MSFT:true,false")
		}
		for _, x := range r.k.Gate.Snapshot().Securities {
			if x.Ticker == "AAPL" && x.HeldBy != step.held {
				t.Errorf("step %d: held by the operator: %v", i, x.HeldBy)
			}
		}
	}
	if err := r.k.Views.Check(r.k.Engine); err != nil {
		t.Error(err)
	}
}

// TestNoRoom gives the engine less room than the source has records. The records that came last
// stay unknown, without a command, and everything else goes on.
func TestNoRoom(t *testing.T) {
	r := newSinkRig(t, "risk.max-securities", "3", "risk.max-accounts", "4")
	securities := control.Snapshot{Source: control.Security, Epoch: 1, Watermark: 5,
		Records: []control.Record{
			stock("A", true, false, 1), stock("AAPL", true, false, 2), stock("B", true, false, 3),
			stock("C", true, false, 4), stock("MSFT", false, false, 5)}}
	accounts := accountsAt(1, 5, account(1, true, 1), account(2, false, 5), account(3, true, 3),
		account(4, true, 2), account(5, true, 4))
	want := func(flags ...string) {
		t.Helper()
		r.want(flags...)
	}
	for round := range 3 {
		for _, s := range []control.Snapshot{securities, accounts} {
			sink, before := r.sink(s.Source), r.k.Journal.Answered()
			if err := sink.Install(t.Context(), s); err != nil || sink.Why() != nil {
				t.Errorf("source %s: %v", s.Source, err)
			}
			if n := r.k.Journal.Answered() - before; round == 0 && n != 4 || round > 0 && n != 0 {
				t.Errorf("source %s, round %d: %d commands", s.Source, round, n)
			}
			n, lacks := 2, "such as B"
			if s.Source == control.Account {
				n, lacks = 1, "such as 5"
			}
			if detail := sink.Unknown.Detail("x"); sink.Unknown.Count() != n ||
				!strings.Contains(detail, "raise x") ||
				s.Source == control.Account && !strings.Contains(detail, lacks) {
				t.Errorf("source %s: %d unknown: %q", s.Source, sink.Unknown.Count(), detail)
			}
		}
		want("1:true", "2:false", "3:true", "4:true", "A:true,false", "AAPL:true,false",
			"MSFT:false,false")
		r.restart()
	}
	// Deltas: one more, twice, is unknown too; existing records still change.
	sink := r.sink(control.Account)
	var deltas []control.Delta
	for i, rec := range []control.Record{account(9, true, 6), account(1, false, 7),
		account(9, false, 8), account(4, false, 9)} {
		deltas = append(deltas, control.Delta{Source: control.Account, Epoch: 1, Version: uint64(6 + i),
			Record: rec})
	}
	before := r.k.Journal.Answered()
	if err := sink.Apply(t.Context(), deltas); err != nil || r.k.Journal.Answered() != before+2 ||
		sink.Unknown.Count() != 1 {
		t.Errorf("%v, %d commands, %d unknown", err, r.k.Journal.Answered()-before, sink.Unknown.Count())
	}
	want("1:false", "2:false", "3:true", "4:false", "A:true,false", "AAPL:true,false",
		"MSFT:false,false")
	// Records that the source no longer has are not reported as missing.
	accounts.Watermark, accounts.Records = 9, accounts.Records[:4]
	if err := sink.Install(t.Context(), accounts); err != nil || sink.Unknown.Count() != 0 ||
		sink.Unknown.Detail("x") != "" {
		t.Errorf("%v, %d unknown", err, sink.Unknown.Count())
	}
	if err := r.k.Views.Check(r.k.Engine); err != nil {
		t.Error(err)
	}
}

// TestTroubleEndsWithWhatCausedIt: a change that is applied clears the error of the one that was
// not.
func TestTroubleEndsWithWhatCausedIt(t *testing.T) {
	r := newSinkRig(t)
	sink := r.sink(control.Account)
	three := accountsAt(1, 3, account(1, true, 1), account(2, true, 2), account(3, false, 3))
	lost := errors.New("the disk is full")
	if err := sink.Noted(lost); err != lost || sink.Why() != lost {
		t.Errorf("why %v, the error was %v", sink.Why(), err)
	}
	if err := sink.Install(t.Context(), three); err != nil || sink.Why() != nil {
		t.Errorf("why %v after %v", sink.Why(), err)
	}
}

// TestDeltasLeaveTheOrderPathAlone applies a hundred thousand deltas while orders go through the
// desk. The allocations that orders add to those of the whole program are the difference between
// few and many orders over the same deltas and as many commits. Each commit has some allocations of
// its own.
func TestDeltasLeaveTheOrderPathAlone(t *testing.T) {
	r := newSinkRig(t)
	must.OK(t, r.sink(control.Security).Install(t.Context(), control.Snapshot{Source: control.Security,
		Epoch: 1, Watermark: 2,
		Records: []control.Record{stock("AAPL", true, false, 1),
			stock("MSFT", true, false, 2)}}))
	const trips, few, many = 16, 1, 64
	deltas := make([]control.Delta, 1024)
	var version uint64 = 2
	sink := r.sink(control.Security)
	apply := func() {
		for i := range deltas {
			version++
			deltas[i] = control.Delta{Source: control.Security, Epoch: 1, Version: version,
				Record: stock("MSFT", true, i%2 == 0, version)}
		}
		if err := sink.Apply(context.Background(), deltas); err != nil {
			t.Error(err)
		}
	}
	// A batch of one ticket's deltas, and beside it the round trips of n orders each.
	round := func(n int) {
		done := make(chan struct{})
		go func() {
			defer close(done)
			apply()
		}()
		for range trips {
			roundTrip(t, r.k, n)
		}
		<-done
	}
	measure := func(n, rounds int) float64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range rounds {
			round(n)
		}
		runtime.ReadMemStats(&after)
		return float64(after.Mallocs-before.Mallocs) / float64(rounds)
	}
	rounds := max(*sinkDeltas/len(deltas)/2, 4)
	measure(many, 4) // pools and buffers reach their full size
	with, without := measure(many, rounds), measure(few, rounds)
	perOrder := (with - without) / (trips * (many - few))
	t.Logf("%d deltas: %.1f allocations a round with %d orders, %.1f with %d: %.4f an order",
		version-2, with, trips*many, without, trips*few, perOrder)
	if perOrder > 0.05 {
		t.Errorf("an order beside the deltas allocates %.3f times", perOrder)
	}
	if perDelta := without / float64(len(deltas)); perDelta > 0.2 {
		t.Errorf("a delta allocates %.3f times", perDelta)
	}
	if missed := r.k.Gate.Missed(); missed != 0 {
		t.Errorf("the gate has missed %d events", missed)
	}
	if got, want := r.k.Views.SourceMark(blotter.SecuritySource).Watermark,
		int64(version); got != want {
		t.Errorf("the journal is at version %d, want %d", got, want)
	}
}

// roundTrip sends n orders that find no counterparty and do not rest.
func roundTrip(t *testing.T, k *engine.Engine, n int) {
	ticket := must.Get(k.Desk.Acquire(n))(t)
	for i := range n {
		c := ticket.Command(i)
		*c = matcher.NewCommand(matcher.OrderNew)
		c.AccountID, c.SecurityID, c.Qty, c.LimitPx, c.Flags = 1, 1, 1, 1_000_000, matcher.FlagIOC
	}
	must.OK(t, errors.Join(ticket.Submit(), ticket.Wait(0)))
	ticket.Release()
}
