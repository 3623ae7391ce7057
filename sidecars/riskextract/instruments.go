package riskextract

import (
	"fmt"
	"math"

	"posttrade/sidecars/store"
)

// instrument is the description of a security.
//
// The zero fields of a kind are those that its lines leave empty.
type instrument struct {
	kind       kind
	multiplier uint32
	coupon     int64      // bonds: per year, x 1e6
	maturity   store.Date // bonds; an option's expiry
	frequency  int        // bonds: coupons per year; 0: none
	dated      store.Date // bonds with coupons: where the first period starts
	count      dayCount   // bonds with coupons
}

// kind is an instrument's type.
type kind uint8

const (
	equity kind = iota
	etf
	treasury
	corporate
	option
)

var kindNames = []string{"EQUITY", "ETF", "TREASURY", "CORPORATE", "OPTION"}

func (k kind) bond() bool { return k == treasury || k == corporate }

// hasMaturity reports whether the instrument ends on a day.
func (k kind) hasMaturity() bool { return k.bond() || k == option }

// share describes every security that the file does not list.
var share = instrument{kind: equity, multiplier: 1}

// instrumentsHeader is the first line of the file, exactly.
const instrumentsHeader = "security,instrumentType,contractMultiplier,coupon,maturityDate," +
	"couponFrequency,datedDate,dayCount"

// The columns of the instruments file.
const (
	columnSecurity = iota
	columnType
	columnMultiplier
	columnCoupon
	columnMaturity
	columnFrequency
	columnDated
	columnDayCount
)

// addInstrument adds a line of the instruments.
//
// A column that does not apply to the type must be empty: a term in the wrong line is refused and
// not ignored.
func (r *Reference) addInstrument(columns []string) error {
	security := columns[columnSecurity]
	if !plainTicker(security) {
		return fmt.Errorf("security=%q: %w", security, errValue)
	}
	if _, there := r.instruments[security]; there {
		return fmt.Errorf("security=%s %w", security, errTwice)
	}
	which, err := member("instrumentType", columns[columnType], kindNames)
	if err != nil {
		return err
	}
	i := instrument{kind: kind(which)}
	most := uint64(math.MaxUint32)
	if i.kind == equity || i.kind == etf {
		most = 1
	}
	multiplier, err := whole("contractMultiplier", columns[columnMultiplier], 1, most)
	if err != nil {
		return err
	}
	i.multiplier = uint32(multiplier)
	unused := columns[columnCoupon:]
	if i.kind.hasMaturity() {
		if i.maturity, err = day("maturityDate", columns[columnMaturity]); err != nil {
			return err
		}
		if i.kind.bond() {
			unused, err = i.readCoupons(columns)
		} else {
			unused = append([]string{columns[columnCoupon]}, columns[columnFrequency:]...)
		}
		if err != nil {
			return err
		}
	}
	for _, text := range unused {
		if text != "" {
			return fmt.Errorf("%q is no term of a security of type %s: %w", text,
				kindNames[i.kind], errValue)
		}
	}
	r.instruments[security] = i
	return nil
}

// readCoupons reads the columns that only bonds have and returns the columns that must be empty.
//
// The number of coupons a year must divide twelve, so that coupon dates are whole months apart.
// Coupon and frequency are both 0 or both above.
func (i *instrument) readCoupons(columns []string) (unused []string, err error) {
	if i.coupon, err = decimal("coupon", columns[columnCoupon]); err != nil {
		return nil, err
	}
	frequency, err := whole("couponFrequency", columns[columnFrequency], 0, months)
	if err != nil {
		return nil, err
	}
	if frequency > 0 && months%frequency != 0 || (frequency == 0) != (i.coupon == 0) {
		return nil, fmt.Errorf("couponFrequency=%d with coupon=%s: %w", frequency,
			columns[columnCoupon], errValue)
	}
	i.frequency = int(frequency)
	if frequency == 0 {
		return columns[columnDated:], nil
	}
	if i.dated, err = day("datedDate", columns[columnDated]); err != nil {
		return nil, err
	}
	if i.dated >= i.maturity {
		return nil, fmt.Errorf("datedDate=%s is not before the maturity: %w", i.dated, errValue)
	}
	which, err := member("dayCount", columns[columnDayCount], dayCountNames)
	i.count = dayCount(which)
	return nil, err
}

// instrument returns the description of a security.
func (r *Reference) instrument(security string) instrument {
	if i, listed := r.instruments[security]; listed {
		return i
	}
	return share
}
