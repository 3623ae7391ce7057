package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"posttrade/matcher"
	"posttrade/matcher/session/client"
	"posttrade/matcher/session/wire"
)

// TestSessionThroughAWholeInstallation hands an order in through shared memory and finds
// it over HTTP, in the metrics and, after a restart, in the journal.
func TestSessionThroughAWholeInstallation(t *testing.T) {
	data := t.TempDir()
	in, socket, answer := orderThroughMemory(t, data, "through-memory")
	if answer.Correlation != 77 || answer.Kind != wire.Answer || answer.Code != wire.Decided || answer.Reason != matcher.Accepted {
		t.Errorf("answer %+v", answer)
	}
	status, body := in.get("order-matcher", "/orders/ord-1")
	if status != 200 || !strings.Contains(string(body), `"clientOrderId":"through-memory"`) {
		t.Errorf("the order over HTTP: %d %s", status, body)
	}
	if status, body := in.get("admin", "/metrics"); status != 200 || !strings.Contains(string(body), "svc_session_commands_total 1\n") {
		t.Errorf("metrics: %d", status)
	}
	in.stop()
	if _, err := os.Stat(socket); !os.IsNotExist(err) {
		t.Errorf("the socket is left behind: %v", err)
	}
	again := install(t, data, "sidecars.enabled", "false")
	if _, body := again.get("order-matcher", "/orders"); !strings.Contains(string(body), "through-memory") {
		t.Errorf("after a restart: %s", body)
	}
}

// orderThroughMemory starts an installation on data, has a client without a token turned
// away, and hands an order in through the memory of one that has a token.
func orderThroughMemory(t *testing.T, data, clientID string) (in *installed, socket string, answer *wire.Record) {
	t.Helper()
	dir, err := os.MkdirTemp("", "pt") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket = filepath.Join(dir, "s")
	in = install(t, data, "sidecars.enabled", "false", "session.socket", socket, "risk.entitlement.enforced", "true")
	if _, err := client.Dial(t.Context(), socket, "no token", client.Options{}); err == nil {
		t.Error("a session without a token")
	}
	c, err := client.Dial(t.Context(), socket, in.token, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	security, err := c.Security(t.Context(), "AAPL")
	if err != nil {
		t.Fatal(err)
	}
	order := client.NewOrder{Account: 1, Security: security, Side: matcher.Buy, Qty: 10, LimitPx: 150 * matcher.PriceScale}
	if err := c.Order(77, &order, clientID); err != nil {
		t.Fatal(err)
	}
	c.Flush()
	if answer, err = c.Next(); err != nil {
		t.Fatal(err)
	}
	return in, socket, answer
}
