package matcher

// SnapshotFormat is the format that WriteSnapshot writes. ReadSnapshot also restores
// oldestSnapshotFormat and the formats between. A record type that came later appears only where an
// engine uses what it holds, so the bytes of an engine that does not use it stay what they were.
const (
	SnapshotFormat       = 6
	oldestSnapshotFormat = 4
)

// The record types of a snapshot. The numbers are stored; the next free one is 17. A record is an
// i32 type and then i64 columns, all little endian; recordColumns has their number. The file has
// the records in the order of place (restore.go), not of these numbers.
const (
	// Format i32, then i64: next order number, highest number issued, applied inputSeq, last tradeSeq;
	// book levels i32 (0); tick of the grid i64.
	recordHeader = 1
	// See orderRow: number, account, security, side, quantity, leaves, limit price, status, price and
	// quantity of the last fill, created, updated, reason, reserved notional, reserved quantity.
	recordOrder = 2
	// Account, security, quantity (negative = short), average cost x 1e6.
	recordPosition = 3
	// Security, price of the last fill x 1e6.
	recordPrice = 4
	// No column. What follows it is an error.
	recordEnd = 5
	// Version, kill switch, maximum position, maximum concentration x 1e6.
	recordPolicy = 6
	// Id, enabled, cash executed x 1e6.
	recordAccount = 7
	// Id, enabled (bit 1: halted), restricted, market price, its event time, multiplier.
	recordSecurity = 8
	// Key, reference, decision in the bits of remembered.decision.
	recordIdempotency = 9
	// Id u32, length u32, ticker in ASCII. The only record besides the header with a shape of its own.
	recordSymbol = 10
	// Security, base level (0).
	recordBook = 11
	// The fields of contract: id, account, payFixed, notional, rate, convention, effective, maturity,
	// product, expiry, style.
	recordContract   = 12
	recordCapacity   = 13 // only where capacities are not those of the genesis record
	recordLimits     = 14 // only where limits are not those of the genesis and POLICY records
	recordRevocation = 15 // only of subjects whose tokens are refused
	recordOrderRoom  = 16 // only where the room for orders is not that of the genesis record
)

// recordColumns is how many i64 columns follow the i32 type of a record. The header and the symbol
// have their own shapes, and a contract of format 5 has contractColumns5.
var recordColumns = [...]int{
	recordOrder: 15, recordPosition: 4, recordPrice: 2, recordEnd: 0, recordPolicy: 4,
	recordAccount: 3, recordSecurity: 6, recordIdempotency: 3, recordBook: 2, recordContract: 11,
	recordCapacity: 3, recordLimits: 13, recordRevocation: 3, recordOrderRoom: 3,
}

// The header's whole length with its type, the columns of a contract of format 5, and the largest
// number of columns: an ORDER record's.
const (
	headerBytes      = 52
	contractColumns5 = 8
	maxColumns       = 15
)
