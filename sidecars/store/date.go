package store

import (
	"fmt"
	"time"
)

// Date is a day of the proleptic Gregorian calendar: days since 1970-01-01.
//
// It has no time zone and no time of day: what a day is in a market's zone is decided by the caller
// that makes the Date. Dates compare and subtract as numbers. The zero Date is 1970-01-01, a real
// day, so "none" needs NoDate.
type Date int32

// NoDate stands for a date column that holds no usable date: a text that is no date, infinity, or a
// day outside of 0001-01-01..9999-12-31. This system never writes such a value.
//
// It is below every real date: a comparison of dates must look for it first.
const NoDate Date = -1 << 31

// DateOf returns the given day. Months and days beyond their range are carried on.
func DateOf(year int, month time.Month, day int) Date {
	return Date(time.Date(year, month, day, 0, 0, 0, 0, time.UTC).Unix() / secondsPerDay)
}

const secondsPerDay = 24 * 60 * 60

// ParseDate reads yyyy-MM-dd, exactly. A date column of SQLite compares as text, which orders dates
// only when all of them have this form.
func ParseDate(text string) (Date, error) {
	t, err := time.Parse(time.DateOnly, text)
	if err != nil || len(text) != len(time.DateOnly) {
		return 0, fmt.Errorf("store: date %q is not yyyy-MM-dd", text)
	}
	d := DateOf(t.Date())
	if !d.known() {
		return 0, fmt.Errorf("store: date %q is outside of 0001-01-01..9999-12-31", text)
	}
	return d, nil
}

// known reports whether a date column holds d.
func (d Date) known() bool { return firstDate <= d && d <= lastDate }

// Time returns midnight UTC of the day.
func (d Date) Time() time.Time { return time.Unix(int64(d)*secondsPerDay, 0).UTC() }

// String renders yyyy-MM-dd; a day that no column holds has no such form.
//
// It allocates. Code that renders runs of equal dates keeps the last text (sqliteConn.dayText).
func (d Date) String() string {
	if !d.known() {
		return "no date"
	}
	return d.Time().Format(time.DateOnly)
}
