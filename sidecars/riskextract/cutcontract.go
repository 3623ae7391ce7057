package riskextract

import (
	"strconv"

	"posttrade/matcher"
)

// checkContract refuses terms that this build cannot read.
//
// last is the id of the contract before it, 0 for none: ids must ascend.
func checkContract(c *matcher.ContractInfo, last uint64) error {
	_, known := matcher.ConventionAt(c.Convention)
	switch {
	case c.ID <= last:
		return refuse("contract id=%d is not above %d", c.ID, last)
	case !known:
		return refuse("contract id=%d has conventionIndex=%d, which this build does not know",
			c.ID, c.Convention)
	case !c.Style.Known():
		return refuse("contract id=%d has exerciseStyle=%d, which this build does not know",
			c.ID, c.Style)
	case c.Side > matcher.Sell:
		return refuse("contract id=%d has side=%d", c.ID, c.Side)
	case c.Notional < 1:
		return refuse("contract id=%d has notional=%d", c.ID, c.Notional)
	}
	return nil
}

// appendContract appends a line of cutTerms. Days are days since 1970, the rate is in millionths.
func appendContract(b []byte, c *matcher.ContractInfo) []byte {
	product := uint64(0)
	if c.Swaption {
		product = 1
	}
	b = append(strconv.AppendUint(b, c.ID, 10), ',')
	b = append(strconv.AppendUint(b, uint64(c.AccountID), 10), ',')
	b = append(strconv.AppendUint(b, uint64(c.Side), 10), ',') // Sell pays
	b = append(strconv.AppendInt(b, int64(c.Notional), 10), ',')
	b = append(strconv.AppendInt(b, c.FixedRate, 10), ',')
	b = append(strconv.AppendUint(b, uint64(c.Convention), 10), ',')
	b = append(strconv.AppendUint(b, uint64(c.Effective), 10), ',')
	b = append(strconv.AppendUint(b, uint64(c.Maturity), 10), ',')
	b = append(strconv.AppendUint(b, product, 10), ',')
	b = append(strconv.AppendUint(b, uint64(c.Expiry), 10), ',')
	return append(strconv.AppendUint(b, uint64(c.Style), 10), '\n')
}
