package installation

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"posttrade/app/apptest"
	"posttrade/app/settings"
	"posttrade/ring/must"
)

// blocks makes n trades in a block of the journal each: a block ends when the store has it, and no
// block that an opening reads is moved out.
func (i *installed) blocks(n int) {
	i.t.Helper()
	for range n {
		i.trade(1)
		head, _ := i.Core.Journal.Head()
		must.OK(i.t, i.Core.Journal.WaitHead(i.t.Context(), head))
	}
}

// Old blocks that were moved out are read where they are: rows, blotter, report, recovery, backup
// and verification are what they were. A start without their folder names the setting; a node
// without sidecars trades on without it.
func TestArchivedInstallationIsWhole(t *testing.T) {
	data, archives := t.TempDir(), filepath.Join(t.TempDir(), "archives")
	in := install(t, data)
	in.blocks(60)
	in.awaitMatched()
	in.stop()
	at := "--data.dir=" + data
	tomorrow := "--before=" + time.Now().UTC().AddDate(0, 0, 1).Format(time.DateOnly)
	archivesNothing := func(before string) {
		t.Helper()
		if out := program(t, "journal", "archive", archives, before, at); !strings.HasPrefix(out,
			"archived   nothing: no block is older than that, and older than a snapshot") {
			t.Errorf("%s: %s", before, out)
		}
		if _, err := os.Stat(archives); err == nil {
			t.Error("a folder for archives was made for nothing")
		}
	}
	archivesNothing(tomorrow) // there is no snapshot yet
	program(t, "snapshot", at)
	in = install(t, data)
	in.trade(20)
	in.awaitMatched()
	rows := in.rows()
	in.stop()
	state := statePattern.FindString(program(t, "journal", "verify", at))
	history := export(t, apptest.Program(t), data)
	programFails(t, settings.ExitUsage, "--before=DATE", "journal", "archive", archives, at)
	programFails(t, settings.ExitUsage, "before", "journal", "archive", archives, "--before=soon", at)
	archivesNothing("--before=2020-01-01")
	out := program(t, "journal", "archive", archives, tomorrow, at)
	if !strings.Contains(out, "journal.archive-dir="+archives) ||
		!strings.Contains(out, "\ntree root  ") {
		t.Errorf("%s", out)
	}
	programFails(t, settings.ExitFailed, "journal.archive-dir", "journal", "verify", at)
	with := "--journal.archive-dir=" + archives
	if got := statePattern.FindString(program(t, "journal", "verify", at, with)); got != state ||
		got == "" {
		t.Errorf("state %q, want %q", got, state)
	}
	programFails(t, settings.ExitFailed, "journal.archive-dir", "why", "1", at)
	if got := program(t, "inspect", "--at=30", "trades", at, with); !strings.Contains(got, "trd-1") {
		t.Errorf("inspect across the archive: %s", got)
	}
	images := must.Get(filepath.Glob(filepath.Join(data, "journal", "snapshots", "*")))(t)
	for _, image := range images { // a new snapshot then begins with the first command
		must.OK(t, os.WriteFile(image, nil, 0o600))
	}
	programFails(t, settings.ExitFailed, "journal.archive-dir", "snapshot", at)
	program(t, "snapshot", at, with)
	code, line := openFails(t, data)
	if code != settings.ExitUsage || !strings.Contains(line, "journal.archive-dir") {
		t.Errorf("a start without the archive: %d %s", code, line)
	}
	alone := install(t, data, "sidecars.enabled", "false")
	alone.trade(1)
	alone.stop()

	in = install(t, data, "journal.archive-dir", archives)
	in.trade(10)
	wantWhole(t, in)
	if got := in.rows(); len(got) != len(rows)+22 {
		t.Errorf("%d rows, want %d", len(got), len(rows)+22)
	}
	tr := replayJournal(t, in.Core)
	tr.checkBlotter(t, in)
	in.announced(data)
	night, copied := filepath.Join(t.TempDir(), "night"), filepath.Join(t.TempDir(), "data")
	program(t, "backup", night, at)
	in.stop()
	program(t, "restore", night, "--data.dir="+copied) // it has both parts
	if lines := export(t, apptest.Program(t), copied); len(lines) <= len(history) ||
		strings.Join(lines[:len(history)], "\n") != strings.Join(history, "\n") {
		t.Errorf("%d commands in a backup, %d before", len(lines), len(history))
	}
	must.OK(t, os.RemoveAll(archives))
	code, line = openFails(t, data, "journal.archive-dir", archives)
	if code != settings.ExitUsage || !strings.Contains(line, archives) {
		t.Errorf("a start on a folder that is gone: %d %s", code, line)
	}
}

// Without the archive the live feed begins at the head, and goes on behind what it has said. A
// position in the archive is refused by name. The snapshot is one that the server took, or one that
// was made while none ran.
func TestFeedWithoutTheArchive(t *testing.T) {
	t.Run("a snapshot of the server", func(t *testing.T) {
		feedWithoutArchive(t, func(i *installed, _ string) {
			must.Get(i.Core.Shadow.Take(t.Context()))(t)
			i.trade(1)
			i.stop()
		})
	})
	t.Run("a snapshot made offline", func(t *testing.T) {
		feedWithoutArchive(t, func(i *installed, at string) {
			i.stop()
			program(t, "snapshot", at)
		})
	})
}

func feedWithoutArchive(t *testing.T, snapshot func(i *installed, at string)) {
	data, archives := t.TempDir(), filepath.Join(t.TempDir(), "archives")
	quiet := []string{"sidecars.enabled", "false"}
	i := install(t, data, quiet...)
	i.blocks(30)
	snapshot(i, "--data.dir="+data)
	if out := program(t, "journal", "archive", archives, "--data.dir="+data, "--before="+
		time.Now().UTC().AddDate(0, 0, 1).Format(time.DateOnly)); !strings.HasPrefix(out,
		"archived   sequences 1 to") {
		t.Fatal(out)
	}
	i = install(t, data, quiet...)
	live := openFeed(t, i.feedBase(), i.token, "topics=trades", "")
	i.trade(2)
	first, second := live.next(), live.next()
	again := openFeed(t, i.feedBase(), i.token, "topics=trades", first.id)
	if got := again.next(); first.kind != "trade" || got.text() != second.text() {
		t.Errorf("behind %s: %s, want %s", first.text(), got.text(), second.text())
	}
	for _, from := range []string{"0", "1"} {
		answer := tryFeed(t, i.feedBase(), i.token, "topics=trades&fromSeq="+from, "")
		if answer.StatusCode != http.StatusServiceUnavailable { // a stream has no end
			t.Fatalf("from %s, in the archive: %d", from, answer.StatusCode)
		}
		body, err := io.ReadAll(answer.Body)
		if err != nil || !strings.Contains(string(body), `"code":"ARCHIVE_NEEDED"`) {
			t.Errorf("from %s, in the archive: %d %s, %v", from, answer.StatusCode, body, err)
		}
	}
}
