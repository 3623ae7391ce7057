package settlement

import (
	"strconv"
	"strings"
	"time"
)

// Rules names everything that a date depends on: calendar, time zone, N, and the version of the
// rule files. The database stores the name beside the rows that were dated by these rules.
//
// The parts are separated by "; ", which ByRules splits at: no calendar or time zone has it in its
// name.
func (c *Calendar) Rules() string {
	return strings.Join([]string{c.name, c.zoneName, "T+" + strconv.Itoa(c.tPlus), c.version}, "; ")
}

// ByRules makes the calendar that a value of Rules names; false when this build has other rule
// files, or none of that name.
//
// It makes the whole calendar, which takes milliseconds: callers keep the result.
func ByRules(rules string) (*Calendar, bool) {
	parts := strings.SplitN(rules, "; ", 4)
	if len(parts) != 4 {
		return nil, false
	}
	where, err := time.LoadLocation(parts[1])
	if err != nil {
		return nil, false
	}
	tPlus, err := strconv.Atoi(strings.TrimPrefix(parts[2], "T+"))
	if err != nil {
		return nil, false
	}
	c, err := NewCalendar(parts[0], where, tPlus)
	return c, err == nil && c.Rules() == rules
}
