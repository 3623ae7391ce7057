package matcher

// Convention is a set of market conventions that a swap is booked under. The name fixes all four
// terms; this package computes with none of them. Records carry its index in place of the names.
type Convention struct {
	Name             string
	FloatIndex       string
	PaymentFrequency string
	DayCount         string
	Currency         string
}

// conventions is the compile-time table behind the index that a booking, a snapshot and a cut carry
// in place of the names. An index is stored permanently and means the same on every member. So
// entries are appended at the end and never changed, moved or removed.
var conventions = [...]Convention{
	{"USD-SOFR-1Y-ACT360", "USD-SOFR", "1Y", "ACT/360", "USD"},
	{"USD-SOFR-3M-ACT360", "USD-SOFR", "3M", "ACT/360", "USD"},
	{"EUR-ESTR-1Y-ACT360", "EUR-ESTR", "1Y", "ACT/360", "EUR"},
	{"GBP-SONIA-1Y-ACT365F", "GBP-SONIA", "1Y", "ACT/365F", "GBP"},
	{"JPY-TONA-1Y-ACT365F", "JPY-TONA", "1Y", "ACT/365F", "JPY"},
}

// noConvention is an index that is never assigned. The eight bits of a swaption's column can hold
// it, and the compile-time check below keeps the table shorter than it.
const noConvention = 255

var _ [noConvention - len(conventions)]struct{}

// ConventionAt returns the convention of an index, false for an index that this build does not
// know: a record can hold one, because another build may have written it. There is no default: a
// reader that gets false stops.
func ConventionAt(index uint32) (Convention, bool) {
	if index >= uint32(len(conventions)) {
		return Convention{}, false
	}
	return conventions[index], true
}

// ConventionIndex returns the index of a name in its exact case, false for a
// name that this build does not know. No allocation.
func ConventionIndex(name []byte) (index uint32, ok bool) {
	for i := range conventions {
		if conventions[i].Name == string(name) {
			return uint32(i), true
		}
	}
	return 0, false
}

// ExerciseStyle states when a swaption may be exercised. It is only a term: this package exercises
// nothing. The number is stored, in eight bits of a booking and in a column of a snapshot.
type ExerciseStyle uint8

// The styles, in the order of their numbers.
const (
	European ExerciseStyle = 0
	Bermudan ExerciseStyle = 1
	American ExerciseStyle = 2
)

var styleNames = [...]string{"European", "Bermudan", "American"}

// String returns the name that JSON carries, "UNKNOWN" for a style that this
// build does not know; test that with Known.
func (s ExerciseStyle) String() string {
	if s.Known() {
		return styleNames[s]
	}
	return "UNKNOWN"
}

// Known reports whether this build knows the style.
func (s ExerciseStyle) Known() bool { return int(s) < len(styleNames) }

// ParseExerciseStyle returns the style of a name in its exact case, false for any other text. No
// allocation.
func ParseExerciseStyle(name []byte) (style ExerciseStyle, ok bool) {
	for i := range styleNames {
		if styleNames[i] == string(name) {
			return ExerciseStyle(i), true
		}
	}
	return 0, false
}
