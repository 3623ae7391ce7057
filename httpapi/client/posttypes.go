package client

import "time"

// TokenRequest is the content of a development token.
//
// TTLSeconds is 1 to 86400. Accounts are the accounts that the token covers; Admin covers all of
// them.
type TokenRequest struct {
	Subject    string   `json:"subject"`
	Accounts   []uint32 `json:"accounts"`
	Admin      bool     `json:"admin"`
	TTLSeconds int      `json:"ttlSeconds"`
}

// Token is a minted token.
//
// TokenType is Bearer: Token goes into Config.Token as it is.
type Token struct {
	Token     string    `json:"token"`
	TokenType string    `json:"tokenType"`
	ExpiresAt time.Time `json:"expiresAt"`
}

// Revoked says which tokens of a subject are refused.
//
// Tokens that were issued up to IssuedUpTo, a whole second, are refused, and those that do not say
// when. Sequence is the inputSeq of the command.
type Revoked struct {
	Applied    bool      `json:"applied"`
	Subject    string    `json:"subject"`
	IssuedUpTo time.Time `json:"issuedUpTo"`
	Sequence   uint64    `json:"sequence"`
}

// TradesQuery selects trade rows. Zero members do not select.
//
// The conditions add up. From and To are sent with all their decimals; the server rounds a part of
// a millisecond up.
type TradesQuery struct {
	AccountID      *uint32
	Security       string
	Status         string    // Processing or Settled
	SettlementDate string    // yyyy-MM-dd
	TradeDate      string    // yyyy-MM-dd, a day of the settlement's time zone
	From, To       time.Time // executed in [From, To)
	// Limit is at most 1000; 0 is the server's default, 100.
	Limit  int
	Cursor string
	Order  string // oldest or newest first; empty: oldest. A cursor belongs to one of them
}

// TradeRow is a row of the projection. It follows the journal by milliseconds: a row may come after
// the answer to its order.
type TradeRow struct {
	ID string `json:"id"`
	// TradeSeq is 0 for a booking from outside, whose ID begins with ext-; the journal's trades have
	// trd-<TradeSeq>.
	TradeSeq  uint64 `json:"tradeSeq"`
	AccountID uint32 `json:"accountId"`
	Security  string `json:"security"`
	Side      Side   `json:"side"`
	Quantity  int64  `json:"quantity"`
	Price     Price  `json:"price"`
	// Status is Processing or Settled. SettlementDate is "" when the row was edited and holds no date.
	Status         string `json:"status"`
	SettlementDate string `json:"settlementDate"`
	// Timestamp is the time of the execution, UpdatedAt that of the row's last change. OrderID is ""
	// for a market trade and for a booking that names no order.
	Timestamp time.Time `json:"timestamp"`
	OrderID   string    `json:"orderId"`
	UpdatedAt time.Time `json:"updatedAt"`
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

// TCAReport is the cost of one trade. Where there is no benchmark, prices are 0 and slippages nil.
//
// The numbers are those of package sidecars/tca: its page defines sample, TWAP and slippage.
type TCAReport struct {
	TradeID        string `json:"tradeId"`
	AccountID      uint32 `json:"accountId"`
	Security       string `json:"security"`
	Side           Side   `json:"side"`
	Quantity       int64  `json:"quantity"`
	ExecutionPrice Price  `json:"executionPrice"`
	// The arrival is the command that accepted the order. ArrivalAt is zero when the row is not a fill
	// of the journal.
	ArrivalPrice Price     `json:"arrivalPrice"`
	ArrivalAt    time.Time `json:"arrivalAt"`
	// The TWAP is the average price of the window before the execution, weighted by time. Its sample
	// count is the number of prices that had weight.
	Twap            Price     `json:"twap"`
	TwapWindowStart time.Time `json:"twapWindowStart"`
	TwapWindowEnd   time.Time `json:"twapWindowEnd"`
	TwapSampleCount uint64    `json:"twapSampleCount"`
	// Both slippages are in millionths of a basis point; positive is a cost, for a sale too.
	SlippageBps        *Price `json:"slippageBps"`
	ArrivalSlippageBps *Price `json:"arrivalSlippageBps"`
}

// TCAQuery selects the trades of a summary. Zero members do not select.
//
// From and To bound the time of the execution: [From, To).
type TCAQuery struct {
	AccountID *uint32
	From, To  time.Time
}

// Costs are the counts and averages of a set of trades.
//
// Trades without a TWAP are in Trades, and neither in WithBenchmark nor in the averages.
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
	// BySecurity ascends by ticker.
	BySecurity []SecurityCosts `json:"bySecurity"`
}

// Reindexed is what a full-history index holds.
//
// LastSequence is the durable inputSeq when the index was begun: the index has every fill up to
// there, and none behind it.
type Reindexed struct {
	IndexedTrades  uint64 `json:"indexedTrades"`
	LastSequence   uint64 `json:"lastSequence"`
	LastTradeSeq   uint64 `json:"lastTradeSeq"`
	DurationMillis int64  `json:"durationMillis"`
}
