//perf:hot

package httpapi

import (
	"math/bits"

	"posttrade/matcher"
	"posttrade/matcher/timetext"
)

// contractRequest is a decoded booking of a swap or a swaption. clientID points into the request's
// body.
//
// It is part of the exchange, and set anew for each booking.
type contractRequest struct {
	clientID []byte
	terms    matcher.ContractTerms
}

// The required members of a booking, as bits, in the order in which missing ones are named. A swap
// has all but the last two.
const (
	termAccount uint16 = 1 << iota
	termDirection
	termNotional
	termRate
	termEffective
	termMaturity
	termConventions
	termExpiry
	termStyle

	swapTerms     = termExpiry - 1
	swaptionTerms = termStyle<<1 - 1
)

// termNames are the names of the terms, in the order of their bits. It is constant.
var termNames = [...]string{
	"accountId", "payReceive", "notional", "fixedRate", "effectiveDate", "maturityDate", "conventions",
	"expiryDate", "exerciseStyle",
}

// contract reads the body of POST /swaps or, with its two more terms, of POST /swaptions. It
// accepts every contract that the record can carry; the gate decides whether it may be booked.
//
// The first missing term is named, in the order of termNames. A term that a swap does not have is
// an unknown member there.
func (d *decoder) contract(c *contractRequest, swaption bool) {
	*c = contractRequest{}
	t, saw, needed := &c.terms, uint16(0), swapTerms
	if swaption {
		t.Swaption, needed = true, swaptionTerms
	}
	for key := range d.members {
		term := uint16(0)
		switch string(key) {
		case "clientOrderId":
			c.clientID = d.clientID()
			continue
		case "accountId":
			t.AccountID, term = d.accountID(), termAccount
		case "payReceive":
			t.Side, term = d.sideOf("payReceive", "receive", "pay"), termDirection
		case "notional":
			t.Notional, term = d.quantity(), termNotional
			d.field = "notional"
		case "fixedRate":
			t.FixedRate, term = d.rate(), termRate
		case "effectiveDate":
			t.Effective, term = d.day("effectiveDate"), termEffective
		case "maturityDate":
			t.Maturity, term = d.day("maturityDate"), termMaturity
		case "conventions":
			t.Convention, term = d.conventions(), termConventions
		case "expiryDate":
			term = termExpiry
			if swaption {
				t.Expiry = d.day("expiryDate")
			}
		case "exerciseStyle":
			term = termStyle
			if swaption {
				t.Style = d.style()
			}
		}
		if saw |= term; term&needed == 0 {
			d.unknown(key)
		}
	}
	switch lacks := needed &^ saw; {
	case d.json.Err() != nil:
	case lacks != 0:
		d.require(termNames[bits.TrailingZeros16(lacks)], false)
	case t.Maturity <= t.Effective:
		d.field = "maturityDate"
		d.fail(errMaturity)
	case swaption && t.Expiry > t.Effective:
		d.field = "expiryDate"
		d.fail(errExpiry)
	}
}

// rate reads a fixed rate in millionths. A negative rate is valid.
func (d *decoder) rate() int64 {
	d.field = "fixedRate"
	rate := d.json.Decimal()
	if rate == 0 {
		d.fail(errZeroRate) // input that cannot be read keeps its own error
	}
	return rate
}

// conventions reads the name of a set of conventions, in its exact case, and returns the index that
// a record carries.
func (d *decoder) conventions() uint32 {
	d.field = "conventions"
	index, ok := matcher.ConventionIndex(d.json.String())
	if !ok {
		d.fail(errConvention)
	}
	return index
}

func (d *decoder) style() matcher.ExerciseStyle {
	d.field = "exerciseStyle"
	style, ok := matcher.ParseExerciseStyle(d.json.String())
	if !ok {
		d.fail(errChoice)
	}
	return style
}

// day reads a date that a record can carry: an epoch day of 16 bits. The last one is 2149-06-06.
func (d *decoder) day(field string) uint16 {
	d.field = field
	day, ok := parseDay(d.json.String())
	if !ok {
		d.fail(errDate)
	}
	return day
}

// parseDay reads yyyy-MM-dd, exactly, of 1970-01-01 to 2149-06-06.
//
// A day that its month does not have is refused: 2026-02-30 is no date.
func parseDay(text []byte) (day uint16, ok bool) {
	if len(text) != len("yyyy-MM-dd") || text[4] != '-' || text[7] != '-' {
		return 0, false
	}
	var parts [3]int64
	for part, span := range [3][2]int{{0, 4}, {5, 7}, {8, 10}} {
		for _, ch := range text[span[0]:span[1]] {
			if ch < '0' || ch > '9' {
				return 0, false
			}
			parts[part] = parts[part]*10 + int64(ch-'0')
		}
	}
	year, month, date := parts[0], parts[1], parts[2]
	if year < 1970 || month < 1 || month > 12 || date < 1 {
		return 0, false
	}
	days := daysOf(year, month, date)
	// Civil normalises a date that the month does not have to a date of the next month.
	if y, m, d := timetext.Civil(days); y != year || m != month || d != date || days > 1<<16-1 {
		return 0, false
	}
	return uint16(days), true
}

// daysOf is the epoch day of a date, the inverse of timetext.Civil. It takes years of 0 and later.
//
// The constant 719468 is the epoch day of 0000-03-01, with the sign turned: the algorithm counts
// from that day.
func daysOf(year, month, date int64) int64 {
	if month -= 3; month < 0 { // in years that start in March the leap day is the last day
		month, year = month+12, year-1
	}
	era, yearOfEra := year/400, year%400
	return era*146097 + yearOfEra*365 + yearOfEra/4 - yearOfEra/100 + (153*month+2)/5 +
		date - 1 - 719468
}

// command builds the record of a booking, without its idempotency key.
func (c *contractRequest) command(timeMillis int64) matcher.Command {
	cmd := c.terms.Command()
	cmd.EventTimeMillis = timeMillis
	return cmd
}

// appendContractID appends a contract's id as a JSON string.
func appendContractID(b []byte, swaption bool, id uint64) []byte {
	if swaption {
		b = append(b, `"SWPT-`...)
	} else {
		b = append(b, `"SW-`...)
	}
	return append(appendUint(b, id), '"')
}

// appendDay appends an epoch day as a JSON string, yyyy-MM-dd.
func appendDay(b []byte, day uint16) []byte {
	return append(timetext.AppendDate(append(b, '"'), int64(day)), '"')
}
