package main

import (
	"strings"
	"testing"
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
