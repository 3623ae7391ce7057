// Package riskextract makes the end-of-day extract for the risk system: the cut (every position and
// every OTC contract as of exactly one sequence), two CSV files for their readers, and the
// announcement of both.
//
//	marker at N ─► engine at exactly N ─► cut ─► seq-N.cut            every member
//	                                       │
//	  counterparties, instruments, marks ──┼─► stored beside it,      the leader, or the single node
//	                                       │   pinned by seq-N.sha256
//	                                       └─► seq-N.csv, seq-N-contracts.csv ─► announcement
//
// What holds:
//
//   - The cut depends on the marker and the engine's state at N alone: all members render the same
//     bytes and log the same cutSha256.
//   - The CSV files depend on the cut, the two reference files and the marks. All of them are
//     stored in the folder of the cut. Rebuild makes the CSV files again from that folder and
//     nothing else, byte for byte, and refuses (ErrMismatch) when any of it has changed. The first
//     rendering uses the same code: it reads the cut's text, not the engine.
//   - A stored file is never replaced. It is complete and on the disk before it has its name.
//   - The announcement comes after the files are durable. After a crash between any two steps a new
//     start repeats the remaining steps: the bytes are the same, and the announcement may come a
//     second time. One that was sent behind a refused marker is noted in the sink, because the
//     cursor waits for that marker: it is not repeated.
//   - The inputs that seq-N.sha256 pins do not change, whatever is published meanwhile. They are
//     pinned in the sink: a member with a sink of its own, or an installation that was restored
//     without it, pins what it finds, and the CSV files may differ. The cut does not.
//   - A value that cannot be stated exactly is not stated: ErrRefused names the account, the
//     security or the contract, and the marker stays open. It is tried again, because an operator
//     may complete a reference file and marks may still be published; later markers do not wait for
//     it.
//
// # Files
//
// In <sink>/<sessionDate>/v<priceVersion>, all ASCII with \n:
//
//	seq-<N>.cut                  schema 3
//	seq-<N>.csv                  positions, schema 3: one row per (account, security), flat ones too
//	seq-<N>-contracts.csv        contracts, schema 2: terms only
//	counterparties-<sha256>.csv  the reference files as they were read
//	instruments-<sha256>.csv
//	marks-<sha256>.csv           the marks published for the session, or that there were none
//	seq-<N>.sha256               the six above in the form of sha256sum(1); referenceSha256 of
//	                             the CSV files is the SHA-256 of its first three lines
//	seq-<N>.announced            the two artifacts in that form: they were announced while an earlier
//	                             marker was open. A start does not announce them again.
//
// The cut's contractMultiplier is the engine's own, which is 1: no command sets another. Its
// contractId is the number alone, as in a snapshot.
//
// # Numbers
//
// Prices, rates and averages are whole millionths. Products of a quantity, a price and a multiplier
// are exact in 128 bits; one that does not fit is ErrRefused. With a quantity q (negative = short),
// the engine's average cost a, the mark p and the multiplier m of the instruments file:
//
//	costBasis     = q x a x m
//	marketValue   = q x p x m
//	unrealizedPnl = marketValue - costBasis
//
// A bond's price is its clean price for one unit of quantity: m is what one point is worth (10 for
// a bond of 1,000 quoted in per cent). Accrued interest is not in marketValue. The mark is the
// published one (EOD_SNAPSHOT, with quality OFFICIAL when the publisher gave none), else the last
// trade at N (CLUSTER_LAST_TRADE_AT_N, quality INDICATIVE).
//
// The interest accrued on a unit of face value is coupon x accruedInterestFraction. The fraction is
// the day count fraction, in years, from the last coupon date to the session date. It is the only
// number here that is rounded: half up, to six decimals. Coupon dates are counted back from the
// maturity in whole months; a maturity at the end of a month gives ends of months. In the first
// period the dated date takes the place of the last coupon date. Day counts:
//
//	ACT/ACT   days / (days of the coupon period x coupons a year)   ICMA rule 251
//	30/360    30-day months                                         ISDA 2006, 4.16(f), bond basis
//	ACT/360   days / 360                                            ISDA 2006, 4.16(e)
//	ACT/365F  days / 365                                            ISDA 2006, 4.16(d)
//
// Nothing is accrued on a coupon date, from the maturity on, before the dated date, and for a bond
// without coupons.
//
// # Reference files
//
// CSV without quotes, \n, the exact header, no empty line:
//
//	accountId,counterpartyId,nettingSetId,currency
//	security,instrumentType,contractMultiplier,coupon,maturityDate,couponFrequency,datedDate,dayCount
//
// A security that the second does not list is an EQUITY with multiplier 1. EQUITY and ETF have
// multiplier 1 and no further term; OPTION has its multiplier and, as maturityDate, its expiry;
// TREASURY and CORPORATE have all terms, or coupon 0 and couponFrequency 0 without datedDate and
// dayCount. A coupon is a rate a year: 0.0425. Both files are read again for every extract.
//
// Run belongs to one goroutine. Any goroutine may call Extract and Wait.
package riskextract
