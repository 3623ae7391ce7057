//perf:hot

package timetext

// What four digits of a year can say. Other times are clipped.
const (
	earliest = -62167219200000 // 0000-01-01T00:00:00Z
	Latest   = 253402300799999 // 9999-12-31T23:59:59.999Z
)

// Append appends epoch milliseconds, such as 2026-11-28T09:30:00.000Z. It writes what time.Format
// would, without an allocation.
func Append(b []byte, millis int64) []byte {
	const dayMs = 86_400_000
	millis = min(max(millis, earliest), Latest)
	days := millis / dayMs
	rest := millis % dayMs
	if rest < 0 {
		days, rest = days-1, rest+dayMs
	}
	b = AppendDate(b, days)
	b = append2(append(b, 'T'), rest/3_600_000)
	b = append2(append(b, ':'), rest/60_000%60)
	b = append2(append(b, ':'), rest/1000%60)
	ms := rest % 1000
	return append(b, '.', byte('0'+ms/100), byte('0'+ms/10%10), byte('0'+ms%10), 'Z')
}

// Of is Append as a string.
func Of(millis int64) string { return string(Append(nil, millis)) }

// AppendDate appends an epoch day of a year from 0 to 9999, such as 2026-11-28.
func AppendDate(b []byte, days int64) []byte {
	year, month, day := Civil(days)
	b = append2(append2(b, year/100), year%100)
	b = append2(append(b, '-'), month)
	return append2(append(b, '-'), day)
}

// Civil is the date of an epoch day, with years that start in March (H. Hinnant's algorithm).
func Civil(days int64) (year, month, day int64) {
	days += 719468
	era := days / 146097
	if days < 0 {
		era = (days - 146096) / 146097
	}
	dayOfEra := days - era*146097
	yearOfEra := (dayOfEra - dayOfEra/1460 + dayOfEra/36524 - dayOfEra/146096) / 365
	dayOfYear := dayOfEra - (365*yearOfEra + yearOfEra/4 - yearOfEra/100)
	shifted := (5*dayOfYear + 2) / 153
	day = dayOfYear - (153*shifted+2)/5 + 1
	month = shifted + 3
	year = yearOfEra + era*400
	if month > 12 {
		month, year = month-12, year+1
	}
	return year, month, day
}

// append2 appends a number of 0 to 99 as two digits.
func append2(b []byte, n int64) []byte {
	return append(b, byte('0'+n/10), byte('0'+n%10))
}
