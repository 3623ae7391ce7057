package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"posttrade/app/settings"
	"posttrade/journal"
	"posttrade/ring/must"
)

// A wrong command line of journal says what the command wants, and where another data directory is
// given.
func TestJournalWords(t *testing.T) {
	for _, tt := range []struct{ line, want string }{
		{"", "usage: posttrade journal verify"},
		{"verify data", `journal verify: want no folder, got "data"; the journal is the one in ` +
			"data.dir: choose it with --data.dir=DIR"},
		{"accept a", `journal accept: want no folder, got "a"`},
		{"archive --before=2026-01-01", "want the folder for archives"},
		{"archive into", "want --before=DATE"},
		{"stats --before=2026-01-01", "before: only journal archive has it"},
		{"archive into --before=tomorrow", `before: want yyyy-mm-dd, got "tomorrow"`},
		{"export --from=0", "--from=0 --to=0"},
		{"export --from=5 --to=3", "--from=5 --to=3"},
		{"mend", `unknown journal command "mend"; there are verify, stats`},
		{"mend data", `unknown journal command "mend"`},
	} {
		var out, errs strings.Builder
		code := runJournal(append(strings.Fields(tt.line), "--data.dir="+t.TempDir()), &out, &errs)
		if code != 2 || !strings.Contains(errs.String(), tt.want) || out.Len() > 0 {
			t.Errorf("%q: exit %d, %s%s, want %q", tt.line, code, errs.String(), out.String(),
				tt.want)
		}
	}
}

// A folder that is no journal has not been verified: that is not the verdict that it differs.
func TestVerifyOfAFileIsNoVerdict(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	must.OK(t, os.WriteFile(file, nil, 0o600))
	var out, errs strings.Builder
	if code := runJournal([]string{"verify", "--data.dir=" + file}, &out, &errs); code !=
		settings.ExitFailed || !strings.Contains(errs.String(), file) {
		t.Errorf("exit %d: %s", code, &errs)
	}
}

// TestWhatWasNotReadIsNoMismatch: exit 3 says that the journal is not what it should be.
func TestWhatWasNotReadIsNoMismatch(t *testing.T) {
	for err, mismatch := range map[error]bool{fs.ErrPermission: false, syscall.ENOTDIR: false,
		journal.ErrArchived: false, journal.ErrSnapshot: true, errors.New("other"): true} {
		wrapped := fmt.Errorf("journal: read: %w", err)
		if got := errors.Is(differs(wrapped), settings.ErrMismatch); got != mismatch {
			t.Errorf("%v: a mismatch: %v", err, got)
		}
	}
}
