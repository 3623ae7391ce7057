package riskextract

import (
	"strconv"

	"posttrade/ring"
)

// artifacts are the two files, rendered.
//
// They are whole in memory, because their sums are compared before a byte of them is stored.
type artifacts struct {
	positions, contracts []byte
}

// inputs are the inputs of the rendering beside the cut.
//
// One goroutine uses it. The texts of the inputs are kept, because they are stored beside the cut.
type inputs struct {
	reference *Reference
	marks     markSet

	breath ring.Breather // of the rendering under way
}

// The names of the files in their first line.
const (
	positionsName = "risk-positions"
	contractsName = "risk-contracts"
)

// The lines that explain the columns. They follow the lines with numbers.
const (
	positionsNotes = `# encoding=ASCII, lines end with \n, no quotes, an empty column does not apply
# quantity=signed: positive is long, negative is short, 0 is flat and listed too
# netting=one row for each account and security, the net of all its fills up to consensusSequence
# amounts=six decimals, exact, in the currency column
# valuation=none beyond closingMark: no model, no curve, no conversion between currencies
# costBasis=quantity x running average cost x contractMultiplier
# closingMark=EOD_SNAPSHOT is published for sessionDate and priceVersion, ` +
		`CLUSTER_LAST_TRADE_AT_N is the last trade
# marketValue=quantity x closingMark x contractMultiplier, without accrued interest
# unrealizedPnl=marketValue - costBasis
# coupon=rate a year: 0.042500 is 4.25 per cent
# maturityDate=of an option its expiry
# accruedInterestFraction=years since lastCouponDate by the day count, half up: interest of a ` +
		`face is face x coupon x this
`
	positionsColumns = "accountId,security,instrumentType,quantity,contractMultiplier,costBasis," +
		"closingMark,markSource," +
		"markQuality,marketValue,unrealizedPnl,currency,counterpartyId,nettingSetId,coupon," +
		"maturityDate," +
		"lastCouponDate,accruedInterestFraction\n"

	contractsNotes = `# encoding=ASCII, lines end with \n, no quotes, an empty column does not apply
# payReceive=of the account: PAY_FIXED pays fixedRate and receives floatIndex, RECEIVE_FIXED ` +
		`the reverse
# notional=whole units of the currency column, never negative
# fixedRate=rate a year, six decimals, exact: 0.042000 is 4.2 per cent
# netting=none: one row for each contract
# valuation=none: terms only
# exercise=none: exerciseStyle is a term, nothing is ever exercised
`
	contractsColumns = "contractId,accountId,payReceive,notional,fixedRate,floatIndex,effectiveDate," +
		"maturityDate," +
		"paymentFrequency,dayCount,currency,counterpartyId,nettingSetId,productType,expiryDate," +
		"exerciseStyle\n"
)

// render makes the two files of a cut. No other function makes them.
//
// Each file begins with comment lines (#): name, schema, sequence, session, version and sums, then
// the notes above. Its bytes depend on the arguments alone: no time, no path and no map order is in
// them. An error is ErrRefused.
func render(cut *cutRows, cutSHA256 string, in *inputs, referenceSHA256 string) (artifacts, error) {
	head := func(b []byte, name string, schema, rows int) []byte {
		b = append(append(append(b, "# name="...), name...), '\n')
		b = append(strconv.AppendInt(append(b, "# schema="...), int64(schema), 10), '\n')
		b = append(strconv.AppendUint(append(b, "# consensusSequence="...), cut.Seq, 10), '\n')
		b = append(append(append(b, "# sessionDate="...), cut.SessionDate.String()...), '\n')
		b = append(strconv.AppendUint(append(b, "# priceVersion="...), uint64(cut.PriceVersion), 10),
			'\n')
		b = append(append(append(b, "# cutSha256="...), cutSHA256...), '\n')
		b = append(append(append(b, "# referenceSha256="...), referenceSHA256...), '\n')
		return append(strconv.AppendInt(append(b, "# rows="...), int64(rows), 10), '\n')
	}
	const headBytes, rowBytes = 2048, 200 // approximate
	positions := make([]byte, 0, headBytes+rowBytes*len(cut.positions))
	positions = head(positions, positionsName, PositionsSchema, len(cut.positions))
	positions = append(append(positions, positionsNotes...), positionsColumns...)
	var err error
	in.breath = ring.NewBreather()
	for i := range cut.positions {
		in.breath.Step(rowsPerBreath)
		if positions, err = in.appendPosition(positions, &cut.positions[i], cut.SessionDate); err != nil {
			return artifacts{}, err
		}
	}
	contracts := make([]byte, 0, headBytes+rowBytes*len(cut.contracts))
	contracts = head(contracts, contractsName, ContractsSchema, len(cut.contracts))
	contracts = append(append(contracts, contractsNotes...), contractsColumns...)
	for i := range cut.contracts {
		in.breath.Step(rowsPerBreath)
		if contracts, err = in.appendContract(contracts, &cut.contracts[i]); err != nil {
			return artifacts{}, err
		}
	}
	return artifacts{positions: positions, contracts: contracts}, nil
}
