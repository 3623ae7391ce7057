package installation

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"posttrade/app/apptest"
	"posttrade/app/engine"
	"posttrade/app/settings"
	"posttrade/journal"
	"posttrade/matcher"
	"posttrade/ring/must"
	"posttrade/sidecars/control"
	"posttrade/sidecars/feeds"
)

// TestCapacitiesAreRaisedByARestart fills an engine, with further records for which it has no room,
// and starts it with larger settings. Those records become known without an operator. The
// capacities stay in force over starts that do not set them, from a snapshot and from the first
// command, and the journal verifies.
func TestCapacitiesAreRaisedByARestart(t *testing.T) {
	data := t.TempDir()
	first := []string{"risk.seed.accounts", "1,2,3", "risk.max-accounts", "14", "risk.seed.securities",
		"AAPL",
		"risk.max-securities", "600", "risk.max-contracts", "1", "risk.max-open-orders", "2",
		"risk.retained-orders", "3", "risk.idempotency.capacity", "4"}
	i := installFed(t, data, first...)
	awaitFed(i)
	seed := i.Core.Journal.Seed()
	room := 14 - len(i.Core.Gate.Snapshot().Accounts)
	for n := range room + 3 {
		byHandInSQL(i, uint32(7000+n))
	}
	wantMetrics(t, i, `svc_replica_unknown_records{source="account"} 3`)
	awaitAdmission(i, 1, "AAPL", "")
	booking := `{"accountId":1,"payReceive":"Pay","notional":1000,"fixedRate":0.01,` +
		`"effectiveDate":"2026-11-23","maturityDate":"2031-11-23","conventions":"USD-SOFR-1Y-ACT360"}`
	for _, want := range []int{http.StatusOK, http.StatusUnprocessableEntity} {
		if status, body := requested(i, "", "POST", "order-matcher", "/swaps", booking); status != want {
			t.Errorf("a booking: %d %s", status, body)
		}
	}
	i.stop()

	raised := []string{"risk.max-accounts", "20", "risk.max-contracts", "3",
		"risk.max-open-orders", "50", "risk.retained-orders", "30", "risk.idempotency.capacity", "40"}
	i = installFed(t, data, raised...)
	wantMetrics(t, i, `svc_replica_unknown_records{source="account"} 0`)
	for n := range room + 3 {
		awaitAdmission(i, uint32(7000+n), "AAPL", "")
	}
	if status, body := requested(i, "", "POST", "order-matcher", "/swaps",
		booking); status != http.StatusOK {
		t.Errorf("a booking: %d %s", status, body)
	}
	if i.Core.Journal.Seed() != seed || i.Core.Genesis.Limits.MaxAccounts != 14 {
		t.Errorf("the genesis record has changed: %+v", i.Core.Genesis.Limits)
	}
	must.Get(i.Core.Shadow.Take(t.Context()))(t)
	head, image := i.Core.Journal.Answered(), i.Core.Gate.Snapshot()
	i.stop()

	inForce := matcher.Capacities{Accounts: 20, Securities: 600, Contracts: 3,
		OrderRoom: matcher.OrderRoom{Open: 50, Retained: 30, Keys: 40}}
	for name, flags := range map[string][]string{"left out": nil, "said again": raised} {
		i = install(t, data, flags...)
		if got := i.Core.Views.Capacities(); got != inForce || i.Core.Journal.Answered() != head {
			t.Errorf("%s: %+v, %d commands", name, got, i.Core.Journal.Answered()-head)
		}
		if got := i.Core.Gate.Snapshot(); len(got.Accounts) != len(image.Accounts) {
			t.Errorf("%s: %d accounts, %d before", name, len(got.Accounts), len(image.Accounts))
		}
		i.stop()
	}
	if code, out, errs := apptest.Run("journal", "verify", "--data.dir="+data); code !=
		settings.ExitOK {
		t.Errorf("verify: %d %s %s", code, out, errs)
	}
	if code, out, errs := apptest.Run("journal", "export", "--data.dir="+data); code !=
		settings.ExitOK ||
		!strings.Contains(out, `"type":"CAPACITY_CONTROL"`) {
		t.Errorf("export: %d %.300s %s", code, out, errs)
	}
	// A smaller one is refused by name, and so is one that no engine can hold.
	for _, flags := range [][]string{{"risk.max-accounts", "19"}, {"risk.max-contracts", "2"},
		{"risk.max-accounts", "4194304"}, {"risk.max-open-orders", "4"}, {"risk.retained-orders", "29"},
		{"risk.idempotency.capacity", "4"}} {
		wantNoStart(t, append(anyPorts(data), flags...), flags[0], true)
	}
}

// TestARaiseIsTheSameInEveryReplay: an engine that was raised while orders rest has the same state
// from its snapshot and from its first command.
func TestARaiseIsTheSameInEveryReplay(t *testing.T) {
	dir := t.TempDir()
	set := []string{"risk.max-accounts", "4", "risk.max-securities", "3"}
	k := feedCore(t, dir, set...)
	log := slog.New(slog.DiscardHandler)
	roundTrip(t, k, 8)
	must.OK(t, raise(k, t.Context(), matcher.Capacities{Accounts: 9, Securities: 7,
		Contracts: 2_000_000,
		OrderRoom: matcher.OrderRoom{Open: 2_000_000, Retained: 70_000, Keys: 70_000}}, log))
	must.Get(k.Shadow.Take(context.Background()))(t)
	sink := &feeds.Sink{Source: control.Account, Gate: k.Gate, Desk: k.Desk, Views: k.Views,
		Now: time.Now, Log: log}
	records := []control.Record{account(1, true, 1)}
	for n := range 8 {
		records = append(records, account(uint32(10+n), true, uint64(2+n)))
	}
	if err := sink.Install(t.Context(), accountsAt(1, 9, records...)); err != nil ||
		sink.Unknown.Count() != 2 {
		t.Errorf("%v, %d unknown", err, sink.Unknown.Count())
	}
	roundTrip(t, k, 8)
	var before, after bytes.Buffer
	k.BeforeDiscard = func() {
		if err := k.Engine.WriteSnapshot(&before); err != nil {
			t.Error(err)
		}
	}
	must.OK(t, k.Stop())
	k = feedCore(t, dir)
	defer func() {
		if err := k.Stop(); err != nil {
			t.Error(err)
		}
	}()
	if err := k.Engine.WriteSnapshot(&after); err != nil || k.Recovered.Snapshot == 0 ||
		!bytes.Equal(after.Bytes(), before.Bytes()) {
		t.Errorf("from snapshot %d the state is another, %v", k.Recovered.Snapshot, err)
	}
	replayed, err := journal.RecoverFrom(t.Context(), k.Journal, engine.RebuildFrom(k.Genesis), nil)
	must.OK(t, err)
	var whole bytes.Buffer
	if err := replayed.Engine.WriteSnapshot(&whole); err != nil ||
		!bytes.Equal(whole.Bytes(), before.Bytes()) {
		t.Errorf("from the first command the state is another, %v", err)
	}
	if err := errors.Join(replayed.Engine.Close(), replayed.Views.Close()); err != nil {
		t.Error(err)
	}
	if err := k.Views.Check(k.Engine); err != nil {
		t.Error(err)
	}
}
