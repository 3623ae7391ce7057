package installation

import (
	"net/http"
	"strings"
	"testing"
)

// A repeated trade has its first answer although the blotter has dropped the trade, also after a
// start.
func TestARepeatedTradeIsAnsweredFromTheJournal(t *testing.T) {
	data := t.TempDir()
	settings := []string{"recon.blotter.capacity", "10", "sidecars.enabled", "false"}
	in := install(t, data, settings...)
	trade := func(in *installed, key string) string {
		status, body := call(t, "POST", "http://"+in.at("order-matcher")+"/trades",
			`{"accountId":1,"security":"AAPL","side":"Buy","quantity":1`+key+`}`)
		if status != http.StatusCreated {
			t.Fatalf("trade: %d %s", status, body)
		}
		return body
	}
	in.trade(1) // gives the security a price
	first := trade(in, `,"clientOrderId":"t1"`)
	for range 12 {
		trade(in, "")
	}
	if again := trade(in, `,"clientOrderId":"t1"`); again != first || strings.Contains(first, "null") {
		t.Errorf("first %s, again %s", first, again)
	}
	in.stop()
	in = install(t, data, settings...)
	if again := trade(in, `,"clientOrderId":"t1"`); again != first {
		t.Errorf("first %s, after a start %s", first, again)
	}
}
