package settlement

import (
	"bufio"
	"errors"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"posttrade/ring/must"
	"posttrade/sidecars/store"
)

func newYork(t testing.TB) *time.Location { return mustZone(t, "America/New_York") }

func mustZone(t testing.TB, name string) *time.Location {
	t.Helper()
	return must.Get(time.LoadLocation(name))(t)
}

func mustCalendar(t testing.TB, name string, where *time.Location, tPlus int) *Calendar {
	t.Helper()
	return must.Get(NewCalendar(name, where, tPlus))(t)
}

func mustDate(t testing.TB, text string) store.Date {
	t.Helper()
	return must.Get(store.ParseDate(text))(t)
}

// publishedHolidays reads testdata/holidays.txt: by calendar, the weekdays on
// which nothing settles.
func publishedHolidays(t *testing.T) map[string]map[string]bool {
	t.Helper()
	file := must.Get(os.Open("testdata/holidays.txt"))(t)
	defer file.Close()
	table := map[string]map[string]bool{"US-SETTLEMENT": {}, "XNYS": {}, "FED": {}, "TARGET": {},
		"weekdays": {}}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) == 0 || fields[0] == "#" {
			continue
		}
		name, date := fields[0], fields[1]
		day, err := time.Parse(time.DateOnly, date)
		if err != nil || day.Weekday().String() != fields[2] || table[name] == nil || table[name][date] {
			t.Fatalf("testdata: bad line %q", lines.Text())
		}
		table[name][date] = true
		if name == "XNYS" || name == "FED" {
			table["US-SETTLEMENT"][date] = true
		}
	}
	for name, want := range map[string]int{"US-SETTLEMENT": 49, "XNYS": 41, "FED": 41, "TARGET": 20,
		"weekdays": 0} {
		if got := len(table[name]); got != want {
			t.Fatalf("testdata: %d holidays of %s, want %d", got, name, want)
		}
	}
	return table
}

// settlesSlowly is the written rule, applied to the published table.
func settlesSlowly(closed map[string]bool, day time.Time, tPlus int) string {
	business := func() bool {
		w := day.Weekday()
		return w != time.Saturday && w != time.Sunday && !closed[day.Format(time.DateOnly)]
	}
	for range tPlus {
		day = day.AddDate(0, 0, 1)
		for !business() {
			day = day.AddDate(0, 0, 1)
		}
	}
	for !business() { // T+0
		day = day.AddDate(0, 0, 1)
	}
	return day.Format(time.DateOnly)
}

func TestCalendarsEqualThePublishedOnes(t *testing.T) {
	table, where := publishedHolidays(t), newYork(t)
	from, to := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2027, 12, 31, 0, 0,
		0, 0, time.UTC)
	compared := 0
	for _, name := range names {
		for tPlus := range 6 {
			c := mustCalendar(t, name, where, tPlus)
			for day := from; !day.After(to); day = day.AddDate(0, 0, 1) {
				y, m, d := day.Date()
				want := settlesSlowly(table[name], day, tPlus)
				for _, at := range []time.Time{
					time.Date(y, m, d, 0, 0, 0, 0, where),
					time.Date(y, m, d, 12, 0, 0, 0, where),
					time.Date(y, m, d, 23, 59, 59, 999e6, where),
				} {
					if got := c.SettlementDate(at.UnixMilli()).String(); got != want {
						t.Fatalf("%s T+%d of %s: %s, want %s", name, tPlus, at, got, want)
					}
					compared++
				}
				open := day.Weekday() != time.Saturday && day.Weekday() != time.Sunday &&
					!table[name][day.Format(time.DateOnly)]
				if got := c.businessDay(store.DateOf(y, m, d)); got != open {
					t.Fatalf("%s: %s is a business day: %v, want %v", name,
						day.Format("Mon 2006-01-02"), got, open)
				}
			}
		}
	}
	t.Logf("%d settlement dates compared", compared)
}

