package installation

import (
	"crypto/rand"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"posttrade/app/apptest"
	"posttrade/app/settings"
	"posttrade/ring/must"
)

// TestAnotherServerOnThePorts: a server has died, and one of another installation has its ports and
// even its secret. Every command that finds a server by data.dir says so, instead of speaking of
// the wrong one.
func TestAnotherServerOnThePorts(t *testing.T) {
	dead, alive := t.TempDir(), t.TempDir()
	secret := rand.Text() + rand.Text()
	flags := func(data string) []string {
		return []string{"--data.dir=" + data, "--auth.jwt.secret=" + secret}
	}
	first := startServer(t, dead, "auth.jwt.secret", secret)
	code, out, errs := apptest.Run("health", flags(dead)...)
	if code != settings.ExitOK {
		t.Fatalf("health: %d %s %s", code, out, errs)
	}
	first.stop(t)
	second := startServer(t, alive, "auth.jwt.secret", secret)
	defer second.stop(t)
	ports := must.Get(os.ReadFile(filepath.Join(alive, "ports.json")))(t)
	must.OK(t, os.WriteFile(filepath.Join(dead, "ports.json"), ports, 0o644))

	backupTo := func() string { return filepath.Join(t.TempDir(), "backup") }
	commands := map[string][]string{
		"health": nil, "backup": {backupTo()}, "recon": {"status"}, "source": {"status"},
		"tca": {"trd-1"}, "watch": {"trades"},
	}
	const want = "no server runs on this data.dir: another process has its port"
	wrong := func() {
		t.Helper()
		for command, args := range commands {
			programFails(t, settings.ExitFailed, want, command, append(args, flags(dead)...)...)
		}
		programFails(t, settings.ExitFailed, want, "health", append(flags(dead), "--live")...)
	}
	wrong()
	// A data.dir that only an older build has served, which named no process.
	must.OK(t, os.Remove(filepath.Join(dead, processFile)))
	wrong()
	// A name that cannot be read.
	must.OK(t, os.Mkdir(filepath.Join(dead, processFile), 0o700))
	programFails(t, settings.ExitFailed, "is a directory", "health", flags(dead)...)

	program(t, "health", flags(alive)...)
	program(t, "backup", append(flags(alive), backupTo())...)
	program(t, "recon", append(flags(alive), "status")...)
}

// TestAProcessThatCannotNameItself: the start is refused, and its admin listener is closed.
func TestAProcessThatCannotNameItself(t *testing.T) {
	data := t.TempDir()
	must.OK(t, os.Mkdir(filepath.Join(data, processFile), 0o700))
	c := apptest.Settled(t, anyPorts(data)...)
	err := serveFor(t.Context(), c, os.Stderr, os.Stderr)
	if err == nil {
		t.Fatal("it has started")
	}
	var ports map[string]string
	if text, err := os.ReadFile(filepath.Join(data, "ports.json")); err == nil {
		t.Errorf("it has announced its ports: %s, %v", text, json.Unmarshal(text, &ports))
	}
}

// TestHealthWithoutAWayIn: where /readyz wants a token, health asks whether the process is alive.
// Whether a member has its vote it cannot tell then, and does not say that it has.
func TestHealthWithoutAWayIn(t *testing.T) {
	dir, secret := t.TempDir(), rand.Text()+rand.Text()
	s := startServer(t, dir, "auth.jwt.secret", secret, "admin.token-guard", "true",
		"admin.open-health", "false")
	defer s.stop(t)
	program(t, "health", "--data.dir="+dir)
	programFails(t, settings.ExitFailed, "admin.open-health=false", "health", "--vote",
		"--data.dir="+dir)
}
