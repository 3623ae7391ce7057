package installation

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"posttrade/app/apptest"
	"posttrade/journal/backup"
	"posttrade/ring/must"
	"posttrade/sidecars/store"
)

// TestALostDatabaseBesideANewerJournal: the rows of a backup are put into an empty database beside
// a journal that has gone on. The journal loses nothing, accounts and stocks that services have
// added stay open, and what was settled by hand stays settled.
func TestALostDatabaseBesideANewerJournal(t *testing.T) {
	eachDatabase(t, func(t *testing.T, d store.Dialect) {
		data, dir := t.TempDir(), t.TempDir()
		on := func() *installed { // with an empty database of PostgreSQL each time
			return install(t, data, append(databaseFlags(t, d), "risk.bootstrap.enabled", "true",
				"settlement.sweep.interval-ms", "86400000", "settlement.t-plus-days", "365")...)
		}
		in := on()
		in.announced(data)
		post := func(service, path, body string) {
			t.Helper()
			status, text := requested(in, in.token, "POST", service, path, body)
			if status != http.StatusOK && status != http.StatusCreated {
				t.Fatalf("%s: %d %s", path, status, text)
			}
		}
		admitted := func() {
			t.Helper()
			for i, side := range []string{"Sell", "Buy"} {
				order := fmt.Sprintf(`{"accountId":%d,"security":"MORE","side":%q,"quantity":5,`+
					`"limitPrice":10}`, 70001+i, side)
				apptest.Until(t, "an order of an added account is admitted", func() (bool, any) {
					status, text := requested(in, in.token, "POST", "order-matcher", "/orders", order)
					return status == http.StatusCreated, text
				})
			}
		}
		post("account-service", "/account/", `{"id":70001,"displayName":"More"}`)
		post("account-service", "/account/", `{"id":70002,"displayName":"Much more"}`)
		post("reference-data", "/stocks", `{"ticker":"MORE","companyName":"More"}`)
		admitted()
		in.awaitMatched()
		must.Get(in.processor.ForceSettlement(t.Context(), "trd-1"))(t)
		program(t, "backup", filepath.Join(dir, "night"), "--data.dir="+data)
		admitted()
		in.awaitMatched()
		must.Get(in.processor.ForceSettlement(t.Context(), "trd-3"))(t)
		rows := madeAgain(in)
		accounts, stocks := in.resource("account-service", "/account/"), in.resource("reference-data",
			"/stocks")
		before := epochs(in)
		in.stop()
		history := export(t, apptest.Program(t), data)

		for _, end := range []string{"", "-wal", "-shm"} {
			if err := os.Remove(filepath.Join(data, "posttrade.db"+end)); err != nil &&
				!errors.Is(err, fs.ErrNotExist) {
				t.Fatal(err)
			}
		}
		aside := filepath.Join(dir, "aside")
		program(t, "restore", filepath.Join(dir, "night"), "--data.dir="+aside)
		must.OK(t, os.Rename(filepath.Join(aside, backup.RestoredName), filepath.Join(data,
			backup.RestoredName)))
		in = on()
		apptest.Until(t, "nothing is left to do", func() (bool, any) {
			left, err := backup.Restored(data)
			return left == nil && err == nil, left
		})
		in.awaitMatched()
		if got := madeAgain(in); !slices.Equal(got, rows) {
			t.Errorf("the rows are %+v, before %+v", got, rows)
		}
		for _, r := range []struct{ was, is any }{{accounts, in.resource("account-service", "/account/")},
			{stocks, in.resource("reference-data", "/stocks")}} {
			if fmt.Sprint(r.is) != fmt.Sprint(r.was) {
				t.Errorf("%.300v, before %.300v", r.is, r.was)
			}
		}
		for name, epoch := range epochs(in) {
			if epoch <= before[name] {
				t.Errorf("source %s: epoch %d after %d", name, epoch, before[name])
			}
		}
		admitted()
		wantWhole(t, in)
		in.stop()
		if got := export(t, apptest.Program(t), data); len(got) < len(history) ||
			!slices.Equal(got[:len(history)], history) {
			t.Error("the journal has other commands")
		}
	})
}
