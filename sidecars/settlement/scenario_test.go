package settlement

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestScenarios plays testdata/scenarios/*.scn: questions to a calendar, a line of dashes, and the
// answers.
//
//	settle CALENDAR T+N TIME    the day on which a trade of that time in New York settles
//	day CALENDAR DATE           whether anything settles on a day
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/scenarios/*.scn")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenario found: %v", err)
	}
	for _, name := range files {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".scn"), func(t *testing.T) {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			script, want, found := strings.Cut(string(text), "\n----\n")
			if !found {
				t.Fatal("no line of dashes")
			}
			if got := playCalendar(t, script); got != want {
				t.Errorf("got\n%swant\n%s", got, want)
			}
		})
	}
}

func playCalendar(t *testing.T, script string) string {
	t.Helper()
	var out strings.Builder
	for n, line := range strings.Split(script, "\n") {
		var name, at string
		var tPlus int
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if k, _ := fmt.Sscanf(line, "settle %s T+%d %s", &name, &tPlus, &at); k == 3 {
			executed, err := time.ParseInLocation("2006-01-02T15:04:05", at, newYork(t))
			if err != nil {
				t.Fatalf("line %d: %v", n+1, err)
			}
			c := mustCalendar(t, name, newYork(t), tPlus)
			fmt.Fprintf(&out, "%s T+%d %s\n", at, tPlus, c.SettlementDate(executed.UnixMilli()))
			continue
		}
		if k, _ := fmt.Sscanf(line, "day %s %s", &name, &at); k != 2 {
			t.Fatalf("line %d: unknown question %q", n+1, line)
		}
		word := "closed"
		if mustCalendar(t, name, time.UTC, 1).BusinessDay(mustDate(t, at)) {
			word = "open"
		}
		fmt.Fprintf(&out, "%s %s %s\n", name, at, word)
	}
	return out.String()
}
