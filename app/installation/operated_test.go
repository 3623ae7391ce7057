package installation

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"posttrade/app/apptest"
	"posttrade/app/settings"
	"posttrade/matcher/gate"
	"posttrade/ring/must"
	"posttrade/ring/waittest"
)

// told receives what a server tells systemd.
type told struct {
	*net.UnixConn
	path string
}

func newTold(t *testing.T) told {
	t.Helper()
	dir, err := os.MkdirTemp("", "told") // the path of a socket is short
	must.OK(t, err)
	path := filepath.Join(dir, "s")
	c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	must.OK(t, err)
	t.Cleanup(func() { c.Close(); os.RemoveAll(dir) })
	return told{c, path}
}

// await returns when the state has come; it fails when that takes too long.
func (s told) await(t *testing.T, state string) {
	t.Helper()
	must.OK(t, s.SetReadDeadline(time.Now().Add(time.Minute)))
	for line := make([]byte, 1024); ; {
		n, err := s.Read(line)
		if err != nil {
			t.Fatalf("waiting for %s: %v", state, err)
		}
		if string(line[:n]) == state {
			return
		}
	}
}

// TestAServerAsItIsOperated runs the program as systemd would, with a log in JSON: what it tells
// systemd, its first line, the lines of its requests, a level that changes while it runs, what
// `posttrade health` says, and a last line that is JSON too.
func TestAServerAsItIsOperated(t *testing.T) {
	const secret = "a secret that must be in no log at all"
	data, binary := t.TempDir(), apptest.Program(t)
	config, logs := filepath.Join(t.TempDir(), "settings"), filepath.Join(t.TempDir(), "log")
	write := func(level string) {
		text := "log.level=" + level + "\nlog.format=json\nlog.access=true\n"
		must.OK(t, os.WriteFile(config, []byte(text), 0o600))
	}
	write("info")
	out, err := os.Create(logs)
	must.OK(t, err)
	defer out.Close()
	manager := newTold(t)
	cmd := exec.Command(binary, "serve", "--config="+config)
	flags := append(anyPorts(data), "risk.entitlement.enforced", "true")
	for i := 0; i < len(flags); i += 2 {
		cmd.Args = append(cmd.Args, "--"+flags[i]+"="+flags[i+1])
	}
	cmd.Env = append(os.Environ(), "NOTIFY_SOCKET="+manager.path, "WATCHDOG_USEC=200000",
		"POSTTRADE_AUTH_JWT_SECRET="+secret)
	cmd.Stderr = out
	must.OK(t, cmd.Start())
	t.Cleanup(func() { cmd.Process.Kill() })
	lines := func() string {
		text := must.Get(os.ReadFile(logs))(t)
		return string(text)
	}
	apptest.Until(t, "the first line", func() (bool, any) {
		return strings.Contains(lines(), `"msg":"starting"`), lines()
	})
	must.OK(t, cmd.Process.Signal(syscall.SIGHUP)) // it is not serving yet
	manager.await(t, "WATCHDOG=1\nEXTEND_TIMEOUT_USEC=60000000")
	manager.await(t, "READY=1")
	manager.await(t, "WATCHDOG=1")
	apptest.Until(t, "the early SIGHUP is done", func() (bool, any) {
		return strings.Contains(lines(), `"msg":"reloaded"`), lines()
	})

	text, err := os.ReadFile(filepath.Join(data, "ports.json"))
	var ports map[string]string
	if err != nil || json.Unmarshal(text, &ports) != nil {
		t.Fatalf("%v: %s", err, text)
	}
	token := gate.Mint([]byte(secret), gate.Claims{Subject: "desk-7", Accounts: []uint32{1}}, "",
		time.Hour, time.Now())
	ask := func(method, path, bearer, body string) int {
		request := must.Get(http.NewRequest(method, "http://"+ports["order-matcher"]+path,
			strings.NewReader(body)))(t)
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Authorization", "Bearer "+bearer)
		answer := must.Get(http.DefaultClient.Do(request))(t)
		answer.Body.Close()
		return answer.StatusCode
	}
	const body = `{"accountId":1,"security":"AAPL","side":"Buy","quantity":1,"limitPrice":100,` +
		`"clientOrderId":"a-body-that-is-not-logged"}`
	placed := ask("POST", "/orders?why=planted", token, body)
	denied := ask("GET", "/orders/ord-77", "wrong", "")
	if code, said, errs := apptest.Run("health", "--data.dir="+data); code != 0 ||
		!strings.Contains(said, `"ready":true`) {
		t.Errorf("health: %d %s %s", code, said, errs)
	}
	if code, said, _ := apptest.Run("health", "--live", "--data.dir="+data); code != 0 ||
		!strings.Contains(said, `"ok"`) {
		t.Errorf("health --live: %d %s", code, said)
	}

	// Nothing below warn from now on: the next requests leave no line.
	write("warn")
	apptest.Until(t, "requests are not logged at level warn", func() (bool, any) {
		must.OK(t, cmd.Process.Signal(syscall.SIGHUP))
		before := strings.Count(lines(), `"msg":"request"`)
		ask("GET", "/positions", token, "")
		return strings.Count(lines(), `"msg":"request"`) == before, lines()
	})
	must.OK(t, cmd.Process.Signal(syscall.SIGTERM))
	manager.await(t, "STOPPING=1")
	if err := cmd.Wait(); err != nil {
		t.Errorf("the end: %v", err)
	}
	if code, _, errs := apptest.Run("health", "--data.dir="+data); code != settings.ExitFailed {
		t.Errorf("health of a server that has ended: %d %s", code, errs)
	}
	checkLog(t, lines(), data, placed, denied)
	for _, planted := range []string{secret, token, "a-body-that", "planted", "ord-77"} {
		if strings.Contains(lines(), planted) {
			t.Errorf("%q is in the log", planted)
		}
	}

	// What stops a start is JSON too.
	refused := exec.Command(binary, "serve", "--config="+config, "--data.dir="+data,
		"--risk.retained-orders=77")
	var errs bytes.Buffer
	refused.Stderr = &errs
	err = refused.Run()
	last := errs.String()[strings.LastIndexByte(strings.TrimSpace(errs.String()), '\n')+1:]
	var line map[string]any
	if refused.ProcessState.ExitCode() != settings.ExitUsage ||
		json.Unmarshal([]byte(last), &line) != nil ||
		!strings.Contains(fmt.Sprint(line["error"]), "risk.retained-orders") {
		t.Errorf("a refused start: %v\n%s", err, errs.String())
	}
}

