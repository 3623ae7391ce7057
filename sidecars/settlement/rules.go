package settlement

import (
	"embed"
	"fmt"
	"strconv"
	"strings"
	"time"

	"posttrade/sidecars/store"
)

// ruleFiles holds one file a calendar or part of one. A line is one of
//
//	# a comment
//	version 2026.1
//	include XNYS                                    every closing of that file too
//	rule 1998-     01/mon/3  stays      a name      third Monday of January, from 1998 on
//	rule 1970-1970 02-22     nearest    a name      22 February, in that year only
//	rule 2000-     easter+1  stays      a name      the day after Easter Sunday
//	closed 2025-01-09                   a reason    a single day
//	closed 2012-10-29..2012-10-30       a reason    each day from the first to the last
//
// A third field of a rule says what becomes of a date on a weekend: it stays
// (and closes nothing), goes from Sunday to-monday, or to the nearest weekday.
// 05/mon/-1 is the last Monday of May.
//
//go:embed calendars/*.txt
var ruleFiles embed.FS

// A ruleSet is the content of a rule file and of those it includes.
//
// version is the name and version of the file, with those of its parts in parentheses.
type ruleSet struct {
	version string
	rules   []rule
	closed  []store.Date
}

// A rule closes one day a year.
type rule struct {
	from, to int // years, both inclusive
	when     yearlyDate
	moved    observance
}

// A yearlyDate is a date of every year: a day of a month, the nth weekday of one,
// or a distance from Easter Sunday.
type yearlyDate struct {
	easter bool
	month  time.Month
	day    int          // of the month; from Easter Sunday; 0 when nth counts weekdays
	nth    int          // from 1, or -1 for the last
	on     time.Weekday // what nth counts
}

// An observance says what happens to a date on a weekend.
type observance string

const (
	stays    observance = "stays"
	toMonday observance = "to-monday"
	nearest  observance = "nearest"
)

// loadRules reads the rule file of that name and everything it includes.
//
// A file must not include itself, directly or through another: the recursion would have no end.
func loadRules(name string) (*ruleSet, error) {
	text, err := ruleFiles.ReadFile("calendars/" + name + ".txt")
	if err != nil {
		return nil, fmt.Errorf("settlement: read calendar=%s: %w", name, err)
	}
	return parseRules(name, string(text))
}

// parseRules reads the text of a rule file. A line that it does not understand makes the whole file
// unusable, because a missing closing would give a wrong date.
//
// The error names the calendar and the line. It is ErrCalendar, or that of a date or of a file.
func parseRules(name, text string) (*ruleSet, error) {
	set := &ruleSet{}
	var parts []string
	for i, line := range strings.Split(text, "\n") {
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		if err := set.parseLine(name, fields, &parts); err != nil {
			return nil, fmt.Errorf("settlement: parse calendar=%s line=%d: %w", name, i+1, err)
		}
	}
	if set.version == "" {
		return nil, fmt.Errorf("settlement: parse calendar=%s: no version line: %w", name, ErrCalendar)
	}
	if len(parts) > 0 {
		set.version += " (" + strings.Join(parts, ", ") + ")"
	}
	return set, nil
}

// parseLine reads one line that is neither empty nor a comment. The words behind the date are for
// readers of the file; a rule and a closing must have at least one. parts collects the versions of
// the included files.
func (s *ruleSet) parseLine(name string, fields []string, parts *[]string) error {
	switch keyword := fields[0]; {
	case keyword == "version" && len(fields) == 2 && s.version == "":
		s.version = name + " " + fields[1]
		return nil
	case keyword == "include" && len(fields) == 2:
		part, err := loadRules(fields[1])
		if err != nil {
			return err
		}
		*parts = append(*parts, part.version)
		s.rules = append(s.rules, part.rules...)
		s.closed = append(s.closed, part.closed...)
		return nil
	case keyword == "rule" && len(fields) >= 5:
		r, err := parseRule(fields[1], fields[2], fields[3])
		s.rules = append(s.rules, r)
		return err
	case keyword == "closed" && len(fields) >= 3:
		first, last, isRange := strings.Cut(fields[1], "..")
		if !isRange {
			last = first
		}
		from, err := store.ParseDate(first)
		if err != nil {
			return err
		}
		to, err := store.ParseDate(last)
		if err != nil {
			return err
		}
		if from > to {
			return fmt.Errorf("%s is after %s: %w", first, last, ErrCalendar)
		}
		for d := from; d <= to; d++ {
			s.closed = append(s.closed, d)
		}
		return nil
	}
	return fmt.Errorf("%q is no line of a rule file: %w", strings.Join(fields, " "), ErrCalendar)
}

