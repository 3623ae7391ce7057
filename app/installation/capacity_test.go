package installation

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"posttrade/app/apptest"
	"posttrade/ring/must"
	"posttrade/sidecars/control"
	"posttrade/sidecars/store"
)

// written is the number of changes of a source: the rows of its outbox, and its last version.
func written(i *installed, s control.Source) (rows, version int64) {
	i.t.Helper()
	err := i.Beside.Load().Db.Read(i.t.Context(), func(tx *store.Tx) error {
		if err := tx.Query("select count(*) from outbox where source = $1", func(r *store.Row) error {
			rows = r.Int64(0)
			return nil
		}, string(s)); err != nil {
			return err
		}
		_, last, _, err := tx.Source(string(s))
		version = int64(last)
		return err
	})
	must.OK(i.t, err)
	return rows, version
}

// TestOneRecordTooManyIsRefused: several writers fill the engine's room. Each record beyond it gets
// 409 and leaves nothing behind. Existing records can be changed, and orders go on.
func TestOneRecordTooManyIsRefused(t *testing.T) {
	eachDatabase(t, func(t *testing.T, d store.Dialect) {
		data, flags := t.TempDir(), append(databaseFlags(t, d), "risk.seed.accounts", "1,2,3",
			"risk.max-accounts", "20", "risk.seed.securities", "AAPL", "risk.max-securities", "600")
		i := installFed(t, data, flags...)
		awaitFed(i)
		accounts, stocks := len(i.Core.Gate.Snapshot().Accounts), len(i.Core.Gate.Snapshot().Securities)
		post := func(service, path, body string) (int, string) {
			return requested(i, i.token, "POST", service, path, body)
		}
		fill := func(room int, one func(n int) (int, string)) {
			t.Helper()
			var made, refused atomic.Int64
			var writers sync.WaitGroup
			for w := range 4 {
				writers.Go(func() {
					for n := range room {
						switch status, body := one(w*1000 + n); {
						case status/100 == 2:
							made.Add(1)
						case status == http.StatusConflict && strings.Contains(body, `"code":"CAPACITY"`):
							refused.Add(1)
						default:
							t.Errorf("%d %s", status, body)
						}
					}
				})
			}
			writers.Wait()
			if made.Load() != int64(room) || refused.Load() != int64(3*room) {
				t.Errorf("%d made, %d refused, room was for %d", made.Load(), refused.Load(), room)
			}
		}
		fill(20-accounts, func(n int) (int, string) {
			return post("account-service", "/account/", fmt.Sprintf(`{"id":%d,"displayName":"More"}`,
				5000+n))
		})
		fill(600-stocks, func(n int) (int, string) {
			return post("reference-data", "/stocks", fmt.Sprintf(`{"ticker":"X%d","companyName":"More"}`, n))
		})
		for _, s := range control.Sources() {
			before, version := written(i, s)
			if before != version {
				t.Errorf("source %s: %d rows in the outbox, version %d", s, before, version)
			}
			if status, body := post("account-service", "/account/",
				`{"id":9999,"displayName":"More"}`); status != http.StatusConflict {
				t.Errorf("one more: %d %s", status, body)
			}
			if rows, after := written(i, s); rows != before || after != version {
				t.Errorf("source %s: a refusal has written: %d rows, version %d", s, rows, after)
			}
		}
		if status, body := post("account-service", "/account/",
			`{"id":1,"displayName":"Renamed"}`); status != http.StatusOK {
			t.Errorf("one that is there: %d %s", status, body)
		}
		if status, body := post("reference-data", "/stocks",
			`{"ticker":"AAPL","companyName":"Renamed"}`); status != http.StatusOK {
			t.Errorf("one that is there: %d %s", status, body)
		}
		awaitFed(i)
		awaitAdmission(i, 1, "AAPL", "")
		i.stop()
		i = installFed(t, data, flags...)
		awaitFed(i)
		awaitAdmission(i, 1, "AAPL", "")
		wantMetrics(t, i, `svc_replica_unknown_records{source="account"} 0`,
			`svc_replica_unknown_records{source="security"} 0`)
	})
}

