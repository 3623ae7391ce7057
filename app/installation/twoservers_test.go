package installation

import (
	"io"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"posttrade/app/apptest"
	"posttrade/journal/backup"
	"posttrade/ring/must"
	"posttrade/sidecars/broker"
	"posttrade/sidecars/store"
	"posttrade/sidecars/store/storetest"
)

// TestADrillOnProductionsDatabaseWaits: a restored copy that is given the database of the server
// that it was made from changes nothing in it while that one runs, and says which session has it.
// It stays ready, and refuses what an operator asks for. When it gets the database, that has gone
// on without it: then it admits no order.
func TestADrillOnProductionsDatabaseWaits(t *testing.T) {
	onPostgres(t, func(flags []string) {
		data, night := t.TempDir(), filepath.Join(t.TempDir(), "night")
		in := install(t, data, flags...)
		in.announced(data)
		in.trade(3)
		in.awaitMatched()
		program(t, "backup", night, "--data.dir="+data)
		var before map[string]uint64
		apptest.Until(t, "each source has begun its first epoch", func() (bool, any) {
			before = epochs(in)
			return !slices.Contains(slices.Collect(maps.Values(before)), 0), before
		})

		copied := filepath.Join(t.TempDir(), "data")
		program(t, "restore", night, "--data.dir="+copied)
		drill := install(t, copied, flags...)
		apptest.Until(t, "the drill says who has the database", func() (bool, any) {
			ready, detail := drill.part("database")
			return !ready && strings.Contains(detail, "another server holds the database: session "), detail
		})
		for name, act := range map[string]struct{ service, method, path, body string }{
			"a forced settlement": {"trade-processor", "POST", "/trades/trd-1/settlement/force", ""},
			"a repair": {"trade-processor", "POST", "/recon/repair",
				`{"from":"trd-1","to":"trd-2"}`},
			"an orphan sweep": {"trade-processor", "POST", "/recon/orphan-sweep", ""},
			"a statement": {"trade-processor", "POST", "/recon/statement",
				`[{"id":"ext-a","accountId":1,"security":"AAPL","side":"Buy","quantity":1,"price":1,` +
					`"timestamp":"2026-11-20T10:00:00Z"}]`},
			"closing marks": {"trade-processor", "PUT", "/eod/prices/2026-11-20/v1",
				`[{"security":"AAPL","price":187.31}]`},
			"an account": {"account-service", "POST", "/account/",
				`{"id":901,"displayName":"drill"}`},
			"a stock": {"reference-data", "POST", "/stocks", `{"ticker":"AAPL","companyName":"drill"}`},
		} {
			r := must.Get(http.NewRequest(act.method, "http://"+drill.at(act.service)+act.path,
				strings.NewReader(act.body)))(t)
			r.Header.Set("Authorization", "Bearer "+drill.token)
			answer := must.Get(http.DefaultClient.Do(r))(t)
			text := must.Get(io.ReadAll(answer.Body))(t)
			must.OK(t, answer.Body.Close())
			if answer.StatusCode != http.StatusServiceUnavailable {
				t.Errorf("%s: %d %s", name, answer.StatusCode, text)
			}
		}
		// It leaves the end of a day to the server whose extracts run: it has no consumer on the stream.
		if _, err := drill.Beside.Load().broker.Publish(t.Context(), eodSubject,
			[]byte(`{"sessionDate":"2026-11-20","version":1}`), broker.PublishOptions{}); err == nil {
			t.Error("the drill takes messages of the end of a day")
		}
		in.trade(4)
		wantWhole(t, in)
		if ready, detail := in.part("database"); !ready {
			t.Errorf("production's database: %s", detail)
		}
		for name, epoch := range epochs(in) {
			if epoch != before[name] {
				t.Errorf("source %s: epoch %d after %d", name, epoch, before[name])
			}
		}
		if origin, err := backup.Restored(copied); origin == nil || err != nil {
			t.Errorf("the drill has done what its restore left: %v", err)
		}
		in.stop()
		apptest.Until(t, "the drill finds that the database has gone on", func() (bool, any) {
			return isHeld(drill.Core), nil
		})
		status, body := call(t, "POST", "http://"+drill.at("order-matcher")+"/orders",
			`{"accountId":1,"security":"AAPL","side":"Sell","quantity":5,"limitPrice":10}`)
		if status != http.StatusServiceUnavailable {
			t.Errorf("order: %d %s", status, body)
		}
		twin := must.Get(drill.Beside.Load().Db.Twin())(t)
		must.OK(t, twin.Hold(t.Context())) // the drill has let it go
		must.OK(t, twin.Close())
	})
}

// TestAnOlderJournalIsNotAcceptedOverAnotherServer: --accept-older-journal makes a database forget
// what the journal does not have, which is wrong while another server writes it.
func TestAnOlderJournalIsNotAcceptedOverAnotherServer(t *testing.T) {
	onPostgres(t, func(flags []string) {
		data, older := t.TempDir(), filepath.Join(t.TempDir(), "older")
		in := install(t, data, flags...)
		in.trade(2)
		in.awaitMatched()
		in.stop()
		copyTree(t, data, older)
		in = install(t, data, flags...)
		in.trade(2)
		in.awaitMatched()
		_, line := openFails(t, older, append(flags, "accept-older-journal", "true")...)
		if !strings.Contains(line, "another server holds the database: session ") {
			t.Errorf("refused with %s", line)
		}
		wantWhole(t, in)
	})
}

// onPostgres runs a test of what SQLite's file cannot have: two servers on one database, which the
// flags name.
func onPostgres(t *testing.T, test func(flags []string)) {
	t.Helper()
	if slices.Contains(storetest.Dialects(t), store.Postgres) {
		test(databaseFlags(t, store.Postgres))
	}
}
