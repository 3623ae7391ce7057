package installation

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"posttrade/app/apptest"
	"posttrade/app/settings"
	"posttrade/ring/must"
	"posttrade/sidecars/bootstrap"
	"posttrade/sidecars/broker/brokertest"
	"posttrade/sidecars/control"
)

func TestSourceCommandUsage(t *testing.T) {
	data := "--data.dir=" + t.TempDir()
	for _, tt := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{data}, settings.ExitUsage, "usage: posttrade source status"},
		{[]string{"repair", data}, settings.ExitUsage, "usage: posttrade source status"},
		{[]string{"status", "account", data}, settings.ExitUsage, "usage: posttrade source status"},
		{[]string{"bump-epoch", data}, settings.ExitUsage, "usage: posttrade source status"},
		{[]string{"bump-epoch", "account", "security", data}, settings.ExitUsage, ""},
		{[]string{"bump-epoch", "Account", data}, settings.ExitUsage, "account and security"},
		{[]string{"status", data, "--no-such-setting=1"}, settings.ExitUsage, "no-such-setting"},
		{[]string{"status", data}, settings.ExitFailed, "no server has run here"},
		{[]string{"bump-epoch", "account", data}, settings.ExitFailed, "no server has run here"},
	} {
		code, out, errs := apptest.Run("source", tt.args...)
		if code != tt.code || strings.Count(errs, "\n") != 1 || !strings.Contains(errs, tt.want) ||
			out != "" {
			t.Errorf("source %v: %d %q %q", tt.args, code, out, errs)
		}
	}
	if code, out, _ := apptest.Run("source", "-h"); code != settings.ExitOK ||
		!strings.Contains(out, "bump-epoch") {
		t.Errorf("source -h: %d %s", code, out)
	}
}

// TestSourceStatusAndBump is an operator's session: show the status, be refused while the server
// has the embedded broker, stop the server, begin a new epoch, show the status again.
func TestSourceStatusAndBump(t *testing.T) {
	data := t.TempDir()
	status := func() (epochs map[string]string) {
		t.Helper()
		code, out, errs := apptest.Run("source", "status", "--data.dir="+data)
		rows := regexp.MustCompile(
			`(?m)^(account|security) +ready +(\d+) +(\d+) +(\d+) `+
				`+(?:none|epoch_change)$`).FindAllStringSubmatch(out, -1)
		if code != settings.ExitOK || len(rows) != 2 || !strings.HasPrefix(out, "source ") ||
			rows[0][3] != rows[0][4] || rows[1][3] != "583" {
			t.Fatalf("status: %d\n%s%s", code, out, errs)
		}
		return map[string]string{rows[0][1]: rows[0][2], rows[1][1]: rows[1][2]}
	}
	s := startServer(t, data, "risk.bootstrap.enabled", "true")
	before := status()
	if code, out, errs := apptest.Run("source", "bump-epoch", "account",
		"--data.dir="+data); code != settings.ExitFailed || out != "" ||
		!strings.Contains(errs, "stop the server") {
		t.Errorf("bump-epoch while the server runs: %d %q %q", code, out, errs)
	}
	s.stop(t)
	if code, _, errs := apptest.Run("source", "status", "--data.dir="+data); code !=
		settings.ExitFailed ||
		strings.Count(errs, "\n") != 1 {
		t.Errorf("status of a server that has stopped: %d %q", code, errs)
	}
	code, out, errs := apptest.Run("source", "bump-epoch", "account", "--data.dir="+data,
		"--reason=the disk was \"lost\"")
	var bumped uint64
	if _, err := fmt.Sscanf(out, "source account: epoch %d\n", &bumped); code != settings.ExitOK ||
		err != nil {
		t.Fatalf("bump-epoch: %d %q %q", code, out, errs)
	}
	s = startServer(t, data, "risk.bootstrap.enabled", "true")
	after := status()
	if after["account"] != fmt.Sprint(bumped) || after["account"] <= before["account"] ||
		after["security"] != before["security"] {
		t.Errorf("epochs %v, before %v, bumped to %d", after, before, bumped)
	}
	// The act is on record: once, and after another restart too.
	var line string
	apptest.Until(t, "the act is on record", func() (bool, any) {
		line = acted(t, data, s.url, "?kind=epoch")
		return line != "", line
	})
	s.stop(t)
	s = startServer(t, data, "risk.bootstrap.enabled", "true")
	status()
	line = acted(t, data, s.url, "?kind=epoch")
	for _, want := range []string{`"subject":"os:`, `"reason":"the disk was \"lost\""`,
		`"object":{"source":"account"},"old":{"epoch":` + before["account"] + `},"new":{"epoch":` +
			fmt.Sprint(bumped) + `,`} {
		if !strings.Contains(line, want) || strings.Count(line, "\n") != 1 {
			t.Errorf("on record is %s, want %s", line, want)
		}
	}
	s.stop(t)
}