// byHandInSQL writes an account past the service, as another program does that knows the tables.
func byHandInSQL(i *installed, id uint32) {
	i.t.Helper()
	err := i.Beside.Load().Db.Write(i.t.Context(), func(tx *store.Tx) error {
		epoch, version, err := tx.NextVersion(string(control.Account), 1)
		if err != nil {
			return err
		}
		d := control.Delta{Source: control.Account, Epoch: epoch, Version: version,
			Record: control.Record{ID: id, Name: "Past the service", Enabled: true, Version: version}}
		if _, err := tx.Exec(
			"insert into accounts (id, display_name, enabled, version) values ($1, $2, $3, $4)",
			id, d.Record.Name, true, version); err != nil {
			return err
		}
		return tx.AddOutbox(string(control.Account), epoch, version, d.AppendJSON(nil), 1)
	})
	must.OK(i.t, err)
}

// TestARecordWithoutRoomIsUnknownAlone: accounts that were written past the service find no room.
// Only these are unknown to the gate; /readyz and a gauge say so. All of that is the same after a
// restart, when they come with the snapshot.
func TestARecordWithoutRoomIsUnknownAlone(t *testing.T) {
	data := t.TempDir()
	flags := []string{"risk.seed.accounts", "1,2,3", "risk.max-accounts", "13"}
	i := installFed(t, data, flags...)
	awaitFed(i)
	room := 13 - len(i.Core.Gate.Snapshot().Accounts)
	for n := range room + 2 {
		byHandInSQL(i, uint32(7000+n))
	}
	check := func() {
		t.Helper()
		wantMetrics(t, i, `svc_replica_unknown_records{source="account"} 2`,
			`svc_replica_ready{source="account"} 1`)
		awaitAdmission(i, 1, "AAPL", "")
		awaitAdmission(i, uint32(7000+room-1), "AAPL", "")
		awaitAdmission(i, uint32(7000+room), "AAPL", "UNKNOWN_ACCOUNT")
		status, body := requested(i, "", "GET", "admin", "/readyz", "")
		if status != http.StatusOK || !strings.Contains(body, "2 records are unknown to the gate") ||
			!strings.Contains(body, "raise risk.max-accounts and start again") {
			t.Errorf("readyz: %d %s", status, body)
		}
		status, body = requested(i, i.token, "POST", "account-service", "/account/",
			`{"id":9999,"displayName":"More"}`)
		if status != http.StatusConflict {
			t.Errorf("one more: %d %s", status, body)
		}
	}
	check()
	// A change of an unknown record changes nothing; a change of a known record is applied.
	for _, id := range []int{1, 7000 + room} {
		body := fmt.Sprintf(`{"id":%d,"displayName":"Renamed","enabled":%v}`, id, id != 1)
		if status, text := requested(i, i.token, "POST", "account-service", "/account/",
			body); status != http.StatusOK {
			t.Errorf("account %d: %d %s", id, status, text)
		}
	}
	awaitAdmission(i, 1, "AAPL", "ACCOUNT_DISABLED")
	postAccount(i, 1, true)
	check()
	i.stop()
	i = installFed(t, data, flags...)
	check()
	apptest.Until(t, "the acts are on record", func() (bool, any) { return noActWaits(i), nil })
	head := i.Core.Journal.Answered()
	i.stop()
	i = installFed(t, data, flags...)
	apptest.Until(t, "the source is ready",
		func() (bool, any) { s := i.Core.Gate.Snapshot(); return s.Ready, s.Sources })
	if grown := i.Core.Journal.Answered() - head; grown > 0 {
		t.Errorf("a start has sequenced %d commands for records that have no place", grown)
	}
}

// noActWaits reports that the journal has all acts of operators.
func noActWaits(i *installed) bool {
	i.t.Helper()
	waits := false
	must.OK(i.t, i.Beside.Load().Db.Read(i.t.Context(), func(tx *store.Tx) (err error) {
		_, waits, err = tx.FirstAct()
		return err
	}))
	return !waits
}
