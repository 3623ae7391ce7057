package installation

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"posttrade/app/apptest"
	"posttrade/app/settings"
	"posttrade/matcher"
)

// TestEveryInstallationHasASecretForClientIDs: the secret is in the journal's genesis, no answer
// shows it, and it is the same after a restart.
func TestEveryInstallationHasASecretForClientIDs(t *testing.T) {
	keys := map[string]bool{}
	for range 2 {
		data := t.TempDir()
		in := install(t, data, "sidecars.enabled", "false")
		secret := in.Core.Genesis.ClientKey
		if k, err := matcher.ParseClientKey(secret); err != nil || secret == "" ||
			k == (matcher.ClientKey{}) {
			t.Fatalf("secret %q: %v", secret, err)
		}
		keys[secret] = true
		if status, body := requested(in, "", "POST", "order-matcher", "/orders",
			sellOrder); status != 201 {
			t.Fatalf("%d %s", status, body)
		}
		status, report := requested(in, in.token, "GET", "order-matcher", "/regulatory/report", "")
		if status != http.StatusOK || !strings.Contains(report, `"seed":{"format":1,`) ||
			!strings.Contains(report, `"retainedOrders"`) {
			t.Errorf("report: %d %.300s", status, report)
		}
		for _, page := range []string{"/metrics", "/readyz", "/health", "/stats"} {
			_, body := requested(in, in.token, "GET", "admin", page, "")
			report += body
		}
		if strings.Contains(report, secret) || strings.Contains(report, "clientKey") {
			t.Error("an answer shows the secret")
		}
		in.stop()
		in = install(t, data, "sidecars.enabled", "false")
		if in.Core.Genesis.ClientKey != secret {
			t.Error("a restart has another secret")
		}
		status, body := requested(in, "", "POST", "order-matcher", "/orders", sellOrder)
		if status != 201 || !strings.Contains(body, `"orderId":"ord-1"`) {
			t.Errorf("repeated after the restart: %d %s", status, body)
		}
		in.stop()
	}
	if len(keys) != 2 {
		t.Error("two installations have one secret")
	}
}

// TestUnknownTickerIsRepeatedAsItWasSent: an order with a ticker that no security had is refused.
// The same request gets the same refusal again, before and after the ticker is listed, after a
// restart and from a snapshot. Another ticker is another order.
func TestUnknownTickerIsRepeatedAsItWasSent(t *testing.T) {
	data := t.TempDir()
	in := installFed(t, data)
	awaitFed(in)
	order := func(security, key string) (int, string) {
		return requested(in, "", "POST", "order-matcher", "/orders", fmt.Sprintf(
			`{%s"accountId":22214,"security":"%s","side":"Buy","quantity":5,"limitPrice":100}`, key,
			security))
	}
	const k = `"clientOrderId":"k",`
	status, first := order("NEWCO", k)
	if status != 422 || !strings.Contains(first, "UNKNOWN_SECURITY") {
		t.Fatalf("%d %s", status, first)
	}
	check := func(when string) {
		t.Helper()
		if status, body := order("NEWCO", k); status != 422 || body != first {
			t.Errorf("%s, the same: %d %s\nfirst %s", when, status, body, first)
		}
		for _, ticker := range []string{"OLDCO", "AAPL"} {
			if status, body := order(ticker, k); status != 409 || !strings.Contains(body, "TERMS_DIFFER") {
				t.Errorf("%s, %s: %d %s", when, ticker, status, body)
			}
		}
	}
	check("unknown")
	postStock(in, "NEWCO", true, false)
	awaitAdmission(in, 22214, "NEWCO", "")
	check("listed")
	in.stop()
	in = installFed(t, data)
	awaitFed(in)
	check("after a restart")
	in.stop()
	if code, _, errs := apptest.Run("snapshot", "--data.dir="+data); code != settings.ExitOK {
		t.Fatal(errs)
	}
	if code, out, errs := apptest.Run("journal", "verify", "--data.dir="+data); code !=
		settings.ExitOK {
		t.Errorf("verify: %s %s", out, errs)
	}
	in = installFed(t, data)
	awaitFed(in)
	check("from a snapshot")
	in.stop()
}
