package riskextract

import (
	"strconv"
	"strings"

	"posttrade/matcher"
	"posttrade/matcher/int128"
	"posttrade/sidecars/store"
)

// appendPosition appends a line of the positions file.
//
// The columns are those of positionsColumns. ErrRefused for an account without a counterparty, a
// security without a price, a multiplier that contradicts the cut, and an amount beyond 128 bits.
func (in *inputs) appendPosition(b []byte, p *position, session store.Date) ([]byte, error) {
	party, err := in.reference.counterparty(p.account)
	if err != nil {
		return nil, err
	}
	is := in.reference.instrument(p.security)
	if p.multiplier != engineMultiplier && p.multiplier != is.multiplier {
		return nil, refuse("security=%s has contractMultiplier=%d in the cut and %d in the instruments",
			p.security, p.multiplier, is.multiplier)
	}
	mark, source, quality, err := in.marks.closing(p)
	if err != nil {
		return nil, err
	}
	cost, fits1 := int128.Product(p.quantity, p.average).Times(is.multiplier)
	value, fits2 := int128.Product(p.quantity, mark).Times(is.multiplier)
	profit, fits3 := value.Difference(cost)
	if !fits1 || !fits2 || !fits3 {
		return nil, refuse("accountId=%d security=%s: an amount does not fit 128 bits",
			p.account, p.security)
	}
	b = append(strconv.AppendUint(b, uint64(p.account), 10), ',')
	b = append(append(b, p.security...), ',')
	b = append(append(b, kindNames[is.kind]...), ',')
	b = append(strconv.AppendInt(b, p.quantity, 10), ',')
	b = append(strconv.AppendUint(b, uint64(is.multiplier), 10), ',')
	b = append(appendMillionths(b, cost), ',')
	b = append(appendDecimal(b, mark), ',')
	b = append(append(b, source...), ',')
	b = append(append(b, quality...), ',')
	b = append(appendMillionths(b, value), ',')
	b = append(appendMillionths(b, profit), ',')
	b = append(append(b, party.currency...), ',')
	b = append(append(b, party.id...), ',')
	b = append(append(b, party.nettingSet...), ',')
	return is.appendTerms(b, session), nil
}

// appendTerms appends coupon, maturity, last coupon date and accrued fraction.
//
// It ends the line. Columns that do not apply are empty.
func (i *instrument) appendTerms(b []byte, session store.Date) []byte {
	if !i.kind.hasMaturity() {
		return append(b, ",,,\n"...)
	}
	if !i.kind.bond() {
		b = append(append(b, ','), i.maturity.String()...)
		return append(b, ",,\n"...)
	}
	b = append(appendDecimal(b, i.coupon), ',')
	b = append(append(b, i.maturity.String()...), ',')
	last, paid, fraction := i.accrued(session)
	if paid {
		b = append(b, last.String()...)
	}
	return append(appendDecimal(append(b, ','), fraction), '\n')
}

// appendContract appends a line of the contracts file. The terms were checked with the cut.
//
// The columns are those of contractsColumns. The contract's id has its prefix here, as clients know
// it.
func (in *inputs) appendContract(b []byte, c *matcher.ContractInfo) ([]byte, error) {
	party, err := in.reference.counterparty(c.AccountID)
	if err != nil {
		return nil, err
	}
	terms, known := matcher.ConventionAt(c.Convention)
	if !known {
		return nil, refuse("contract id=%d has conventionIndex=%d, which this build does not know",
			c.ID, c.Convention)
	}
	direction, product := "RECEIVE_FIXED", "SWAP"
	if c.Side == matcher.Sell {
		direction = "PAY_FIXED"
	}
	if c.Swaption {
		product = "SWAPTION"
	}
	b = append(append(b, matcher.ContractID(c.Swaption, c.ID)...), ',')
	b = append(strconv.AppendUint(b, uint64(c.AccountID), 10), ',')
	b = append(append(b, direction...), ',')
	b = append(strconv.AppendInt(b, int64(c.Notional), 10), ',')
	b = append(appendDecimal(b, c.FixedRate), ',')
	b = append(append(b, terms.FloatIndex...), ',')
	b = append(append(b, store.Date(c.Effective).String()...), ',')
	b = append(append(b, store.Date(c.Maturity).String()...), ',')
	b = append(append(b, terms.PaymentFrequency...), ',')
	b = append(append(b, terms.DayCount...), ',')
	b = append(append(b, terms.Currency...), ',')
	b = append(append(b, party.id...), ',')
	b = append(append(b, party.nettingSet...), ',')
	b = append(append(b, product...), ',')
	if !c.Swaption {
		return append(b, ",\n"...), nil
	}
	b = append(append(b, store.Date(c.Expiry).String()...), ',')
	return append(append(b, strings.ToUpper(c.Style.String())...), '\n'), nil
}
