package riskextract

import (
	"time"

	"posttrade/sidecars/store"
)

// months is the number of months in a year.
const months = 12

// dayCount is how the time between two days is measured.
//
// The names are those of the instruments file; doc.go names the standard of each.
type dayCount uint8

const (
	actualActual dayCount = iota
	thirty360
	actual360
	actual365
)

var dayCountNames = []string{"ACT/ACT", "30/360", "ACT/360", "ACT/365F"}

// accrued returns the last coupon date at a session's end, false when there is none, and the day
// count fraction since that date in millionths. See doc.go.
//
// The instrument is a bond. A session before 1970 cannot be (Marker.check). The result is at least
// 0.
func (i *instrument) accrued(session store.Date) (last store.Date, paid bool, millionths int64) {
	switch {
	case i.frequency == 0 || session < i.dated:
		return 0, false, 0
	case session >= i.maturity:
		return i.maturity, true, 0
	}
	previous, next := i.period(session)
	last = max(previous, i.dated)
	days := int64(session - last)
	switch i.count {
	case thirty360:
		return last, true, ratio(days360(last, session), 360)
	case actual360:
		return last, true, ratio(days, 360)
	case actual365:
		return last, true, ratio(days, 365)
	}
	return last, true, ratio(days, int64(next-previous)*int64(i.frequency))
}

// period returns the coupon dates around a session before the maturity: the last
// one at or before it and the first one after it.
//
// The coupon dates are counted back from the maturity and never forward from one another: a date
// that was cut short by a short month would otherwise shift all others. previous may lie before the
// dated date.
func (i *instrument) period(session store.Date) (previous, next store.Date) {
	step := months / i.frequency
	from, to := session.Time(), i.maturity.Time()
	apart := (to.Year()-from.Year())*months + int(to.Month()) - int(from.Month())
	back := apart / step * step // leads to a date of the session's month, or of a later one soon after
	previous = monthsBefore(i.maturity, back)
	for previous > session {
		back += step
		previous = monthsBefore(i.maturity, back)
	}
	next = monthsBefore(i.maturity, back-step)
	for next <= session {
		back -= step
		previous, next = next, monthsBefore(i.maturity, back-step)
	}
	return previous, next
}

// monthsBefore returns the day that many months before a maturity: the same day of the month. It is
// the month's last day where the month has no such day, or where the maturity is the last day of
// its month.
func monthsBefore(maturity store.Date, back int) store.Date {
	year, month, day := maturity.Time().Date()
	first := time.Date(year, month-time.Month(back), 1, 0, 0, 0, 0, time.UTC)
	end := daysIn(first.Year(), first.Month())
	if day == daysIn(year, month) {
		day = end
	}
	return store.DateOf(first.Year(), first.Month(), min(day, end))
}

// daysIn is the number of days in a month.
func daysIn(year int, month time.Month) int {
	return time.Date(year, month+1, 0, 0, 0, 0, 0, time.UTC).Day()
}

// days360 counts days in months of 30.
//
// The end of February is not treated as a 30th, as the bond basis asks.
func days360(from, to store.Date) int64 {
	y1, m1, d1 := from.Time().Date()
	y2, m2, d2 := to.Time().Date()
	d1 = min(d1, 30)
	if d1 == 30 {
		d2 = min(d2, 30)
	}
	return int64(360*(y2-y1) + 30*(int(m2)-int(m1)) + d2 - d1)
}

// ratio is part/of in millionths, half up.
//
// part is at least 0 and of above 0.
func ratio(part, of int64) int64 {
	const one = 1_000_000
	return (2*part*one + of) / (2 * of)
}
