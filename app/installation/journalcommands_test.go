package installation

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"posttrade/app/apptest"
	"posttrade/app/settings"
	"posttrade/journal"
	"posttrade/ring/must"
)

// TestDamagedJournalIsNamed flips one byte of the stored history. It expects verify to report it
// with exit code 3, and the server not to start.
func TestDamagedJournalIsNamed(t *testing.T) {
	data := t.TempDir()
	s := startServer(t, data)
	call(t, "POST", s.url+"/orders", sellOrder)
	s.stop(t)
	if code, out, errs := apptest.Run("journal", "verify", "--data.dir="+data); code !=
		settings.ExitOK ||
		!strings.Contains(out, "verified") {
		t.Fatalf("verify of a good journal: %d %s %s", code, out, errs)
	}
	damaged := 0
	for _, pattern := range []string{"*.log", "*.sst"} {
		names := must.Get(filepath.Glob(filepath.Join(data, "journal", "store", pattern)))(t)
		for _, name := range names {
			text := must.Get(os.ReadFile(name))(t)
			if len(text) < 200 {
				continue
			}
			text[150] ^= 0x40
			damaged++
			must.OK(t, os.WriteFile(name, text, 0o600))
		}
	}
	if damaged == 0 {
		t.Fatal("no file was long enough to damage")
	}
	if code, out, errs := apptest.Run("journal", "verify",
		"--data.dir="+data); code != settings.ExitMismatch || errs == "" {
		t.Errorf("verify of a damaged journal: %d %s %s", code, out, errs)
	}
	c := apptest.Settled(t, anyPorts(data)...)
	if err := serveFor(context.Background(), c, io.Discard, io.Discard); err == nil {
		t.Error("the server starts on a damaged journal")
	}
}

func TestJournalCommands(t *testing.T) {
	data := t.TempDir()
	for _, command := range []string{"stats", "export", "verify"} { // an absent journal is no mismatch
		if code, _, errs := apptest.Run("journal", command, "--data.dir="+data); code !=
			settings.ExitFailed ||
			strings.Count(errs, "\n") != 1 {
			t.Errorf("%s without a journal: %d %q", command, code, errs)
		}
	}
	s := startServer(t, data)
	call(t, "POST", s.url+"/orders", sellOrder)
	call(t, "POST", s.url+"/orders", buyOrder)
	for _, command := range []string{"verify", "stats", "export"} {
		want := "commands   2 in"
		if command == "export" {
			want = `"clientOrderId":"b"`
		}
		if code, out, errs := apptest.Run("journal", command, "--data.dir="+data); code !=
			settings.ExitOK ||
			!strings.Contains(out, want) {
			t.Errorf("%s of a journal in use: %d %q %q", command, code, out, errs)
		}
	}
	if code, _, errs := apptest.Run("journal", "accept", "--data.dir="+data); code !=
		settings.ExitFailed ||
		!strings.Contains(errs, "in use") {
		t.Errorf("accept of a journal in use: %d %q", code, errs)
	}
	s.stop(t)
	if code, out, _ := apptest.Run("journal", "export", "--data.dir="+data,
		"--from=2"); code != settings.ExitOK ||
		strings.Count(out, "\n") != 1 || !strings.Contains(out, `"clientOrderId":"b"`) {
		t.Errorf("export: %d %s", code, out)
	}
	if code, out, _ := apptest.Run("snapshot", "--data.dir="+data); code != settings.ExitOK ||
		!strings.Contains(out, "sequence 2") {
		t.Errorf("snapshot: %d %s", code, out)
	}
	if code, out, _ := apptest.Run("journal", "verify", "--data.dir="+data); code != settings.ExitOK ||
		!strings.Contains(out, "1 snapshots lead to the same state") {
		t.Errorf("verify with a snapshot: %d %s", code, out)
	}
	if code, out, _ := apptest.Run("journal", "stats", "--data.dir="+data); code != settings.ExitOK ||
		!strings.Contains(out, "commands   2 in") {
		t.Errorf("stats: %d %s", code, out)
	}
	// Without its anchor the start is refused, until an operator accepts the stored journal.
	must.OK(t, os.Remove(filepath.Join(data, "journal", "anchor")))
	wantNoStart(t, anyPorts(data), journal.ErrAnchorMissing.Error(), false)
	if code, out, errs := apptest.Run("journal", "accept", "--data.dir="+data); code !=
		settings.ExitOK ||
		!strings.Contains(out, "commands   2 in") {
		t.Errorf("accept: %d %s %s", code, out, errs)
	} else if _, err := os.Stat(filepath.Join(data, "journal", "accepted-1", "store")); err != nil ||
		!strings.Contains(out, "accepted-1") {
		t.Errorf("the copy of what accept replaces: %v\n%s", err, out)
	}
	startServer(t, data).stop(t)
	for _, args := range [][]string{{}, {"repair"}, {"verify", "extra"}} {
		if code, _, errs := apptest.Run("journal", append(args,
			"--data.dir="+data)...); code != settings.ExitUsage || strings.Count(errs, "\n") != 1 {
			t.Errorf("journal %v: %d %q", args, code, errs)
		}
	}
}

// TestCommandsOnAJournalMakeNone runs the commands where there is no journal: each fails in one
// line and changes nothing.
func TestCommandsOnAJournalMakeNone(t *testing.T) {
	for _, found := range []string{"", "data", "data/journal", "data/journal/store"} {
		for _, command := range []string{"verify", "stats", "export", "accept", "snapshot"} {
			root := t.TempDir()
			must.OK(t, os.MkdirAll(filepath.Join(root, found), 0o755))
			before := tree(t, root)
			runs, args := "journal", []string{command}
			if command == "snapshot" {
				runs, args = "snapshot", nil
			}
			code, out, errs := apptest.Run(runs, append(args, "--data.dir="+filepath.Join(root, "data"))...)
			if code != settings.ExitFailed || out != "" || strings.Count(errs, "\n") != 1 ||
				!strings.Contains(errs, journal.ErrNoGenesis.Error()) {
				t.Errorf("%s with %q: %d %q %q", command, found, code, out, errs)
			}
			if after := tree(t, root); !slices.Equal(after, before) {
				t.Errorf("%s with %q made %v of %v", command, found, after, before)
			}
		}
	}
}

// tree is every name below a directory.
func tree(t *testing.T, root string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, _ os.DirEntry, err error) error {
		names = append(names, path)
		return err
	})
	must.OK(t, err)
	return names
}