// parseRule reads the three fields of a rule. Years without an end run to the end of the tables.
func parseRule(years, when, moved string) (rule, error) {
	var r rule
	first, last, ok := strings.Cut(years, "-")
	from, err := strconv.Atoi(first)
	to := lastYear + 2
	if err == nil && last != "" {
		to, err = strconv.Atoi(last)
	}
	if !ok || err != nil || from > to {
		return r, fmt.Errorf("%q is no range of years: %w", years, ErrCalendar)
	}
	r.from, r.to = from, to
	if r.when, ok = parseYearlyDate(when); !ok {
		return r, fmt.Errorf("%q is no date of a year: %w", when, ErrCalendar)
	}
	switch r.moved = observance(moved); r.moved {
	case stays, toMonday, nearest:
		return r, nil
	}
	return r, fmt.Errorf("%q does not say what becomes of a weekend: %w", moved, ErrCalendar)
}

// parseYearlyDate reads easter+1, 01/mon/3 or 02-22. A fifth weekday is refused: some months have
// none.
func parseYearlyDate(when string) (yearlyDate, bool) {
	if distance, found := strings.CutPrefix(when, "easter"); found {
		days, err := strconv.Atoi(distance)
		return yearlyDate{easter: true, day: days}, err == nil
	}
	if parts := strings.Split(when, "/"); len(parts) == 3 {
		month, err := strconv.Atoi(parts[0])
		nth, err2 := strconv.Atoi(parts[2])
		for on := time.Sunday; on <= time.Saturday; on++ {
			if strings.ToLower(on.String()[:3]) == parts[1] {
				ok := err == nil && err2 == nil && month >= 1 && month <= 12 &&
					(nth == -1 || nth >= 1 && nth <= 4)
				return yearlyDate{month: time.Month(month), nth: nth, on: on}, ok
			}
		}
		return yearlyDate{}, false
	}
	// 2001 is no leap year: 29 February is not a date of every year
	t, err := time.Parse("2006-01-02", "2001-"+when)
	return yearlyDate{month: t.Month(), day: t.Day()}, err == nil
}

// closings calls each with every day that the set closes from the year first to the year last, in
// no order; a day may occur twice.
func (s *ruleSet) closings(first, last int, each func(store.Date)) {
	for _, r := range s.rules {
		for year := max(first, r.from); year <= min(last, r.to); year++ {
			each(r.moved.apply(r.when.in(year)))
		}
	}
	for _, d := range s.closed {
		each(d)
	}
}

// apply returns the day on which the date d is observed.
func (o observance) apply(d store.Date) store.Date {
	switch w := weekday(d); {
	case w == time.Sunday && o != stays:
		return d + 1
	case w == time.Saturday && o == nearest:
		return d - 1
	}
	return d
}

// in returns the date in a year.
func (o yearlyDate) in(year int) store.Date {
	switch {
	case o.easter:
		return easterSunday(year) + store.Date(o.day)
	case o.nth == 0:
		return store.DateOf(year, o.month, o.day)
	case o.nth < 0:
		last := store.DateOf(year, o.month+1, 1) - 1 // month 13 is January of the next year
		return last - store.Date((weekday(last)-o.on+7)%7)
	}
	first := store.DateOf(year, o.month, 1)
	return first + store.Date((o.on-weekday(first)+7)%7) + store.Date(7*(o.nth-1))
}

// easterSunday is the Gregorian computus of Meeus, Jones and Butcher: exact for every year, without
// exceptions or tables.
//
// year is at least 1: Go's division rounds towards zero.
func easterSunday(year int) store.Date {
	golden := year % 19
	century, inCentury := year/100, year%100
	epact := (19*golden + century - century/4 - (century-(century+8)/25+1)/3 + 15) % 30
	sunday := (32 + 2*(century%4) + 2*(inCentury/4) - epact - inCentury%4) % 7
	late := (golden + 11*epact + 22*sunday) / 451
	n := epact + sunday - 7*late + 114
	return store.DateOf(year, time.Month(n/31), n%31+1)
}
