package client

import "time"

// TokenRequest is the content of a development token.
type TokenRequest struct {
	Subject    string   `json:"subject"`
	Accounts   []uint32 `json:"accounts"`
	Admin      bool     `json:"admin"`
	TTLSeconds int      `json:"ttlSeconds"`
}

// Token is a minted token.
type Token struct {
	Token     string    `json:"token"`
	TokenType string    `json:"tokenType"`
	ExpiresAt time.Time `json:"expiresAt"`
}

// Revoked says which tokens of a subject are refused.
type Revoked struct {
	Applied    bool      `json:"applied"`
	Subject    string    `json:"subject"`
	IssuedUpTo time.Time `json:"issuedUpTo"`
	Sequence   uint64    `json:"sequence"`
}

// TradesQuery selects trade rows. Zero members do not select.
type TradesQuery struct {
	AccountID      *uint32
	Security       string
	Status         string    // Processing or Settled
	SettlementDate string    // yyyy-MM-dd
	TradeDate      string    // yyyy-MM-dd, a day of the settlement's time zone
	From, To       time.Time // executed in [From, To)
	Limit          int
	Cursor         string
}

// TradeRow is a row of the projection.
type TradeRow struct {
	ID             string    `json:"id"`
	TradeSeq       uint64    `json:"tradeSeq"` // 0 of a booking from outside
	AccountID      uint32    `json:"accountId"`
	Security       string    `json:"security"`
	Side           Side      `json:"side"`
	Quantity       int64     `json:"quantity"`
	Price          Price     `json:"price"`
	Status         string    `json:"status"`
	SettlementDate string    `json:"settlementDate"`
	Timestamp      time.Time `json:"timestamp"`
	OrderID        string    `json:"orderId"`
	UpdatedAt      time.Time `json:"updatedAt"`
}

// TradePage is a page of trade rows; NextCursor "" is the last one.
type TradePage struct {
	Items      []TradeRow `json:"items"`
	NextCursor string     `json:"nextCursor"`
}

// SettlementCalendar has the dates with trades, ascending.
type SettlementCalendar struct {
	Items []SettlementDay `json:"items"`
}

// SettlementDay counts the trades of one settlement date: those that are due, those that the sweep
// has settled, and those that were settled by hand.
type SettlementDay struct {
	SettlementDate string `json:"settlementDate"`
	Due            int64  `json:"due"`
	Settled        int64  `json:"settled"`
	Forced         int64  `json:"forced"`
}

// ReconStatus is the reconciliation's summary. Times are zero before the first.
type ReconStatus struct {
	Cursor              uint64    `json:"cursor"`
	Matched             uint64    `json:"matched"`
	MissingInProjection uint64    `json:"missingInProjection"`
	FieldMismatch       uint64    `json:"fieldMismatch"`
	Orphans             uint64    `json:"orphans"`
	Lag                 uint64    `json:"lag"`
	External            uint64    `json:"external"` // bookings from outside
	ExternalUnmatched   uint64    `json:"externalUnmatched"`
	LastSweepAt         time.Time `json:"lastSweepAt"`
	LastOrphanSweepAt   time.Time `json:"lastOrphanSweepAt"`
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
type Break struct {
	Class       string       `json:"class"`
	TradeID     string       `json:"tradeId"`
	TradeSeq    uint64       `json:"tradeSeq"` // 0 for EXTERNAL
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
type OrphanSweep struct {
	SweptAt               time.Time `json:"sweptAt"`
	LocalTradeCount       uint64    `json:"localTradeCount"`
	FullHistoryTradeCount uint64    `json:"fullHistoryTradeCount"`
	OrphanCount           uint64    `json:"orphanCount"`
	OrphanIDs             []string  `json:"orphanIds"`
	Truncated             bool      `json:"truncated"`
}

// TCAReport is the cost of one trade. Where there is no benchmark, prices are 0 and slippages nil.
type TCAReport struct {
	TradeID            string    `json:"tradeId"`
	AccountID          uint32    `json:"accountId"`
	Security           string    `json:"security"`
	Side               Side      `json:"side"`
	Quantity           int64     `json:"quantity"`
	ExecutionPrice     Price     `json:"executionPrice"`
	ArrivalPrice       Price     `json:"arrivalPrice"`
	ArrivalAt          time.Time `json:"arrivalAt"`
	Twap               Price     `json:"twap"`
	TwapWindowStart    time.Time `json:"twapWindowStart"`
	TwapWindowEnd      time.Time `json:"twapWindowEnd"`
	TwapSampleCount    uint64    `json:"twapSampleCount"`
	SlippageBps        *Price    `json:"slippageBps"` // in millionths of a basis point
	ArrivalSlippageBps *Price    `json:"arrivalSlippageBps"`
}

// TCAQuery selects the trades of a summary. Zero members do not select.
type TCAQuery struct {
	AccountID *uint32
	From, To  time.Time
}

// Costs are the counts and averages of a set of trades.
type Costs struct {
	Trades                    uint64 `json:"trades"`
	WithBenchmark             uint64 `json:"withBenchmark"`
	AverageSlippageBps        *Price `json:"averageSlippageBps"` // in millionths of a basis point
	AverageArrivalSlippageBps *Price `json:"averageArrivalSlippageBps"`
}

// SecurityCosts are the costs of one security's trades.
type SecurityCosts struct {
	Security string `json:"security"`
	Costs
}

// TCASummary is the cost of many trades.
type TCASummary struct {
	Costs
	BySecurity []SecurityCosts `json:"bySecurity"`
}

// Reindexed is what a full-history index holds.
type Reindexed struct {
	IndexedTrades  uint64 `json:"indexedTrades"`
	LastSequence   uint64 `json:"lastSequence"`
	LastTradeSeq   uint64 `json:"lastTradeSeq"`
	DurationMillis int64  `json:"durationMillis"`
}

// RepairQuery asks for the rows of the trades From..To, both inclusive.
type RepairQuery struct {
	From   string `json:"from"` // trd-N
	To     string `json:"to"`
	DryRun bool   `json:"dryRun"` // compares, and changes nothing
}

// RepairedRow is a trade row as it was, or as it is now.
type RepairedRow struct {
	TradeRow
	Sequence uint64    `json:"sequence"`
	BookedAt time.Time `json:"bookedAt"`
}

// RepairItem is a trade whose row was made again. Was is nil when there was none.
type RepairItem struct {
	TradeID string       `json:"tradeId"`
	Fields  []string     `json:"fields"`
	Was     *RepairedRow `json:"was"`
	Now     RepairedRow  `json:"now"`
}

// Repair is what a repair did, or would do.
type Repair struct {
	RepairID  uint64       `json:"repairId"` // 0 of a dry run
	From      string       `json:"from"`
	To        string       `json:"to"`
	DryRun    bool         `json:"dryRun"`
	Checked   uint64       `json:"checked"`
	Matched   uint64       `json:"matched"`
	Repaired  uint64       `json:"repaired"`
	Pending   uint64       `json:"pending"` // the projection has not reached these trades
	Items     []RepairItem `json:"items"`
	Truncated bool         `json:"truncated"` // more were repaired than Items lists
}

// StatementLine is one booking from outside as the party that made it states it.
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
type Statement struct {
	Accepted  uint64 `json:"accepted"`
	Matched   uint64 `json:"matched"`
	Differing uint64 `json:"differing"`
	Missing   uint64 `json:"missing"`
}