// TestBumpIsNoticed begins a new epoch while the installation runs, which is allowed with a broker
// outside of it. The replica gets the epoch from the stream.
func TestBumpIsNoticed(t *testing.T) {
	server := brokertest.External(t)
	data := t.TempDir()
	i := installFed(t, data, "nats.url", server.URL())
	awaitFed(i)
	for n := range 3 {
		before := feedStatus(i, control.Account)
		code, out, errs := apptest.Run("source", "bump-epoch", "account", "--data.dir="+data,
			"--nats.url="+server.URL())
		if code != settings.ExitOK {
			t.Fatalf("bump-epoch: %d %q %q", code, out, errs)
		}
		apptest.Until(t, "a new epoch", func() (bool, any) {
			s := feedStatus(i, control.Account)
			return s.State == bootstrap.Ready && s.Epoch > before.Epoch &&
				s.Quarantines[bootstrap.EpochChange] == uint64(n+1), s
		})
		postAccount(i, 777, n%2 == 0)
		awaitFed(i)
		awaitAdmission(i, 777, "AAPL", map[bool]string{true: "", false: "ACCOUNT_DISABLED"}[n%2 == 0])
	}
	if s := feedStatus(i, control.Security); quarantines(&s) > 0 {
		t.Errorf("the other source has noticed: %+v", s)
	}
	if s := feedStatus(i, control.Account); quarantines(&s) != 3 {
		t.Errorf("quarantines other than those of the epochs: %+v", s)
	}
	wantMetrics(t, i, `svc_replica_quarantine_total{reason="epoch_change",source="account"} 3`)
}

// TestRestoredDatabase restores an older copy of the database. From then on neither source is
// ready, whatever is written to it, until its epoch is bumped. Then the gate has the records of the
// services.
func TestRestoredDatabase(t *testing.T) {
	data, aside := t.TempDir(), t.TempDir()
	i := installFed(t, data)
	awaitFed(i)
	postAccount(i, 777, true)
	postStock(i, "ZZTOP", true, false)
	awaitFed(i)
	i.stop()
	copyDatabase(t, data, aside)

	i = installFed(t, data)
	postAccount(i, 777, false)
	postAccount(i, 2, false)
	postStock(i, "ZZTOP", true, true)
	postStock(i, "YES", true, false)
	awaitFed(i)
	awaitAdmission(i, 777, "AAPL", "ACCOUNT_DISABLED")
	i.stop()

	copyDatabase(t, aside, data)
	for start := range 2 {
		i = installFed(t, data)
		if start == 0 {
			wantStuck(t, i, control.Sources()...)
		}
		// The same versions again, for other changes, and then some more.
		for n := range 2 + 3*start {
			postAccount(i, 5, n%2 == 0)
			postStock(i, "NOPE", n%2 == 0, false)
		}
		wantStuck(t, i, control.Sources()...)
		_, text := requested(i, i.token, "GET", "admin", "/metrics", "")
		for _, s := range control.Sources() {
			if strings.Contains(text, fmt.Sprintf("svc_outbox_alarms_total{source=%q} 0\n", s)) {
				t.Errorf("source %s: no alarm", s)
			}
		}
		i.stop()
	}
	for _, s := range control.Sources() {
		if code, out, errs := apptest.Run("source", "bump-epoch", string(s),
			"--data.dir="+data); code != settings.ExitOK {
			t.Fatalf("bump-epoch: %d %q %q", code, out, errs)
		}
	}
	for range 2 {
		i = installFed(t, data)
		awaitFed(i)
		if got := [2]string{refusalOf(i, 777, "ZZTOP"), refusalOf(i, 2, "YES")}; got != [2]string{"",
			"SECURITY_DISABLED"} {
			t.Errorf("orders after the new epoch: %q", got)
		}
		postAccount(i, 5, false)
		postStock(i, "YES", false, false)
		awaitFed(i)
		awaitAdmission(i, 5, "ZZTOP", "ACCOUNT_DISABLED")
		i.stop()
	}
}

