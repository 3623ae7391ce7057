package installation

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"posttrade/app/apptest"
	"posttrade/ring/must"
)

// planted are secrets by what they are; none may be served or written.
type planted map[string]string

// sealed fails for a text that holds a secret.
func (p planted) sealed(t *testing.T, where string, text []byte) {
	t.Helper()
	for what, secret := range p {
		if at := bytes.Index(text, []byte(secret)); at >= 0 {
			t.Errorf("%s shows the %s: ...%.60q", where, what, text[max(0, at-30):at])
		}
	}
}

// looked asks a listener and checks all of the answer.
func (p planted) looked(t *testing.T, method, url string, header map[string]string,
	body string) (status int, text []byte) {
	t.Helper()
	request, err := http.NewRequest(method, url, strings.NewReader(body))
	must.OK(t, err)
	for name, value := range header {
		request.Header.Set(name, value)
	}
	answer, err := trusting.Do(request)
	must.OK(t, err)
	defer answer.Body.Close()
	limit := int64(8 << 20)
	if strings.Contains(url, "/feed") {
		limit = 64 // of its first event: it has no end
	}
	if text, err = io.ReadAll(io.LimitReader(answer.Body, limit)); err != nil {
		t.Fatal(err)
	}
	var head bytes.Buffer
	must.OK(t, answer.Header.Write(&head))
	p.sealed(t, method+" "+url, append(head.Bytes(), text...))
	return answer.StatusCode, text
}

// written checks every file below a folder.
func (p planted) written(t *testing.T, folder string) {
	t.Helper()
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		p.sealed(t, path, text)
		return err
	})
	must.OK(t, err)
}

// TestNoSecretIsShown runs the real program with planted secrets, uses what it serves, and looks
// for them in all answers, logs, files and the command line. Secrets of requests count too: tokens,
// and a wrong master secret, which may be the right one of another installation.
func TestNoSecretIsShown(t *testing.T) {
	p := planted{"jwt secret": "planted-jwt-secret-of-32-bytes-and-more",
		"former jwt secret":  "planted-former-secret-of-32-bytes-or-so",
		"master secret":      "planted-master-secret-of-32-bytes-and-more",
		"database password":  "planted-database-password",
		"broker password":    "planted-broker-password",
		"guess of a master":  "planted-guess-of-a-master-secret",
		"guess of a token":   "planted.guess.token",
		"password of a flag": "planted-password-of-a-flag"}
	certificate, key := selfSigned(t)
	private := must.Get(os.ReadFile(key))(t)
	block, _ := pem.Decode(private)
	p["private key's bytes"] = string(block.Bytes)
	p["private key"] = strings.Split(string(private), "\n")[1]
	t.Setenv("POSTTRADE_AUTH_JWT_SECRET", p["jwt secret"]+","+p["former jwt secret"])
	t.Setenv("POSTTRADE_AUTH_DEV_TOKEN_MASTER_SECRET", p["master secret"])
	binary, tls := apptest.Program(t), []string{"--http.tls-cert=" + certificate,
		"--http.tls-key=" + key, "--session.socket="}

	t.Run("in use", func(t *testing.T) {
		data := t.TempDir()
		s := startForCrash(t, binary, data, append(tls, "--flight.budget-ms=1")...)
		at := portsIn(t, data)
		master := map[string]string{"X-Auth-Master-Secret": p["master secret"], "Accept": "text/plain"}
		_, token := p.looked(t, "POST", "https://"+at["trade-processor"]+"/auth/dev-token", master,
			`{"subject":"root","admin":true,"ttlSeconds":3600}`)
		p["token"] = string(token)
		use(t, p, at, string(token))
		p.showsNothing(t, s, data)
	})
	t.Run("without database and broker", func(t *testing.T) {
		data := t.TempDir()
		t.Setenv("POSTTRADE_DATABASE_URL",
			"postgres://desk:"+p["database password"]+"@127.0.0.1:1/none?sslmode=disable")
		t.Setenv("POSTTRADE_NATS_URL", "nats://desk:"+p["broker password"]+"@127.0.0.1:1")
		s := startForCrash(t, binary, data, append(tls, "--risk.bootstrap.enabled=false")...)
		at := portsIn(t, data)
		for _, path := range []string{"/readyz", "/metrics", "/debug/pprof/goroutine?debug=2"} {
			p.looked(t, "GET", "http://"+at["admin"]+path, nil, "")
		}
		p.looked(t, "GET", "https://"+at["trade-processor"]+"/trades",
			map[string]string{"Authorization": "Bearer " + p["token"]}, "")
		p.showsNothing(t, s, data)
	})
	t.Run("refused settings", func(t *testing.T) {
		for _, flags := range [][]string{
			{"--database.url=postgres://a:" + p["password of a flag"] + "@[::1/x"},
			{"--nats.url=http://a:" + p["password of a flag"] + "@h"},
			{"--auth.jwt.secret=" + p["password of a flag"]},
			{"--profile=production", "--risk.entitlement.enforced=true",
				"--reference.write-auth.enforced=true",
				"--database.url=postgres://a:" + p["password of a flag"] + "@h/d"},
		} {
			code, out, errs := apptest.Run("config", flags...)
			if code == 0 {
				t.Errorf("%.30q is taken", flags[len(flags)-1])
			}
			p.sealed(t, "config", []byte(out+errs))
		}
	})
}

