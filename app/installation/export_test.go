package installation

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"posttrade/app/apptest"
	"posttrade/app/settings"
)

// TestExportSpeaksTheWordsOfTheInterface exports what came over HTTP: tickers, sides, decimal
// prices and what controls set. With --raw it has the fields of the records.
func TestExportSpeaksTheWordsOfTheInterface(t *testing.T) {
	data := t.TempDir()
	i := install(t, data, "risk.seed.accounts", "1,2", "risk.seed.securities", "AAPL,MSFT",
		"sidecars.enabled", "false")
	for _, r := range [][3]string{
		{"/prices", `[{"security":"MSFT","price":"401.25"}]`},
		{"/orders", `{"clientOrderId":"a\"b","accountId":1,"security":"MSFT","side":"Sell",` +
			`"quantity":7,` +
			`"limitPrice":401.5,"timeInForce":"POST_ONLY"}`},
		{"/orders", `{"accountId":2,"security":"MSFT","side":"Buy","quantity":2,"type":"MARKET",` +
			`"timeInForce":"IOC"}`},
		{"/orders", `{"accountId":2,"security":"MSFT","side":"Buy","quantity":2,"limitPrice":9999}`},
		{"/orders/ord-1/replace", `{"quantity":6,"limitPrice":401}`},
		{"/orders/ord-1/cancel", ""},
		{"/trades", `{"accountId":2,"security":"MSFT","side":"Buy","quantity":3}`},
		{"/swaps", `{"clientOrderId":"s1","accountId":1,"payReceive":"Pay","notional":25,` +
			`"fixedRate":-0.0005,"effectiveDate":"2026-01-05","maturityDate":"2031-01-05",` +
			`"conventions":"USD-SOFR-1Y-ACT360"}`},
		{"/swaptions", `{"accountId":1,"payReceive":"Receive","notional":25,` +
			`"fixedRate":4.25,"effectiveDate":"2026-01-05","maturityDate":"2031-01-05",` +
			`"conventions":"USD-SOFR-1Y-ACT360","expiryDate":"2026-01-02","exerciseStyle":"European"}`},
		{"/risk/extract", `{"sessionDate":"2026-12-01","priceVersion":7}`},
		{"/risk/control/account", `{"accountId":2,"enabled":false}`},
		{"/risk/control/security", `{"security":"AAPL","enabled":true,"halted":true}`},
		{"/risk/control/restriction", `{"security":"AAPL","restricted":true}`},
		{"/risk/control/policy", `{"policyVersion":3,"killSwitch":true,"maxPositionQuantity":5}`},
		{"/risk/control/accounts/1/limits", `{"policyVersion":4,"limits":{"creditLimit":"7.5",` +
			`"priceCollarBps":null}}`},
	} {
		if status, body := requested(i, i.token, "POST", "order-matcher", r[0], r[1]); status >= 300 &&
			status != 422 {
			t.Fatalf("%s: %d %s", r[0], status, body)
		}
	}
	i.stop()
	code, out, errs := apptest.Run("journal", "export", "--data.dir="+data)
	if code != settings.ExitOK {
		t.Fatalf("%d %s", code, errs)
	}
	all := strings.Split(strings.TrimSpace(out), "\n")
	lines := slices.DeleteFunc(slices.Clone(all), func(line string) bool {
		return strings.Contains(line, `"type":"OPERATOR_NOTE"`)
	})
	if !strings.Contains(out, `"acts":1,"part":2,"parts":2,"text":"ll]}"`) {
		t.Errorf("no note in %s", out)
	}
	for n, want := range []string{
		`"type":"PRICE_TICK","time":"T","security":"MSFT","price":401.25}`,
		`"type":"ORDER_NEW","time":"T","accountId":1,"security":"MSFT","side":"Sell","quantity":7,` +
			`"limitPrice":401.5,"timeInForce":"POST_ONLY","clientOrderId":"a\"b"}`,
		`"type":"ORDER_NEW","time":"T","accountId":2,"security":"MSFT","side":"Buy","quantity":2,` +
			`"orderType":"MARKET","timeInForce":"IOC"}`,
		`"type":"ORDER_NEW","time":"T","accountId":2,"security":"MSFT","side":"Buy","quantity":2,` +
			`"limitPrice":9999,"refusedAtTheGate":"PRICE_COLLAR"}`,
		`"type":"ORDER_REPLACE","time":"T","orderId":"ord-1","accountId":1,"security":"MSFT",` +
			`"side":"Sell","quantity":6,"limitPrice":401,"timeInForce":"POST_ONLY"}`,
		`"type":"ORDER_CANCEL","time":"T","orderId":"ord-1","accountId":1}`,
		`"type":"TRADE_NEW","time":"T","accountId":2,"security":"MSFT","side":"Buy","quantity":3}`,
		`"type":"SWAP_BOOK","time":"T","accountId":1,"payReceive":"Pay","notional":25,` +
			`"fixedRate":-0.0005,"effectiveDate":"2026-01-05","maturityDate":"2031-01-05",` +
			`"conventions":"USD-SOFR-1Y-ACT360","clientOrderId":"s1"}`,
		`"type":"SWAPTION_BOOK","time":"T","accountId":1,"payReceive":"Receive","notional":25,` +
			`"fixedRate":4.25,"effectiveDate":"2026-01-05","maturityDate":"2031-01-05",` +
			`"conventions":"USD-SOFR-1Y-ACT360","expiryDate":"2026-01-02","exerciseStyle":"European"}`,
		`"type":"RISK_EXTRACT","sessionDate":"2026-12-01","priceVersion":7}`,
		`"type":"ACCOUNT_CONTROL","time":"T","accountId":2,"enabled":false,"version":1,` +
			`"setBy":"operator"}`,
		`"type":"SECURITY_CONTROL","time":"T","security":"AAPL","enabled":true,"halted":true,` +
			`"version":1,"setBy":"operator"}`,
		`"type":"RESTRICTION_CONTROL","time":"T","security":"AAPL","restricted":true,"version":2}`,
		`"type":"POLICY_CONTROL","time":"T","policyVersion":3,"killSwitch":true,"maxPositionQuantity":5}`,
		`"type":"LIMITS_CONTROL","time":"T","policyVersion":4,"accountId":1,"creditLimit":7.5,"part":1,` +
			`"parts":2}`,
		`"type":"LIMITS_CONTROL","time":"T","policyVersion":4,"accountId":1,"priceCollarBps":null,` +
			`"part":2,"parts":2}`,
	} {
		var line map[string]any
		if n >= len(lines) {
			t.Fatalf("only %d lines", len(lines))
		}
		if err := json.Unmarshal([]byte(lines[n]), &line); err != nil {
			t.Fatalf("%v: %s", err, lines[n])
		}
		at, _ := line["time"].(string)
		if got := strings.Replace(lines[n], at, "T", 1); !strings.HasSuffix(got, want) {
			t.Errorf("line %d: %s\nwant %s", n+1, got, want)
		}
	}
	if code, part, _ := apptest.Run("journal", "export", "--data.dir="+data, "--from=3",
		"--to=4"); code != settings.ExitOK || part != strings.Join(all[2:4], "\n")+"\n" {
		t.Errorf("a part: %d %s", code, part)
	}
	if code, raw, _ := apptest.Run("journal", "export", "--raw", "--data.dir="+data,
		"--to=3"); code != settings.ExitOK || !strings.Contains(raw, `"priceTicks":401250000`) {
		t.Errorf("raw: %d %s", code, raw)
	}
}
