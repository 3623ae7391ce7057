package installation

import (
	"crypto/tls"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"posttrade/app/apptest"
	"posttrade/ring/must"
	"posttrade/ring/waittest"
)

// TestHangupReadsTheCertificateAgain renews the certificate of a running server: connections that
// begin after SIGHUP see the new one, and the program's own commands accept it.
func TestHangupReadsTheCertificateAgain(t *testing.T) {
	binary, data := apptest.Program(t), t.TempDir()
	certificate, key := filepath.Join(t.TempDir(), "c.pem"), filepath.Join(t.TempDir(), "k.pem")
	renew := func() (want string) {
		t.Helper()
		newCertificate, newKey := selfSigned(t)
		for from, to := range map[string]string{newCertificate: certificate, newKey: key} {
			text, err := os.ReadFile(from)
			if err == nil {
				err = os.WriteFile(to, text, 0o600)
			}
			must.OK(t, err)
		}
		pair := must.Get(tls.LoadX509KeyPair(certificate, key))(t)
		return string(pair.Certificate[0])
	}
	first := renew()
	server := startForCrash(t, binary, data, "--http.tls-cert="+certificate, "--http.tls-key="+key,
		"--session.socket=")
	at := strings.TrimPrefix(server.url, "http://")
	shown := func() string {
		c := must.Get(tls.Dial("tcp", at, &tls.Config{InsecureSkipVerify: true}))(t)
		defer c.Close()
		return string(c.ConnectionState().PeerCertificates[0].Raw)
	}
	becomes := func(what, want string) {
		t.Helper()
		must.OK(t, server.cmd.Process.Signal(syscall.SIGHUP))
		apptest.Until(t, what, func() (bool, any) { return shown() == want, server.log })
	}
	if shown() != first {
		t.Error("another certificate than the file's")
	}
	second := renew()
	if shown() != first {
		t.Error("the certificate changed without a word")
	}
	becomes("the second certificate", second)
	status := func() int {
		request := must.Get(http.NewRequest("GET", "https://"+at+"/health", nil))(t)
		answer := must.Get(trusting.Do(request))(t)
		answer.Body.Close()
		return answer.StatusCode
	}
	if got := status(); got != http.StatusOK {
		t.Errorf("health: %d", got)
	}
	if code, out, errs := apptest.Run("source", "status", "--data.dir="+data,
		"--http.tls-cert="+certificate, "--http.tls-key="+key); code != 0 {
		t.Errorf("source status: %d %s %s", code, out, errs)
	}
	server.cmd.Process.Signal(syscall.SIGTERM)
	<-server.exited
	if log := server.log.String(); !strings.Contains(log,
		`msg=reloaded parts="http.tls-cert log.level secrets"`) {
		t.Errorf("the log:\n%s", log)
	}
}

// A certificate that cannot be read is an error that names the setting, and changes nothing.
func TestACertificateThatCannotBeReadChangesNothing(t *testing.T) {
	certificate, key := selfSigned(t)
	in := install(t, t.TempDir(), "sidecars.enabled", "false", "http.tls-cert", certificate,
		"http.tls-key", key)
	var log waittest.Log
	good := must.Get(os.ReadFile(certificate))(t)
	before := in.listeners.renewed.current.Load()
	must.OK(t, os.WriteFile(certificate, []byte("not a certificate"), 0o600))
	words := slog.New(slog.NewTextHandler(&log, nil))
	if err := in.reload(words); err == nil || !strings.Contains(err.Error(), "http.tls-cert") ||
		in.listeners.renewed.current.Load() != before {
		t.Errorf("a broken certificate: %v", err)
	}
	if !strings.Contains(log.String(), `"reload: what was in force stays" part=http.tls-cert`) ||
		!strings.Contains(log.String(), `msg=reloaded parts=secrets`) {
		t.Errorf("the log: %s", log.String())
	}
	must.OK(t, os.WriteFile(certificate, good, 0o600))
	if err := in.reload(words); err != nil || in.listeners.renewed.current.Load() == before {
		t.Errorf("the certificate is good again: %v", err)
	}
}

// TestTheConsoleKnowsTheNamesOfTheCertificateInUse: a reload with a certificate of another name
// answers under that name, and no longer under the one before.
func TestTheConsoleKnowsTheNamesOfTheCertificateInUse(t *testing.T) {
	certificate, key := selfSigned(t, "Old.example")
	in := install(t, t.TempDir(), "sidecars.enabled", "false", "http.tls-cert", certificate,
		"http.tls-key", key, "console.hosts", "desk.example")
	status := func(host string) int {
		request := must.Get(http.NewRequest("GET", "https://"+in.at("console")+"/", nil))(t)
		request.Host = host
		answer := must.Get(trusting.Do(request))(t)
		answer.Body.Close()
		return answer.StatusCode
	}
	expect := func(when string, want map[string]int) {
		t.Helper()
		for host, want := range want {
			if got := status(host); got != want {
				t.Errorf("%s, as %s: %d, want %d", when, host, got, want)
			}
		}
	}
	expect("at first", map[string]int{"desk.example": 200, "old.example": 200, "new.example": 421})
	next, nextKey := selfSigned(t, "new.example")
	for from, to := range map[string]string{next: certificate, nextKey: key} {
		must.OK(t, os.Rename(from, to))
	}
	must.OK(t, in.reload(slog.New(slog.DiscardHandler)))
	expect("renewed", map[string]int{"desk.example": 200, "old.example": 421, "new.example": 200})
}