func TestYearAfterExecutionIsCounted(t *testing.T) {
	table := publishedHolidays(t)
	c := mustCalendar(t, "US-SETTLEMENT", time.UTC, MaxTPlus)
	for day := time.Date(2024, 1, 1, 0, 0, 0, 0,
		time.UTC); day.Year() < 2026; day = day.AddDate(0, 0, 1) {
		want := settlesSlowly(table["US-SETTLEMENT"], day, MaxTPlus)
		if got := c.SettlementDate(day.UnixMilli()).String(); got != want {
			t.Fatalf("T+%d of %s: %s, want %s", MaxTPlus, day.Format(time.DateOnly), got, want)
		}
	}
}

// businessDay reports whether trades may settle on d, a day of the tables.
func (c *Calendar) businessDay(d store.Date) bool { return c.business[d-c.origin] }

// Sessions of the exchange per year, from published statistics.
func TestExchangeSessionsAYear(t *testing.T) {
	sessions := map[int]int{
		1994: 252, 1995: 252, 1996: 254, 1997: 253, 1998: 252, 1999: 252, 2000: 252, 2001: 248, 2002: 252,
		2003: 252, 2004: 252, 2005: 252, 2006: 251, 2007: 251, 2008: 253, 2009: 252, 2010: 252, 2011: 252,
		2012: 250, 2013: 252, 2014: 252, 2015: 252, 2016: 252, 2017: 251, 2018: 251, 2019: 252, 2020: 253,
		2021: 252, 2022: 251, 2023: 250, 2024: 252, 2025: 250,
	}
	c := mustCalendar(t, "XNYS", time.UTC, 1)
	for year, want := range sessions {
		got := 0
		for d := store.DateOf(year, 1, 1); d < store.DateOf(year+1, 1, 1); d++ {
			if c.businessDay(d) {
				got++
			}
		}
		if got != want {
			t.Errorf("%d sessions in %d, want %d", got, year, want)
		}
	}
}

func TestEveryMomentHasASettlementDate(t *testing.T) {
	for _, where := range []string{"UTC", "America/New_York", "Pacific/Kiritimati", "Etc/GMT+12"} {
		for _, tPlus := range []int{0, 1, MaxTPlus} {
			c := mustCalendar(t, "US-SETTLEMENT", mustZone(t, where), tPlus)
			end := time.Date(lastYear, 12, 31, 12, 0, 0, 0, mustZone(t, where)).UnixMilli()
			last := c.SettlementDate(end)
			previous := store.Date(math.MinInt32)
			for _, at := range []int64{math.MinInt64, -1e15, -1, 0, 1, 1e12, end, end + 400*dayMillis,
				end + 1000*dayMillis, 1e15, math.MaxInt64} {
				d := c.SettlementDate(at)
				if d < previous || !c.businessDay(d) || d < c.LocalDate(min(at, end)) {
					t.Errorf("%s T+%d of %d is %s, before it %s", where, tPlus, at, d, previous)
				}
				if at >= end && d != last {
					t.Errorf("%s T+%d of %d is %s, want that of the last day, %s", where, tPlus, at, d, last)
				}
				previous = d
			}
			if today := c.LocalDate(math.MaxInt64); today < last {
				t.Errorf("%s: the last today is %s, but trades settle on %s", where, today, last)
			}
		}
	}
}

func TestNewCalendarRefuses(t *testing.T) {
	tests := []struct {
		name  string
		where *time.Location
		tPlus int
	}{
		{"", time.UTC, 1}, {"us-settlement", time.UTC, 1}, {"US-FEDERAL-RESERVE", time.UTC, 1},
		{"XNYS", nil, 1}, {"XNYS", time.UTC, -1}, {"XNYS", time.UTC, MaxTPlus + 1},
	}
	for _, tt := range tests {
		if c, err := NewCalendar(tt.name, tt.where, tt.tPlus); !errors.Is(err, ErrCalendar) || c != nil {
			t.Errorf("NewCalendar(%q, %v, %d) = %v, %v", tt.name, tt.where, tt.tPlus, c, err)
		}
	}
	if !slices.IsSorted(mustCalendar(t, "XNYS", time.UTC, 3).settles) {
		t.Error("settlement dates fall as executions get later")
	}
}
