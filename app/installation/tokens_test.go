package installation

import (
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"posttrade/app/settings"
	"posttrade/matcher/gate"
	"posttrade/ring/must"
	"posttrade/ring/waittest"
)

// TestHangupReadsTheSecretsAgain turns a running installation from one secret to the next: while
// the file has both, both are accepted and the new one signs; a bad file changes nothing.
func TestHangupReadsTheSecretsAgain(t *testing.T) {
	file := filepath.Join(t.TempDir(), "keys")
	first, second := strings.Repeat("a", 40), strings.Repeat("b", 40)
	put := func(text string) {
		t.Helper()
		must.OK(t, os.WriteFile(file, []byte(text), 0o600))
	}
	put(first)
	i := install(t, t.TempDir(), "auth.jwt.secret-file", file, "admin.token-guard", "true",
		"controlfeed.snapshot-auth", "true")
	var said waittest.Log
	log := slog.New(slog.NewTextHandler(&said, nil))
	says := func(want string) {
		t.Helper()
		lines := strings.Split(strings.TrimSpace(said.String()), "\n")
		if last := lines[len(lines)-1]; !strings.Contains(last, " secrets="+want) {
			t.Errorf("want secrets=%s: %s", want, last)
		}
	}
	signed := func(secret string) string {
		return gate.Mint([]byte(secret), gate.Claims{Subject: "x", Admin: true}, "", time.Hour,
			time.Now())
	}
	want := func(when, secret string, status int) {
		t.Helper()
		for service, path := range map[string]string{"order-matcher": "/audit", "admin": "/version",
			"trade-processor": "/recon/status"} {
			if got, body := getWith(t, "http://"+i.at(service)+path, signed(secret)); got != status {
				t.Errorf("%s: %s answers %d %s", when, service, got, body)
			}
		}
		snapshot := "http://" + i.at("account-service") + "/account/control-snapshot"
		token := i.replicaToken(i.config, time.Now())
		if got, body := getWith(t, snapshot, token); got != 200 {
			t.Errorf("%s: the replica's own token: %d %.200s", when, got, body)
		}
	}
	want("at first", first, 200)
	put(second + "\n" + first)
	want("without a word", second, 401)
	must.OK(t, i.reload(log))
	says("changed")
	must.OK(t, i.reload(log))
	says("unchanged")
	want("both, the new one", second, 200)
	want("both, the former one", first, 200)
	put("short")
	if err := i.reload(log); err == nil || !strings.Contains(err.Error(), "auth.jwt.secret-file") {
		t.Errorf("a bad file: %v", err)
	}
	want("a bad file changes nothing", second, 200)
	put(second)
	must.OK(t, i.reload(log))
	want("the new one alone", second, 200)
	want("the former one is over", first, 401)
}

// TestATakeoverKeepsTheMasterSecretInForce: a member that leads anew makes its trade-processor
// again, with the settings of its start. A secret that SIGHUP has replaced or removed since must
// not be accepted again.
func TestATakeoverKeepsTheMasterSecretInForce(t *testing.T) {
	first := strings.Repeat("a", 40)
	i := install(t, t.TempDir(), "auth.dev-token.master-secret", first)
	for _, now := range []string{first, strings.Repeat("b", 40), ""} {
		i.tokens.mu.Lock()
		if now != first { // the start has read that one
			i.tokens.master = []byte(now) // as readSecrets
		}
		i.tokens.mu.Unlock()
		p := newTradeProcessor(i.config, i.Installation, i.Beside.Load(), nil, nil,
			slog.New(slog.DiscardHandler))
		if got := string(p.Mint.MasterSecret()); got != now {
			t.Errorf("after a takeover the secret is %.3q, want %.3q", got, now)
		}
	}
}

// TestOpeningAgainKeepsTheSecretsInForce: a member that is sent a journal opens again in the same
// process. What SIGHUP has removed from the file of --config must not be accepted again, and the
// next SIGHUP must read that file.
func TestOpeningAgainKeepsTheSecretsInForce(t *testing.T) {
	file := filepath.Join(t.TempDir(), "settings")
	put := func(secret string) {
		t.Helper()
		must.OK(t, os.WriteFile(file, []byte("auth.jwt.secret="+strings.Repeat(secret, 40)+
			"\nauth.dev-token.master-secret="+strings.Repeat(secret, 41)+"\n"), 0o600))
	}
	has := func(c *settings.Config, secret string) {
		t.Helper()
		secrets := must.Get(c.JWTSecrets())(t)
		master, _, err := c.MasterSecret()
		if must.OK(t, err); len(secrets) != 1 || string(secrets[0]) != strings.Repeat(secret, 40) ||
			string(master) != strings.Repeat(secret, 41) {
			t.Errorf("secrets %q, master %q, want those of %s", secrets, master, secret)
		}
	}
	put("a")
	var flags []settings.FlagValue
	for pair := range slices.Chunk(append(anyPorts(t.TempDir()), quick...), 2) {
		flags = append(flags, settings.FlagValue{Name: pair[0], Text: pair[1]})
	}
	c := must.Get(settings.Read(settings.Sources{File: file, Flags: flags}))(t)
	var said waittest.Log
	log, told := slog.New(slog.NewTextHandler(&said, nil)), newSupervision(c, slog.New(
		slog.DiscardHandler))
	in := must.Get(Open(t.Context(), c, EngineOptions(c), log))(t)
	again := make(chan struct{})
	in.healing = &healing{again: again, stop: func() {}} // as that of a member
	hangups, ended := make(chan os.Signal), make(chan error, 1)
	var next *settings.Config
	go func() {
		var err error
		next, err = in.serveOpen(t.Context(), c, log, io.Discard, told, hangups)
		ended <- err
	}()
	put("b")
	hangups <- syscall.SIGHUP
	waittest.Until(t, "the secrets are read", func() (bool, any) {
		return strings.Contains(said.String(), "secrets=changed"), said.String()
	})
	put("c")
	close(again)
	if err := <-ended; !errors.Is(err, errRestart) {
		t.Errorf("it ends with %v", err)
	}
	has(next, "b")
	has(must.Get(next.Again())(t), "c")
}
