package installation

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"posttrade/app/apptest"
	"posttrade/journal"
	"posttrade/ring/must"
)

// Damage that a scrub has found is on /readyz, which still admits orders, and in the metrics, with
// file, key and sequences; also after a restart. The next pass clears what it can read.
func TestDamageIsShownUntilItIsMended(t *testing.T) {
	data := t.TempDir()
	settings := []string{"sidecars.enabled", "false", "journal.scrub-interval", "1h"}
	i := install(t, data, settings...)
	apptest.Until(t, "a pass is complete", func() (bool, any) {
		_, part := readyPart(i, "journal-scrub")
		return part.Ready && strings.HasPrefix(part.Detail, "complete at "), part
	})
	i.stop()
	name := filepath.Join(data, "journal", "scrub")
	found := journal.ScrubState{Completed: time.Now(), Damaged: []journal.Damage{
		{File: "journal/store/000042.sst", Key: `"c"5`, From: 5, To: 9, Why: "checksum"},
	}}
	writeJSON := func() {
		text, err := json.Marshal(found)
		if err == nil {
			err = os.WriteFile(name, text, 0o600)
		}
		must.OK(t, err)
	}
	writeJSON()
	i = install(t, data, settings...)
	status, part := readyPart(i, "journal-scrub")
	if status != http.StatusOK || part.Ready || !strings.Contains(part.Detail, "000042.sst") ||
		!strings.Contains(part.Detail, "5..9") {
		t.Errorf("%d %+v", status, part)
	}
	_, metrics := i.get("admin", "/metrics")
	for _, want := range []string{"svc_journal_scrub_damaged 1", `from="5"`, `to="9"`,
		`file="journal/store/000042.sst"`} {
		if !strings.Contains(string(metrics), want) {
			t.Errorf("no %s in the metrics", want)
		}
	}
	i.stop()
	found.Completed = time.Now().Add(-2 * time.Hour)
	writeJSON()
	i = install(t, data, settings...)
	apptest.Until(t, "the next pass takes it back", func() (bool, any) {
		_, part := readyPart(i, "journal-scrub")
		return part.Ready, part
	})
	i.stop()
	i = install(t, data, "sidecars.enabled", "false", "journal.scrub-interval", "0s")
	if _, part := readyPart(i, "journal-scrub"); !part.Ready || part.Detail != "off" {
		t.Errorf("%+v", part)
	}
}

// Findings that cannot be written are shown, and orders are admitted all the same.
func TestFindingsThatAreNotKeptAreShown(t *testing.T) {
	data := t.TempDir()
	must.OK(t, os.MkdirAll(filepath.Join(data, "journal", "scrub.new", "in the way"), 0o755))
	i := install(t, data, "sidecars.enabled", "false", "journal.scrub-interval", "1h")
	apptest.Until(t, "the part says so", func() (bool, any) {
		status, part := readyPart(i, "journal-scrub")
		return status == http.StatusOK && !part.Ready &&
			strings.HasPrefix(part.Detail, "complete at ") &&
			strings.Contains(part.Detail, "its file could not be written: "), part
	})
	i.stop()
}