// checkLog checks the first line, and the lines of the first two requests.
func checkLog(t *testing.T, text, data string, placed, denied int) {
	t.Helper()
	var requests []map[string]any
	for i, one := range strings.Split(strings.TrimSpace(text), "\n") {
		var line map[string]any
		if err := json.Unmarshal([]byte(one), &line); err != nil {
			t.Fatalf("%v: %s", err, one)
		}
		if i == 0 {
			set, _ := line["settings"].(map[string]any)
			if line["msg"] != "starting" || line["version"] != settings.Release ||
				line["commit"] == "" || line["profile"] != "dev" || set["data.dir"] != data ||
				set["log.format"] != "json" || set["auth.jwt.secret"] == nil || set["log.level"] != nil {
				t.Errorf("the first line: %s", one)
			}
		}
		if line["msg"] == "request" {
			requests = append(requests, line)
		}
	}
	want := []map[string]any{
		{"service": "order-matcher", "method": "POST", "route": "/orders", "status": float64(placed),
			"subject": "desk-7"},
		{"service": "order-matcher", "method": "GET", "route": "/orders/{orderId}",
			"status": float64(denied), "subject": ""},
	}
	for _, w := range want {
		if !slices.ContainsFunc(requests, func(r map[string]any) bool {
			duration, _ := r["duration"].(float64)
			for name, value := range w {
				if r[name] != value {
					return false
				}
			}
			return duration > 0 && duration < float64(time.Hour)
		}) {
			t.Errorf("no line %v among %v", w, requests)
		}
	}
}

// TestTheHeartbeatStopsWithTheEngine: a command that waits while neither matcher nor recorder moves
// is no progress, whatever the number of looks; an idle engine is alive.
func TestTheHeartbeatStopsWithTheEngine(t *testing.T) {
	in := install(t, t.TempDir(), "sidecars.enabled", "false")
	var log waittest.Log
	told := 0
	h := &heartbeat{k: in.Core, log: slog.New(slog.NewTextHandler(&log, nil)),
		tell: func(states ...string) {
			if told++; !slices.Equal(states, []string{"WATCHDOG=1"}) {
				t.Errorf("told %q", states)
			}
		}}
	for range 3 {
		h.look()
	}
	h.depth = func() int { return 1 }
	for range 3 {
		h.look()
	}
	if told != 3 || !h.silent || strings.Count(log.String(), "no progress") != 1 {
		t.Errorf("told %d times, silent %v, the log:\n%s", told, h.silent, log.String())
	}
	h.decided-- // as if one more had been decided since
	if h.look(); h.silent {
		t.Error("silent, though the matcher moves")
	}
}

// TestAMemberThatOpensAgainDoesNotStop: systemd is asked for time while an installation is opened,
// the first and the next one, and hears of a stop at the end alone. `health --live` sees the same.
func TestAMemberThatOpensAgainDoesNotStop(t *testing.T) {
	dir := t.TempDir()
	in := install(t, dir, "sidecars.enabled", "false")
	manager := newTold(t)
	t.Setenv("NOTIFY_SOCKET", manager.path)
	t.Setenv("WATCHDOG_USEC", "30000000")
	s := newSupervision(in.listeners.c, slog.New(slog.DiscardHandler))
	heard := func(want string) {
		t.Helper()
		line := make([]byte, 1024)
		must.OK(t, manager.SetReadDeadline(time.Now().Add(time.Minute)))
		if n := must.Get(manager.Read(line))(t); string(line[:n]) != want {
			t.Errorf("told %q, want %q", line[:n], want)
		}
	}
	live := func(want int) {
		t.Helper()
		code, said, errs := apptest.Run("health", "--live", "--data.dir="+dir,
			"--admin.listen=127.0.0.1:1")
		if code != want {
			t.Errorf("health --live: %d %s %s", code, said, errs)
		}
	}
	const opening = "WATCHDOG=1\nEXTEND_TIMEOUT_USEC=60000000"
	s.look()
	for range 2 {
		heard(opening)
		live(0)
		s.serves(in.Core)
		heard("READY=1")
		live(1)
		s.look()
		heard("WATCHDOG=1")
		s.opensAgain()
	}
	heard(opening)
	s.serves(in.Core)
	heard("READY=1")
	s.stops()
	heard("STOPPING=1")
	live(1)

	old := time.Now().Add(-moreTime)
	must.OK(t, os.WriteFile(s.file, nil, 0o600))
	must.OK(t, os.Chtimes(s.file, old, old))
	live(1) // its process has been killed
}
