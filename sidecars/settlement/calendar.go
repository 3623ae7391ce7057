package settlement

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"posttrade/sidecars/store"
)

// MaxTPlus is the largest number of business days from execution to settlement.
const MaxTPlus = 365

// The years of executions that the tables cover. Settlement dates are up to MaxTPlus business days
// later, which is less than two years.
const (
	firstYear = 1970
	lastYear  = 2199
)

// ErrCalendar is returned by NewCalendar for unusable arguments or rule files.
var ErrCalendar = errors.New("unusable calendar")

// names lists the calendars that may be chosen; the other rule files are only parts of them.
var names = []string{"US-SETTLEMENT", "XNYS", "TARGET", "weekdays"}

// A Calendar gives the settlement dates of executions. It is read-only once made: any goroutine may
// use it.
//
// Invariants: business and settles cover every day from origin, in order; settles is
// non-decreasing, each of its dates is a business day, and none is before its own day.
//
// The tables take some five bytes for each of about 85,000 days.
type Calendar struct {
	name, zoneName string // the arguments of NewCalendar
	tPlus          int
	version        string
	zone           zone
	origin         store.Date // the day of index 0: the last day of the year before firstYear

	business []bool
	settles  []store.Date // settlement date by execution date
}

// NewCalendar makes the calendar of that name (US-SETTLEMENT, XNYS, TARGET or weekdays) for
// executions that are dated in the zone where and settle tPlus business days later, 0 to MaxTPlus.
// It takes some milliseconds; errors are ErrCalendar.
//
// The version is that of the rule files in this binary; no file of the machine is read, except what
// where was made from.
func NewCalendar(name string, where *time.Location, tPlus int) (*Calendar, error) {
	switch {
	case !slices.Contains(names, name):
		return nil, fmt.Errorf("settlement: calendar name=%q: not one of %s: %w",
			name, strings.Join(names, ", "), ErrCalendar)
	case where == nil:
		return nil, fmt.Errorf("settlement: calendar name=%s: no time zone: %w", name, ErrCalendar)
	case tPlus < 0 || tPlus > MaxTPlus:
		return nil, fmt.Errorf("settlement: calendar t-plus=%d: not in 0..%d: %w", tPlus,
			MaxTPlus, ErrCalendar)
	}
	rules, err := loadRules(name)
	if err != nil {
		return nil, err
	}
	c := &Calendar{name: name, zoneName: where.String(), tPlus: tPlus, version: rules.version,
		origin: store.DateOf(firstYear-1, time.December, 31)}
	end := store.DateOf(lastYear+2, time.December, 31) // the last day of the tables
	c.zone = newZone(where, end)
	c.business = make([]bool, end-c.origin+1)
	for i := range c.business {
		c.business[i] = isWeekday(c.origin + store.Date(i))
	}
	rules.closings(firstYear-1, lastYear+2, func(d store.Date) {
		if d >= c.origin && d <= end {
			c.business[d-c.origin] = false
		}
	})
	c.count(tPlus, store.DateOf(lastYear, time.December, 31))
	return c, nil
}

// count fills settles. Executions after last have the date of last.
func (c *Calendar) count(tPlus int, last store.Date) {
	var days []store.Date // all business days
	for i, open := range c.business {
		if open {
			days = append(days, c.origin+store.Date(i))
		}
	}
	c.settles = make([]store.Date, len(c.business))
	next := 0 // days[next] is the first business day at or after the one at i
	for i := range c.settles {
		day := c.origin + store.Date(i)
		if day > last {
			c.settles[i] = c.settles[i-1]
			continue
		}
		if days[next] < day {
			next++
		}
		// From a business day the count starts with the next business day. Any other day is itself day
		// zero, so the first business day after it is already T+1. But T+0 cannot be a day on which
		// nothing settles.
		at := next + tPlus
		if days[next] != day {
			at = next + max(tPlus-1, 0)
		}
		c.settles[i] = days[at]
	}
}

// SettlementDate returns the settlement date of an execution at that moment, in milliseconds since
// 1970 UTC. Every moment has one: a moment before 1970 has that of 1970-01-01 UTC, one after 2199
// that of 2199-12-31.
//
// Cost: two array reads and no allocation.
func (c *Calendar) SettlementDate(executedAtMillis int64) store.Date {
	return c.settles[c.zone.date(executedAtMillis)-c.origin]
}

// LocalDate returns the date at that moment in the calendar's zone. For a moment outside the tables
// it is the nearest date inside; every date that SettlementDate returns is inside.
func (c *Calendar) LocalDate(millis int64) store.Date { return c.zone.date(millis) }

// Version names the rule files that were used, with their versions.
//
// Two calendars of one Version, zone and N give the same dates (Rules).
func (c *Calendar) Version() string { return c.version }

// isWeekday reports whether d is one of Monday to Friday.
func isWeekday(d store.Date) bool {
	w := weekday(d)
	return w != time.Saturday && w != time.Sunday
}

// weekday returns the day of the week. Day 0, 1970-01-01, is a Thursday.
func weekday(d store.Date) time.Weekday {
	return time.Weekday(((int64(d)+int64(time.Thursday))%7 + 7) % 7)
}
