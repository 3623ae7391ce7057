package installation

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"posttrade/app/apptest"
	"posttrade/ring/must"
	"posttrade/ring/waittest"
)

// consoleOf signs in to the console of a running server by one click, and returns a client with the
// session and the headers of a page.
func consoleOf(t *testing.T, data string) (at string, ask func(method, path, body string) (int,
	string)) {
	t.Helper()
	text := must.Get(os.ReadFile(filepath.Join(data, "ports.json")))(t)
	var ports map[string]string
	must.OK(t, json.Unmarshal(text, &ports))
	at = "http://" + ports["console"]
	var cookie, csrf string
	ask = func(method, path, body string) (int, string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		r := must.Get(http.NewRequestWithContext(ctx, method, at+path, strings.NewReader(body)))(t)
		r.Header.Set("Origin", at)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Cookie", cookie)
		r.Header.Set("X-CSRF-Token", csrf)
		a := must.Get(http.DefaultClient.Do(r))(t)
		defer a.Body.Close()
		for _, c := range a.Cookies() {
			cookie = c.Name + "=" + c.Value
		}
		all := must.Get(io.ReadAll(a.Body))(t)
		return a.StatusCode, string(all)
	}
	status, said := ask("POST", "/api/session", "{}")
	var session struct{ CSRF string }
	if err := json.Unmarshal([]byte(said), &session); err != nil || status != 200 {
		t.Fatalf("%d %s %v", status, said, err)
	}
	csrf = session.CSRF
	return at, ask
}

// TestTheConsoleReachesEveryService: through the console a page reads and writes each service, and
// a write lands in the journal.
func TestTheConsoleReachesEveryService(t *testing.T) {
	data := t.TempDir()
	s := startServer(t, data)
	defer s.stop(t)
	_, ask := consoleOf(t, data)
	for _, list := range []string{"/api/account-service/account/", "/api/reference-data/stocks"} {
		apptest.Until(t, "the sources are seeded", func() (bool, any) {
			_, said := ask("GET", list, "")
			return said != "[]", said
		})
	}
	for _, tt := range []struct {
		method, path, body, want string
		status                   int
	}{
		{"POST", "/api/order-matcher/prices", `[{"security":"AAPL","price":187.2}]`, "accepted", 202},
		{"POST", "/api/order-matcher/orders", `{"accountId":1,"security":"AAPL","side":"Sell",
			"quantity":5,"limitPrice":187.25}`, `"orderId":"ord-1"`, 201},
		{"GET", "/api/order-matcher/orders/ord-1", "", `"status":"NEW"`, 200},
		{"GET", "/api/trade-processor/recon/status", "", "matched", 200},
		{"GET", "/api/account-service/account/", "", "displayName", 200},
		{"GET", "/api/reference-data/stocks", "", "AAPL", 200},
		{"GET", "/api/admin/metrics", "", "svc_orders_total", 200},
		{"GET", "/api/cluster", "", `"clustered":false`, 200},
		{"POST", "/api/trade-processor/auth/dev-token", `{"subject":"x","ttlSeconds":60}`, "", 401},
	} {
		status, said := ask(tt.method, tt.path, tt.body)
		if status != tt.status || !strings.Contains(said, tt.want) {
			t.Errorf("%s %s: %d %s", tt.method, tt.path, status, said)
		}
	}
}

// TestTheConsolesAddress: a default address that is taken is a warning, and the start goes on; an
// empty setting has no console; what is printed first is the console's address.
func TestTheConsolesAddress(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:18100") // in use by another process is as good
	if err == nil {
		defer taken.Close()
	}
	run := func(nameValue ...string) (printed, logged string) {
		t.Helper()
		c := must.Get(apptest.SettleFlags(nameValue))(t)
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		out, in := io.Pipe()
		var log waittest.Log
		ended := make(chan error, 1)
		go func() {
			err := serveFor(ctx, c, in, &log)
			_ = in.Close()
			ended <- err
		}()
		var all bytes.Buffer
		buffer := make([]byte, 4096)
		for !strings.Contains(all.String(), "admin listening") {
			n, err := out.Read(buffer)
			if err != nil {
				t.Fatalf("%v: %s", err, log.String())
			}
			all.Write(buffer[:n])
		}
		go func() { _, _ = io.Copy(io.Discard, out) }()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		return all.String(), log.String()
	}
	without := func(data string) (list []string) {
		all := anyPorts(data)
		for i := 0; i < len(all); i += 2 {
			if all[i] != "console.listen" {
				list = append(list, all[i], all[i+1])
			}
		}
		return list
	}
	if printed, logged := run(without(t.TempDir())...); strings.Contains(printed, "console") ||
		!strings.Contains(logged, "no console: its address is taken") {
		t.Errorf("taken: %s %s", printed, logged)
	}
	if printed, logged := run(append(without(t.TempDir()), "console.listen", "")...); strings.Contains(
		printed+logged, "console") {
		t.Errorf("off: %s %s", printed, logged)
	}
	if printed, _ := run(anyPorts(t.TempDir())...); !strings.HasPrefix(printed,
		"console: open http://127.0.0.1:") {
		t.Errorf("on: %s", printed)
	}
}

// TestTheCookieOfTheConsoleIsForTLSAlone: where the listener has TLS, and where a proxy in front
// ends it.
func TestTheCookieOfTheConsoleIsForTLSAlone(t *testing.T) {
	for proxied, want := range map[string]bool{"true": true, "false": false} {
		in := install(t, t.TempDir(), "sidecars.enabled", "false", "http.behind-proxy", proxied)
		at := "http://" + in.at("console")
		r := must.Get(http.NewRequest("POST", at+"/api/session", strings.NewReader("{}")))(t)
		r.Header.Set("Origin", at)
		r.Header.Set("Content-Type", "application/json")
		a := must.Get(http.DefaultClient.Do(r))(t)
		a.Body.Close()
		if c := a.Cookies(); len(c) != 1 || c[0].Secure != want {
			t.Errorf("http.behind-proxy=%s: %d %v, want a cookie with Secure %v", proxied, a.StatusCode, c,
				want)
		}
	}
}