// use asks for everything that the listeners have, right and wrong.
func use(t *testing.T, p planted, at map[string]string, token string) {
	t.Helper()
	admin := map[string]string{"Authorization": "Bearer " + token, "X-Reason": "a test"}
	for _, path := range []string{"/healthz", "/readyz", "/metrics", "/version", "/debug/pprof/",
		"/debug/pprof/cmdline", "/debug/pprof/goroutine?debug=2", "/debug/pprof/heap?debug=1",
		"/debug/pprof/profile?seconds=1", "/debug/pprof/trace?seconds=1", "/debug/pprof/symbol",
		"/backup/journal", "/backup/tables"} {
		p.looked(t, "GET", "http://"+at["admin"]+path, admin, "")
	}
	for service, paths := range map[string][]string{
		"order-matcher": {"/health", "/openapi.json", "/orders", "/positions", "/audit",
			"/risk/control/snapshot", "/regulatory/report", "/feed?topics=controls,book:AAPL",
			"/contracts", "/nothing", "/book/AAPL", "/log/checkpoint"},
		"trade-processor": {"/health", "/openapi.json", "/trades", "/recon/status", "/recon/breaks",
			"/tca/summary", "/actuator/prometheus"},
		"account-service": {"/account/", "/account/control-snapshot", "/health"},
		"reference-data":  {"/stocks", "/stocks/control-snapshot", "/health"},
		"console":         {"/", "/api/session", "/app.js"},
	} {
		for _, path := range paths {
			p.looked(t, "GET", "https://"+at[service]+path, admin, "")
		}
	}
	guess := map[string]string{"X-Auth-Master-Secret": p["guess of a master"],
		"Authorization": "Bearer " + p["guess of a token"], "X-Reason": "a test"}
	for range 7 { // the last ones are throttled
		p.looked(t, "POST", "https://"+at["trade-processor"]+"/auth/dev-token", guess, `{"subject":1}`)
	}
	p.looked(t, "GET", "https://"+at["trade-processor"]+"/recon/status", guess, "")
	p.looked(t, "POST", "https://"+at["console"]+"/api/session", map[string]string{
		"Content-Type": "application/json", "Origin": "https://" + at["console"]},
		`{"token":"`+p["guess of a token"]+`"}`)
	for path, body := range map[string]string{
		"/orders": `{"accountId":1,"security":"AAPL","side":"Buy","quantity":1,` +
			`"limitPrice":100}`,
		"/prices":              `[{"security":"AAPL","price":100}]`,
		"/risk/control/policy": `{"policyVersion":9,"killSwitch":false}`,
	} {
		if status, text := p.looked(t, "POST", "https://"+at["order-matcher"]+path, admin,
			body); status/100 != 2 {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
	if status, text := p.looked(t, "POST", "https://"+at["trade-processor"]+"/auth/revoke", admin,
		`{"subject":"gone"}`); status != http.StatusOK {
		t.Errorf("revoke: %d %s", status, text)
	}
}

// showsNothing ends the program with a dump of its goroutines, and looks at what it leaves. The
// program's own commands are looked at too.
func (p planted) showsNothing(t *testing.T, s *crashServer, data string) {
	t.Helper()
	line := must.Get(os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", s.cmd.Process.Pid)))(t)
	p.sealed(t, "the command line", line)
	for _, command := range []string{"config", "source"} {
		args := map[string][]string{"config": nil, "source": {"status"}}[command]
		_, out, errs := apptest.Run(command, append(args, "--data.dir="+data)...) // may fail: no TLS
		p.sealed(t, command, []byte(out+errs))
	}
	s.cmd.Process.Signal(syscall.SIGQUIT)
	<-s.exited
	p.sealed(t, "the log", s.log.Bytes())
	p.written(t, data)
}

// portsIn reads which ports a program has announced.
func portsIn(t *testing.T, data string) (at map[string]string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(data, "ports.json"))
	if err == nil {
		err = json.Unmarshal(text, &at)
	}
	must.OK(t, err)
	return at
}
