package settlement

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"posttrade/ring/scenariotest"
)

// TestScenarios plays testdata/scenarios/*.scn: questions to a calendar, a line of dashes, and the
// answers.
//
//	settle CALENDAR T+N TIME    the day on which a trade of that time in New York settles
//	day CALENDAR DATE           whether anything settles on a day
func TestScenarios(t *testing.T) {
	scenariotest.Run(t, "testdata/scenarios/*.scn", playCalendar)
}

func playCalendar(t *testing.T, script string) string {
	t.Helper()
	var out strings.Builder
	for n, line := range scenariotest.Lines(script) {
		var name, at string
		var tPlus int
		if k, _ := fmt.Sscanf(line, "settle %s T+%d %s", &name, &tPlus, &at); k == 3 {
			executed, err := time.ParseInLocation("2006-01-02T15:04:05", at, newYork(t))
			if err != nil {
				t.Fatalf("line %d: %v", n, err)
			}
			c := mustCalendar(t, name, newYork(t), tPlus)
			fmt.Fprintf(&out, "%s T+%d %s\n", at, tPlus, c.SettlementDate(executed.UnixMilli()))
			continue
		}
		if k, _ := fmt.Sscanf(line, "day %s %s", &name, &at); k != 2 {
			t.Fatalf("line %d: unknown question %q", n, line)
		}
		word := "closed"
		if mustCalendar(t, name, time.UTC, 1).businessDay(mustDate(t, at)) {
			word = "open"
		}
		fmt.Fprintf(&out, "%s %s %s\n", name, at, word)
	}
	return out.String()
}
