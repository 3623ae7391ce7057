package backups

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"posttrade/ring/must"
)

// TestARestartKnowsTheLastBackup: without it the alert for old backups would fall silent.
func TestARestartKnowsTheLastBackup(t *testing.T) {
	path := filepath.Join(t.TempDir(), lastFile)
	before := record{path: path}
	must.OK(t, before.read(0))
	if before.get() != (last{}) {
		t.Errorf("without a file: %+v", before.get())
	}
	must.OK(t, before.ended(40, true, time.Unix(1700, 0)))
	must.OK(t, before.ended(50, false, time.Unix(1800, 0)))
	want := last{Sequence: 50, At: 1800, RowsAt: 1700}
	for head, want := range map[uint64]last{50: want, 51: want, 49: {}} {
		after := record{path: path}
		must.OK(t, after.read(head))
		if got := after.get(); got != want {
			t.Errorf("head %d: %+v, want %+v", head, got, want)
		}
	}
}

// TestARecordOfAnOlderBuild has no time of the rows: they count as read then, so that an upgrade
// raises no alert.
func TestARecordOfAnOlderBuild(t *testing.T) {
	r := record{path: filepath.Join(t.TempDir(), lastFile)}
	must.OK(t, os.WriteFile(r.path, []byte(`{"sequence":7,"at":9}`), 0o600))
	must.OK(t, r.read(100))
	if want := (last{Sequence: 7, At: 9, RowsAt: 9}); r.get() != want {
		t.Errorf("read %+v, want %+v", r.get(), want)
	}
}

func TestAnUnreadableRecordCountsAsNone(t *testing.T) {
	path := filepath.Join(t.TempDir(), lastFile)
	must.OK(t, os.WriteFile(path, []byte(`{"sequence":`), 0o600))
	r := record{path: path}
	if err := r.read(100); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("error %v, want one that names the file", err)
	}
	if r.get() != (last{}) {
		t.Errorf("read %+v", r.get())
	}
	r.path = filepath.Join(path, "below") // a file is no folder
	if r.ended(7, true, time.Unix(9, 0)) == nil {
		t.Error("no error where nothing can be written")
	}
	if want := (last{Sequence: 7, At: 9, RowsAt: 9}); r.get() != want {
		t.Errorf("in memory %+v, want %+v", r.get(), want)
	}
}
