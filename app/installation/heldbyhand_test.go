package installation

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"posttrade/app/apptest"
	"posttrade/ring/must"
	"posttrade/sidecars/control"
	"posttrade/sidecars/store"
)

// controlRows are the flags and the holder of an account and a security, as
// GET /risk/control/snapshot shows them.
func controlRows(i *installed, id uint32, ticker string) string {
	i.t.Helper()
	status, body := requested(i, i.token, "GET", "order-matcher", "/risk/control/snapshot", "")
	var image struct {
		Accounts []struct {
			ID      uint32
			Enabled bool
			HeldBy  string
		}
		Securities []struct {
			Ticker          string
			Enabled, Halted bool
			HeldBy          string
		}
	}
	if err := json.Unmarshal([]byte(body), &image); err != nil || status != http.StatusOK {
		i.t.Fatal(status, err, body)
	}
	var text string
	for _, a := range image.Accounts {
		if a.ID == id {
			text = fmt.Sprint(a.Enabled, " ", a.HeldBy)
		}
	}
	for _, x := range image.Securities {
		if x.Ticker == ticker {
			text += fmt.Sprint(", ", x.Enabled, " ", x.Halted, " ", x.HeldBy)
		}
	}
	return text
}

// TestARenameLeavesWhatAnOperatorHasSet disables an account and halts a security by hand. Both stay
// so after renames at the source, restarts with and without a snapshot, and a rename that the
// replica gets only after a restart. A change that states the flag lifts it.
func TestARenameLeavesWhatAnOperatorHasSet(t *testing.T) {
	eachDatabase(t, func(t *testing.T, d store.Dialect) {
		data, flags := t.TempDir(), databaseFlags(t, d)
		i := installFed(t, data, flags...)
		awaitFed(i)
		send := func(service, path, body string) {
			t.Helper()
			if status, text := requested(i, i.token, "POST", service, path, body); status/100 != 2 {
				t.Fatalf("%s %s: %d %s", path, body, status, text)
			}
		}
		caughtUp := func() {
			t.Helper()
			apptest.Until(t, "both sources are taken in", func() (bool, any) {
				for _, s := range control.Sources() {
					_, version := written(i, s)
					if at := feedStatus(i, s); !i.Core.Gate.Ready() || at.Watermark != uint64(version) {
						return false, at
					}
				}
				return true, nil
			})
		}
		is := func(want string) {
			t.Helper()
			if got := controlRows(i, 2, "AAPL"); got != want {
				t.Errorf("account and security: %s, want %s", got, want)
			}
		}
		rename := func(name string) {
			t.Helper()
			if status, text := requested(i, i.token, "PUT", "account-service", "/account/",
				`{"id":2,"displayName":"`+name+`"}`); status != http.StatusOK {
				t.Fatalf("%d %s", status, text)
			}
			send("reference-data", "/stocks", `{"ticker":"AAPL","companyName":"`+name+`"}`)
		}
		is("true source, true false source")
		send("order-matcher", "/risk/control/account", `{"accountId":2,"enabled":false}`)
		send("order-matcher", "/risk/control/security",
			`{"security":"AAPL","enabled":true,"halted":true}`)
		const held = "false operator, true true operator"
		is(held)
		rename("Once")
		caughtUp()
		is(held)
		if got := refusalOf(i, 2, "MSFT"); got != "ACCOUNT_DISABLED" {
			t.Errorf("an order of the account: %q", got)
		}
		if got := refusalOf(i, 1, "AAPL"); got != "SECURITY_DISABLED" {
			t.Errorf("an order in the security: %q", got)
		}
		must.Get(i.Core.Shadow.Take(t.Context()))(t)
		rename("Twice")
		caughtUp()
		i.stop()

		// Renamed while no replica listened: it comes with the control snapshot.
		i = install(t, data, flags...)
		is(held)
		rename("Unheard")
		i.stop()
		i = installFed(t, data, flags...)
		caughtUp()
		is(held)

		// One flag is said, the other is not.
		send("reference-data", "/stocks", `{"ticker":"AAPL","companyName":"Said","enabled":true}`)
		caughtUp()
		is(held)
		send("account-service", "/account/", `{"id":2,"displayName":"Said","enabled":true}`)
		send("reference-data", "/stocks", `{"ticker":"AAPL","companyName":"Said","halted":false}`)
		caughtUp()
		is("true source, true false source")

		// What the source itself has closed stays closed by a rename too.
		send("account-service", "/account/", `{"id":2,"displayName":"Said","enabled":false}`)
		rename("At last")
		caughtUp()
		is("false source, true false source")
	})
}