// TestDatabaseRestoredWithItsStream restores the embedded broker's files as well: the two agree,
// and only the journal knows more.
func TestDatabaseRestoredWithItsStream(t *testing.T) {
	data, aside := t.TempDir(), t.TempDir()
	i := installFed(t, data)
	awaitFed(i)
	wantStreams(t, i, 12, 583)
	i.stop()
	copyDatabase(t, data, aside)
	must.OK(t, os.CopyFS(filepath.Join(aside, "broker"),
		os.DirFS(filepath.Join(data, "broker"))))
	i = installFed(t, data)
	postAccount(i, 2, false)
	postAccount(i, 3, false)
	awaitFed(i)
	i.stop()

	copyDatabase(t, aside, data)
	err := os.RemoveAll(filepath.Join(data, "broker"))
	if err == nil {
		err = os.CopyFS(filepath.Join(data, "broker"), os.DirFS(filepath.Join(aside, "broker")))
	}
	must.OK(t, err)
	i = installFed(t, data)
	wantStuck(t, i, control.Account)
	for n := range 4 {
		postAccount(i, 5, n%2 == 0)
	}
	wantStuck(t, i, control.Account)
	i.stop()
	if code, out, errs := apptest.Run("source", "bump-epoch", "account",
		"--data.dir="+data); code != settings.ExitOK {
		t.Fatalf("bump-epoch: %d %q %q", code, out, errs)
	}
	i = installFed(t, data)
	awaitFed(i)
	awaitAdmission(i, 2, "AAPL", "")
}

// wantStuck checks that sources try again and stay out.
func wantStuck(t *testing.T, i *installed, sources ...control.Source) {
	t.Helper()
	for _, s := range sources {
		before := feedStatus(i, s)
		apptest.Until(t, "the source stays out", func() (bool, any) {
			if i.Core.Gate.Ready() {
				t.Fatalf("orders are let in on a restored database: %+v", feedStatus(i, s))
			}
			now := feedStatus(i, s)
			return quarantines(&now) > quarantines(&before)+1, now
		})
		if now := feedStatus(i, s); now.LastReason != bootstrap.VersionRegression &&
			now.LastReason != bootstrap.Disconnected {
			t.Errorf("source %s: %s %s", s, now.LastReason, now.Detail)
		}
	}
	wantNothingAdmitted(t, i)
}

// copyDatabase copies the SQLite files of one folder over those of another.
func copyDatabase(t *testing.T, from, to string) {
	t.Helper()
	old, err := filepath.Glob(filepath.Join(to, "posttrade.db*"))
	must.OK(t, err)
	for _, name := range old {
		must.OK(t, os.Remove(name))
	}
	names, err := filepath.Glob(filepath.Join(from, "posttrade.db*"))
	if err != nil || len(names) == 0 {
		t.Fatalf("database files: %v, %v", names, err)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err == nil {
			err = os.WriteFile(filepath.Join(to, filepath.Base(name)), text, 0o600)
		}
		must.OK(t, err)
	}
}
