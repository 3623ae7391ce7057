package client

import "time"

// ReconStatus is the reconciliation's summary. Times are zero before the first.
type ReconStatus struct {
	// Cursor is the number of entries, fills of the journal, that have a class; Lag is how many
	// durable ones have none yet.
	Cursor uint64 `json:"cursor"`
	// The next four are the present tallies by class. They fall when a break closes.
	Matched             uint64 `json:"matched"`
	MissingInProjection uint64 `json:"missingInProjection"`
	FieldMismatch       uint64 `json:"fieldMismatch"`
	Orphans             uint64 `json:"orphans"`
	Lag                 uint64 `json:"lag"`
	// External is the number of bookings from outside. ExternalUnmatched are those that no line of a
	// statement confirms, and lines without a booking.
	External          uint64    `json:"external"`
	ExternalUnmatched uint64    `json:"externalUnmatched"`
	LastSweepAt       time.Time `json:"lastSweepAt"`
	LastOrphanSweepAt time.Time `json:"lastOrphanSweepAt"`
}

// StatedTrade is what every side of a break knows of a trade.
type StatedTrade struct {
	AccountID uint32    `json:"accountId"`
	Security  string    `json:"security"`
	Side      Side      `json:"side"`
	Quantity  int64     `json:"quantity"`
	Price     Price     `json:"price"`
	Timestamp time.Time `json:"timestamp"`
}

// BreakTrade is one side of a break. Its own members are zero where the side does not determine
// them.
type BreakTrade struct {
	StatedTrade
	Status         string    `json:"status"`
	SettlementDate string    `json:"settlementDate"`
	OrderID        string    `json:"orderId"`
	Sequence       uint64    `json:"sequence"`
	BookedAt       time.Time `json:"bookedAt"`
	UpdatedAt      time.Time `json:"updatedAt"`
}

// Break is an open difference between the journal and the projection.
//
// Class is MISSING_IN_PROJECTION, FIELD_MISMATCH, ORPHAN_IN_PROJECTION or EXTERNAL. A break that
// has closed is not listed any more.
type Break struct {
	Class    string `json:"class"`
	TradeID  string `json:"tradeId"`
	TradeSeq uint64 `json:"tradeSeq"` // 0 for EXTERNAL
	// Fields are the names of the members that differ; only FIELD_MISMATCH and EXTERNAL have some.
	Fields      []string     `json:"fields"`
	Journal     *BreakTrade  `json:"journal"`    // nil for an orphan, and for EXTERNAL
	Projection  *BreakTrade  `json:"projection"` // nil for a missing trade
	Statement   *StatedTrade `json:"statement"`  // of EXTERNAL: nil when no line has the id
	FirstSeenAt time.Time    `json:"firstSeenAt"`
	LastSeenAt  time.Time    `json:"lastSeenAt"`
}

// BreakPage is a page of breaks; NextCursor "" is the last one.
type BreakPage struct {
	Items      []Break `json:"items"`
	NextCursor string  `json:"nextCursor"`
}

// OrphanSweep is what an orphan sweep found.
//
// LocalTradeCount is the number of rows that were judged: rows newer than the index are left to the
// running reconciliation. OrphanIDs lists the first orphans; Truncated says that OrphanCount is
// larger.
type OrphanSweep struct {
	SweptAt               time.Time `json:"sweptAt"`
	LocalTradeCount       uint64    `json:"localTradeCount"`
	FullHistoryTradeCount uint64    `json:"fullHistoryTradeCount"`
	OrphanCount           uint64    `json:"orphanCount"`
	OrphanIDs             []string  `json:"orphanIds"`
	Truncated             bool      `json:"truncated"`
}

// RepairQuery asks for the rows of the trades From..To, both inclusive.
type RepairQuery struct {
	// From and To are trd-N. The range has at most 10,000,000 trades and ends at or below the last
	// durable one.
	From   string `json:"from"`
	To     string `json:"to"`
	DryRun bool   `json:"dryRun"` // compares, and changes nothing
}

// RepairedRow is a trade row as it was, or as it is now.
//
// Sequence is the inputSeq of the trade's command. A SettlementDate is as the row had it, also when
// it is no date.
type RepairedRow struct {
	TradeRow
	Sequence uint64    `json:"sequence"`
	BookedAt time.Time `json:"bookedAt"`
}

// RepairItem is a trade whose row was made again. Was is nil when there was none.
type RepairItem struct {
	TradeID string `json:"tradeId"`
	// Fields are the names of the columns that differed.
	Fields []string     `json:"fields"`
	Was    *RepairedRow `json:"was"`
	Now    RepairedRow  `json:"now"`
}

// Repair is what a repair did, or would do.
type Repair struct {
	RepairID uint64 `json:"repairId"` // 0 of a dry run
	From     string `json:"from"`
	To       string `json:"to"`
	DryRun   bool   `json:"dryRun"`
	// Checked is the sum of Matched and Repaired.
	Checked   uint64       `json:"checked"`
	Matched   uint64       `json:"matched"`
	Repaired  uint64       `json:"repaired"`
	Pending   uint64       `json:"pending"` // the projection has not reached these trades
	Items     []RepairItem `json:"items"`
	Truncated bool         `json:"truncated"` // more were repaired than Items lists
}

// StatementLine is one booking from outside as the party that made it states it.
//
// ID is that of the booking: ext- and 1 to 60 of A-Z a-z 0-9 . _ -. Timestamp is whole in
// milliseconds.
type StatementLine struct {
	ID        string    `json:"id"` // ext-...
	AccountID uint32    `json:"accountId"`
	Security  string    `json:"security"`
	Side      Side      `json:"side"`
	Quantity  int64     `json:"quantity"`
	Price     Price     `json:"price"`
	Timestamp time.Time `json:"timestamp"`
}

// Statement is how the lines compare with the bookings.
//
// Missing counts the lines without a booking, Differing those whose booking says something else.
type Statement struct {
	Accepted  uint64 `json:"accepted"`
	Matched   uint64 `json:"matched"`
	Differing uint64 `json:"differing"`
	Missing   uint64 `json:"missing"`
}
