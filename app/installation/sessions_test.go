package installation

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"posttrade/app/apptest"
	"posttrade/app/engine"
	"posttrade/matcher"
	"posttrade/matcher/desk"
	"posttrade/matcher/session/client"
	"posttrade/matcher/session/wire"
	"posttrade/ring/must"
)

// TestSessionThroughAWholeInstallation sends an order through shared memory and finds it over HTTP,
// in the metrics and, after a restart, in the journal.
func TestSessionThroughAWholeInstallation(t *testing.T) {
	data := t.TempDir()
	in, socket, answer := orderThroughMemory(t, data, "through-memory")
	if answer.Correlation != 77 || answer.Kind != wire.Answer || answer.Code != wire.Decided ||
		answer.Reason != matcher.Accepted {
		t.Errorf("answer %+v", answer)
	}
	status, body := in.get("order-matcher", "/orders/ord-1")
	if status != 200 || !strings.Contains(string(body), `"clientOrderId":"through-memory"`) {
		t.Errorf("the order over HTTP: %d %s", status, body)
	}
	if status, body := in.get("admin", "/metrics"); status != 200 ||
		!strings.Contains(string(body), "svc_session_commands_total 1\n") {
		t.Errorf("metrics: %d", status)
	}
	in.stop()
	if _, err := os.Stat(socket); !os.IsNotExist(err) {
		t.Errorf("the socket is left behind: %v", err)
	}
	again := install(t, data, "sidecars.enabled", "false")
	if _, body := again.get("order-matcher", "/orders"); !strings.Contains(string(body),
		"through-memory") {
		t.Errorf("after a restart: %s", body)
	}
}

// orderThroughMemory starts an installation on data. It checks that a client without a token is
// turned away, and sends an order through the shared memory of a client with a token.
func orderThroughMemory(t *testing.T,
	data, clientID string) (in *installed, socket string, answer *wire.Record) {
	t.Helper()
	dir, err := os.MkdirTemp("", "pt") // because the path of a socket must be short
	must.OK(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket = filepath.Join(dir, "s")
	in = install(t, data, "sidecars.enabled", "false", "session.socket", socket,
		"risk.entitlement.enforced", "true")
	if _, err := client.Dial(t.Context(), socket, "no token", client.Options{}); err == nil {
		t.Error("a session without a token")
	}
	c, err := client.Dial(t.Context(), socket, in.token, client.Options{})
	must.OK(t, err)
	t.Cleanup(func() { c.Close() })
	security, err := c.Security(t.Context(), "AAPL")
	must.OK(t, err)
	order := client.NewOrder{Account: 1, Security: security, Side: matcher.Buy, Qty: 10,
		LimitPx: 150 * matcher.PriceScale}
	must.OK(t, c.Order(77, &order, clientID))
	c.Flush()
	if answer, err = c.Next(); err != nil {
		t.Fatal(err)
	}
	return in, socket, answer
}

// Sessions write to the log of the server: in its form, and from its level on.
func TestSessionsWriteTheServersLog(t *testing.T) {
	dir, err := os.MkdirTemp("", "pt") // because the path of a socket must be short
	must.OK(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s")
	for level, want := range map[string]int{"info": 1, "warn": 0} {
		c := apptest.Settled(t, append(anyPorts(t.TempDir()), "sidecars.enabled", "false",
			"session.socket", socket, "risk.entitlement.enforced", "true", "log.format", "json",
			"log.level", level)...)
		var said bytes.Buffer
		in, err := Open(t.Context(), c, EngineOptions(c),
			newLog(c, NewFatalStderr(&said), c.LogLevel()))
		must.OK(t, err)
		if _, err := client.Dial(t.Context(), socket, "no token", client.Options{}); err == nil {
			t.Error("a session without a token")
		}
		must.OK(t, in.Stop()) // no goroutine writes from here on
		if n := strings.Count(said.String(), `"msg":"session: refused"`); n != want {
			t.Errorf("log.level=%s: %d refusals, want %d:\n%s", level, n, want, &said)
		}
		for line := range strings.Lines(said.String()) {
			if !json.Valid([]byte(line)) {
				t.Errorf("no JSON: %s", line)
			}
		}
	}
}

// Sessions that use all of their tickets stop neither HTTP nor the sidecars, and requests that use
// all of theirs do not stop the sessions.
func TestCrowdsOfOneKindStopNoOther(t *testing.T) {
	in, _, _ := orderThroughMemory(t, t.TempDir(), "before")
	k := in.Core
	held := map[desk.Kind][]*desk.Ticket{}
	hold := func(kind desk.Kind) {
		t.Helper()
		for {
			ticket, err := k.Desk.Pool(kind).Acquire(1)
			if errors.Is(err, desk.ErrBusy) {
				return
			}
			must.OK(t, err)
			held[kind] = append(held[kind], ticket)
		}
	}
	order := func() int {
		body := strings.NewReader(
			`{"accountId":1,"security":"AAPL","side":"Buy","quantity":1,"limitPrice":150}`)
		request := must.Get(http.NewRequestWithContext(t.Context(), "POST",
			"http://"+in.at("order-matcher")+"/orders", body))(t)
		request.Header.Set("Authorization", "Bearer "+in.token)
		answer := must.Get(http.DefaultClient.Do(request))(t)
		answer.Body.Close()
		return answer.StatusCode
	}
	sidecar := func() error {
		return desk.SubmitUntil(t.Context(), k.Desk, 1, func(_ int, c *matcher.Command) error {
			*c = matcher.NewCommand(matcher.PriceTick)
			c.EventTimeMillis, c.SecurityID, c.PriceTicks = 1, 1, 150*matcher.PriceScale
			return nil
		}, func(*desk.Answer) error { return nil })
	}
	hold(desk.Sessions)
	if want := 64 * engine.SessionTickets; len(held[desk.Sessions]) != want {
		t.Errorf("sessions have %d tickets, want %d", len(held[desk.Sessions]), want)
	}
	if status := order(); status != 201 {
		t.Errorf("an order over HTTP beside a crowd of sessions: %d", status)
	}
	for _, ticket := range held[desk.Sessions] {
		ticket.Release()
	}
	hold(desk.Requests)
	if status := order(); status != 429 {
		t.Errorf("an order over HTTP without a ticket: %d", status)
	}
	if err := sidecar(); err != nil {
		t.Errorf("a price beside a crowd of requests: %v", err)
	}
	ticket, err := k.Desk.Pool(desk.Sessions).Acquire(1)
	if err != nil {
		t.Errorf("a session beside a crowd of requests: %v", err)
	} else {
		ticket.Release()
	}
	for _, ticket := range held[desk.Requests] {
		ticket.Release()
	}
	if status := order(); status != 201 {
		t.Errorf("an order over HTTP afterwards: %d", status)
	}
}
