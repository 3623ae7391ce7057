package settlement

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
	"testing"
	"time"

	"posttrade/ring/must"
	"posttrade/sidecars/store"
)

// A rule file that changes needs a new version, and a new line here.
func TestRuleFilesAreTheirVersions(t *testing.T) {
	want := map[string]string{
		"TARGET 2026.1":             "ff6b440592dace01",
		"US-FEDERAL-RESERVE 2026.1": "1c00fddf44897c40",
		"US-SETTLEMENT 2026.1 (XNYS 2026.1, US-FEDERAL-RESERVE 2026.1)": "d9053fb959689342",
		"XNYS 2026.1":     "24841e2699797689",
		"weekdays 2026.1": "843373fe11a0584b",
	}
	entries := must.Get(ruleFiles.ReadDir("calendars"))(t)
	for _, entry := range entries {
		name := strings.TrimSuffix(entry.Name(), ".txt")
		text := must.Get(ruleFiles.ReadFile("calendars/" + entry.Name()))(t)
		set := must.Get(loadRules(name))(t)
		sum := sha256.Sum256(text)
		if got := hex.EncodeToString(sum[:8]); want[set.version] != got {
			t.Errorf("%q: is %s, want %q", set.version, got, want[set.version])
		}
	}
	if len(entries) != len(want) {
		t.Errorf("%d rule files, %d versions", len(entries), len(want))
	}
}

func TestVersionNamesEveryFile(t *testing.T) {
	got := mustCalendar(t, "US-SETTLEMENT", time.UTC, 1).Version()
	if want := "US-SETTLEMENT 2026.1 (XNYS 2026.1, US-FEDERAL-RESERVE 2026.1)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestRuleFileLines(t *testing.T) {
	tests := []struct {
		line string
		days string // closings of 2026 and 2027
	}{
		{"rule 2026-2026 03-10 stays a", "2026-03-10"},
		{"rule 2026- 07-04 nearest a", "2026-07-03 2027-07-05"},
		{"rule 2026- 07-04 to-monday a", "2026-07-04 2027-07-05"},
		{"rule 2026- 07-04 stays a b c", "2026-07-04 2027-07-04"},
		{"rule 1970- 12/thu/-1 stays a", "2026-12-31 2027-12-30"},
		{"rule 2026-2030 05/mon/-1 stays a", "2026-05-25 2027-05-31"},
		{"rule 2027- 11/sun/1 stays a", "2027-11-07"},
		{"rule 2027- 11/mon/4 stays a", "2027-11-22"},
		{"rule 2027- easter+0 stays a", "2027-03-28"},
		{"rule 2026- easter-2 stays a", "2026-04-03 2027-03-26"},
		{"closed 2026-01-30..2026-02-02 a", "2026-01-30 2026-01-31 2026-02-01 2026-02-02"},
	}
	for _, tt := range tests {
		set, err := parseRules("T", "# comment\n\nversion 1\n"+tt.line+"\n")
		if err != nil {
			t.Errorf("%s: %v", tt.line, err)
			continue
		}
		var days []string
		set.closings(2026, 2027, func(d store.Date) { days = append(days, d.String()) })
		if got := strings.Join(days, " "); got != tt.days {
			t.Errorf("%s: closes %s, want %s", tt.line, got, tt.days)
		}
	}
}

func TestRuleFileLinesThatAreRefused(t *testing.T) {
	for _, line := range []string{
		"version 2", "version", "holiday 2026-01-01 a", "include", "include NOWHERE", "include ../rules",
		"rule 2026- 03-10 stays", "rule 2026 03-10 stays a", "rule x- 03-10 stays a",
		"rule 2026-x 03-10 stays a",
		"rule 2027-2026 03-10 stays a", "rule 2026- 02-29 stays a", "rule 2026- 13-01 stays a",
		"rule 2026- 01/foo/1 stays a", "rule 2026- 13/mon/1 stays a", "rule 2026- 00/mon/1 stays a",
		"rule 2026- 01/mon/5 stays a", "rule 2026- 01/mon/0 stays a", "rule 2026- 01/mon/x stays a",
		"rule 2026- easter stays a", "rule 2026- easter+x stays a", "rule 2026- 03-10 moves a",
		"closed 2026-01-01", "closed 2026-02-30 a", "closed 2026-01-01..x a",
		"closed 2026-01-02..2026-01-01 a",
	} {
		_, err := parseRules("T", "version 1\n"+line)
		if err == nil || !strings.Contains(err.Error(), "line=2") {
			t.Errorf("%q: %v", line, err)
		}
	}
	if _, err := parseRules("T", "# nothing\n"); !errors.Is(err, ErrCalendar) {
		t.Errorf("no version: %v", err)
	}
}

func TestEasterSunday(t *testing.T) {
	// From tables of the date of Easter: the earliest, the latest and the two exceptions of Gauss.
	for _, want := range []string{
		"1818-03-22", "1886-04-25", "1943-04-25", "1954-04-18", "1961-04-02", "1970-03-29", "1981-04-19",
		"1999-04-04", "2000-04-23", "2008-03-23", "2011-04-24", "2016-03-27", "2019-04-21", "2020-04-12",
		"2021-04-04", "2022-04-17", "2023-04-09", "2024-03-31", "2025-04-20", "2026-04-05", "2027-03-28",
		"2028-04-16", "2029-04-01", "2030-04-21", "2038-04-25", "2049-04-18", "2076-04-19", "2285-03-22",
	} {
		if got := easterSunday(mustDate(t, want).Time().Year()).String(); got != want {
			t.Errorf("Easter is %s, want %s", got, want)
		}
	}
	for year := firstYear; year <= lastYear+2; year++ {
		d := easterSunday(year)
		if weekday(d) != time.Sunday || d < store.DateOf(year, 3, 22) || d > store.DateOf(year, 4, 25) ||
			d != byMoon(year) {
			t.Errorf("Easter of %d on %s %s, want %s", year, weekday(d), d, byMoon(year))
		}
	}
}

// byMoon finds Easter by its definition: the Sunday after the full moon of the church's lunar
// calendar that falls on 21 March or next after it.
func byMoon(year int) store.Date {
	golden, century := year%19+1, year/100+1
	solar, lunar := 3*century/4-12, (8*century+5)/25-5 // leap days left out; the moon's drift
	epact := ((11*golden+20+lunar-solar)%30 + 30) % 30
	if epact == 24 || epact == 25 && golden > 11 {
		epact++
	}
	moon := store.DateOf(year, time.March, 44-epact)
	if moon < store.DateOf(year, time.March, 21) {
		moon += 30
	}
	for d := moon + 1; ; d++ {
		if weekday(d) == time.Sunday {
			return d
		}
	}
}
