package client

import (
	"fmt"
	"time"

	"posttrade/matcher"
	"posttrade/matcher/strictjson"
)

// Price is a price, rate or average cost in millionths: exact, never a float.
//
// The range is that of a 64-bit number of millionths, about 9.2e12 units. The server refuses a
// seventh decimal that is not 0, and a price of 0 or less wherever a price is asked for.
type Price int64

// Units is a whole number of currency units as a Price.
func Units(n int64) Price { return Price(n * matcher.PriceScale) }

// String is the price as the interface writes it: without trailing zeros.
func (p Price) String() string { return string(strictjson.FormatDecimal(nil, int64(p))) }

// MarshalJSON writes a JSON number.
func (p Price) MarshalJSON() ([]byte, error) { return strictjson.FormatDecimal(nil, int64(p)), nil }

// UnmarshalJSON reads a JSON number exactly; null is 0.
//
// Errors: a number with an exact value that millionths cannot hold, and any text that is no JSON
// number. The Price then keeps its value.
func (p *Price) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*p = 0
		return nil
	}
	v, err := strictjson.ParseDecimal(b)
	if err != nil {
		return fmt.Errorf("client: read price: %w", err)
	}
	*p = Price(v)
	return nil
}

// OrderType is LIMIT or MARKET. A MARKET order has no limit price and never rests: what it cannot
// trade at once is cancelled.
type OrderType string

// The order types; "" is LIMIT.
const (
	Limit  OrderType = "LIMIT"
	Market OrderType = "MARKET"
)

// TimeInForce says how long an order stays.
type TimeInForce string

// The times in force; "" is GTC.
const (
	// GTC rests until it is filled or cancelled. IOC and FOK never rest: IOC cancels what it cannot
	// trade at once, FOK trades its whole quantity at once or nothing. POST_ONLY is refused when it
	// would trade at once, and is not for a MARKET order.
	GTC      TimeInForce = "GTC"
	IOC      TimeInForce = "IOC"
	FOK      TimeInForce = "FOK"
	PostOnly TimeInForce = "POST_ONLY"
)

// Side says whether an account buys or sells. The server reads it in any case and writes it as
// here.
type Side string

// The sides.
const (
	Buy  Side = "Buy"
	Sell Side = "Sell"
)

// OrderRequest is a createOrder. Empty members that have a default are not sent.
//
// The server refuses a request with a missing required member with 400 before anything is
// sequenced.
type OrderRequest struct {
	// ClientOrderID is 1 to 64 bytes of printable ASCII and belongs to the account. It makes the
	// request safe to repeat: with the same terms the server answers with the first decision. Without
	// it a lost answer leaves the outcome unknown.
	ClientOrderID string `json:"clientOrderId,omitempty"`
	AccountID     uint32 `json:"accountId"`
	Security      string `json:"security"`
	Side          Side   `json:"side"`
	// Quantity is 1 or more, in whole units.
	Quantity int32 `json:"quantity"`
	// LimitPrice is a multiple of the security's tick, see Stock. 0 is not sent: a LIMIT order needs a
	// price, a MARKET order must not have one.
	LimitPrice  Price       `json:"limitPrice,omitempty"`
	Type        OrderType   `json:"type,omitempty"`
	TimeInForce TimeInForce `json:"timeInForce,omitempty"`
}

// TradeRequest is a bookMarketTrade.
//
// The trade is executed at the last known market price of the security, without an order and
// without the book.
type TradeRequest struct {
	ClientOrderID string `json:"clientOrderId,omitempty"`
	AccountID     uint32 `json:"accountId"`
	Security      string `json:"security"`
	Side          Side   `json:"side"`
	Quantity      int32  `json:"quantity"`
}

// ReplaceRequest is a replace. Quantity is the new total, including the filled quantity.
//
// The order keeps its place in the queue only when the quantity shrinks and the price stays.
type ReplaceRequest struct {
	ClientOrderID string `json:"clientOrderId,omitempty"`
	Quantity      int32  `json:"quantity"`
	LimitPrice    Price  `json:"limitPrice"`
}

// PriceRequest is a market price of one security, above 0.
//
// The gate judges orders by the market price and its age. A fill sets the market price too.
type PriceRequest struct {
	Security string `json:"security"`
	Price    Price  `json:"price"`
}

// Fill is one executed fill of an order that was just created.
type Fill struct {
	TradeID  string `json:"tradeId"`
	Price    Price  `json:"price"`
	Quantity int32  `json:"quantity"`
}

// Order is an order as an answer shows it. Members that are null are zero.
type Order struct {
	// OrderID is ord- and a number of up to 15 digits, which 32 bits do not hold. It is "" for an
	// order of a batch that was refused without a sequence, and for one with the Code TERMS_DIFFER.
	OrderID       string      `json:"orderId"`
	ClientOrderID string      `json:"clientOrderId"`
	AccountID     uint32      `json:"accountId"`
	Security      string      `json:"security"`
	Side          Side        `json:"side"`
	Type          OrderType   `json:"type"`
	TimeInForce   TimeInForce `json:"timeInForce"`
	Quantity      int32       `json:"quantity"`
	// RemainingQuantity is the open quantity; of a cancelled order the quantity that was not executed.
	RemainingQuantity int32 `json:"remainingQuantity"`
	LimitPrice        Price `json:"limitPrice"`
	// Status is NEW, PARTIALLY_FILLED, FILLED, CANCELED or REJECTED. It is "" only for a repeated
	// ClientOrderID whose order has ended and is not kept any more.
	Status string `json:"status"`
	// RiskReason says why the order was refused, or cancelled by another than its owner; else "".
	RiskReason string `json:"riskReason"`
	// The two of the last fill are 0 before the first.
	LastExecutionPrice Price     `json:"lastExecutionPrice"`
	LastFillQuantity   int32     `json:"lastFillQuantity"`
	CreatedAt          time.Time `json:"createdAt"`
	UpdatedAt          time.Time `json:"updatedAt"`
	// Sequence is the inputSeq of the command that made the order: what After takes. 0: it was not
	// sequenced.
	Sequence uint64 `json:"sequence"`
	// Fills are the fills of the order's own command, in order. Only an answer to a create has them.
	Fills []Fill `json:"fills"`
	// Only of an order in a batch: TERMS_DIFFER, see CreateOrderBatch, and the status with which the
	// order alone would have been answered.
	Code       string `json:"code"`
	HTTPStatus int    `json:"httpStatus"`
}

// Trade is a booked market trade.
//
// TradeID, Price and ExecutedAt are zero for a repeated ClientOrderID whose trade the blotter does
// not hold any more.
type Trade struct {
	TradeID       string    `json:"tradeId"`
	Sequence      uint64    `json:"sequence"`
	Price         Price     `json:"price"`
	ClientOrderID string    `json:"clientOrderId"`
	AccountID     uint32    `json:"accountId"`
	Security      string    `json:"security"`
	Side          Side      `json:"side"`
	Quantity      int32     `json:"quantity"`
	ExecutedAt    time.Time `json:"executedAt"`
}

// PricesAccepted is the answer to prices.
type PricesAccepted struct {
	Accepted int `json:"accepted"`
	// Sequence is that of the last price.
	Sequence uint64 `json:"sequence"`
}

// OrdersQuery selects orders. Zero members do not select.
type OrdersQuery struct {
	Status string // open, all or a state's name
	// AccountID nil is every account that the token may see.
	AccountID *uint32
	Security  string
	// Limit is at most 1000; 0 is the server's default, 100. Cursor is the NextCursor of the page
	// before, as it came: it belongs to this list alone.
	Limit  int
	Cursor string
}

// OrderPage is a page of orders; NextCursor "" is the last one.
type OrderPage struct {
	Items      []Order `json:"items"`
	NextCursor string  `json:"nextCursor"`
}

// PositionsQuery selects positions, or accounts. Zero members do not select.
type PositionsQuery struct {
	AccountID *uint32
	Limit     int
	Cursor    string
}

// Position is what an account holds of a security.
type Position struct {
	AccountID uint32 `json:"accountId"`
	Security  string `json:"security"`
	// Quantity is negative for a short position. AverageCost is per unit, and 0 when the position is
	// flat.
	Quantity    int64 `json:"quantity"`
	AverageCost Price `json:"averageCost"`
}

// PositionPage is a page of positions; NextCursor "" is the last one.
type PositionPage struct {
	Items      []Position `json:"items"`
	NextCursor string     `json:"nextCursor"`
}

// Credit is what an account uses of its credit limit.
//
// CreditUsed is the larger of two sums: what the account has paid less what it has received, with
// what its open buy orders could still pay, and the reverse. The engine refuses with CREDIT_LIMIT
// what would bring it above CreditLimit.
type Credit struct {
	AccountID   uint32 `json:"accountId"`
	CreditUsed  Price  `json:"creditUsed"`
	CreditLimit Price  `json:"creditLimit"`
}

// CreditPage is a page of accounts; NextCursor "" is the last one.
type CreditPage struct {
	Items      []Credit `json:"items"`
	NextCursor string   `json:"nextCursor"`
}

// Level is the resting quantity at one price.
type Level struct {
	Price Price `json:"price"`
	// Quantity is the sum of the open quantities of Orders orders.
	Quantity int64 `json:"quantity"`
	Orders   int   `json:"orders"`
}

// Book is the book of one security, best levels first.
//
// Both sides are of one moment: the end of the command of Sequence.
type Book struct {
	Security string  `json:"security"`
	Sequence uint64  `json:"sequence"`
	Bids     []Level `json:"bids"`
	Asks     []Level `json:"asks"`
}

// BlotterEntry is one executed fill.
//
// A match has two fills, one for each side. OrderID is "" for a fill without an order. Sequence is
// the inputSeq of the command that executed it; ExecTimeMillis is epoch milliseconds.
type BlotterEntry struct {
	ID             string `json:"id"`
	TradeSeq       uint64 `json:"tradeSeq"`
	AccountID      uint32 `json:"accountId"`
	Security       string `json:"security"`
	Side           Side   `json:"side"`
	Quantity       int32  `json:"quantity"`
	Price          Price  `json:"price"`
	ExecTimeMillis int64  `json:"execTimeMillis"`
	OrderID        string `json:"orderId"`
	Sequence       uint64 `json:"sequence"`
}

// BlotterPage is a page of the blotter.
//
// NextSinceSeq is the sinceSeq of the next page, also when Items is empty. Evicted counts the fills
// that the blotter has dropped, and Capacity those that it keeps; in a page of the full history
// both are 0.
type BlotterPage struct {
	Items        []BlotterEntry `json:"items"`
	NextSinceSeq uint64         `json:"nextSinceSeq"`
	Evicted      uint64         `json:"evicted"`
	Capacity     int            `json:"capacity"`
}

// ControlApplied is the answer to a risk control.
//
// Version is the new version of the account, the security or the policy, and Sequence the inputSeq
// of the control.
type ControlApplied struct {
	Applied  bool   `json:"applied"`
	Version  int64  `json:"version"`
	Sequence uint64 `json:"sequence"`
}

// Policy is a policy control. Zero limits stay as they are.
//
// PolicyVersion is 1 or more and above every version before, of policies and of limits.
type Policy struct {
	PolicyVersion            int64 `json:"policyVersion"`
	KillSwitch               bool  `json:"killSwitch"`
	MaxPositionQuantity      int32 `json:"maxPositionQuantity,omitempty"`
	MaxConcentrationNotional Price `json:"maxConcentrationNotional,omitempty"`
}

// Limits are the risk limits of all accounts.
//
// Quantities are whole units, money is in currency units, an age in milliseconds, the collar in
// basis points of the market price.
type Limits struct {
	MaxOrderQuantity         int32 `json:"maxOrderQuantity"`
	MaxOrderNotional         Price `json:"maxOrderNotional"`
	MaxPositionQuantity      int32 `json:"maxPositionQuantity"`
	MaxConcentrationNotional Price `json:"maxConcentrationNotional"`
	CreditLimit              Price `json:"creditLimit"`
	PriceMaxAgeMs            int64 `json:"priceMaxAgeMs"`
	PriceCollarBps           int32 `json:"priceCollarBps"` // 0: no collar
}

// SomeLimits are some of the risk limits; nil ones are left out.
//
// In a request a nil one stays as it is. In the gate's image a nil one is not the account's own.
type SomeLimits struct {
	MaxOrderQuantity         *int32 `json:"maxOrderQuantity,omitempty"`
	MaxOrderNotional         *Price `json:"maxOrderNotional,omitempty"`
	MaxPositionQuantity      *int32 `json:"maxPositionQuantity,omitempty"`
	MaxConcentrationNotional *Price `json:"maxConcentrationNotional,omitempty"`
	CreditLimit              *Price `json:"creditLimit,omitempty"`
	PriceMaxAgeMs            *int64 `json:"priceMaxAgeMs,omitempty"`
	PriceCollarBps           *int32 `json:"priceCollarBps,omitempty"` // 0: no collar
}

// Controls is the gate's image. It is in force when the answer is made, and durable.
type Controls struct {
	// Ready says that orders are admitted as far as the control sources decide it.
	Ready   bool            `json:"ready"`
	Sources []ControlSource `json:"sources"`
	PastControls
}

// PastControls is the part of the gate's image that the history decides.
type PastControls struct {
	KillSwitch    bool              `json:"killSwitch"`
	PolicyVersion int64             `json:"policyVersion"`
	Limits        Limits            `json:"limits"`
	Accounts      []AccountControl  `json:"accounts"`
	Securities    []SecurityControl `json:"securities"`
}

// ControlSource is the standing of one control source.
//
// State is bootstrapping, installed, ready or quarantined; only ready admits orders. Watermark is
// the last version that the replica has taken in, and HighWatermark the highest that it knows of.
// LastReason is that of the last quarantine, "" for none.
type ControlSource struct {
	Source        string `json:"source"`
	State         string `json:"state"`
	Epoch         uint64 `json:"epoch"`
	Watermark     uint64 `json:"watermark"`
	HighWatermark uint64 `json:"highWatermark"`
	LastReason    string `json:"lastReason"`
}

// AccountControl is an account in the gate's image.
type AccountControl struct {
	ID      uint32 `json:"id"`
	Enabled bool   `json:"enabled"`
	// Version is that of the account's last control.
	Version int64  `json:"version"`
	HeldBy  string `json:"heldBy"` // source or operator: which of them set Enabled

	Limits *SomeLimits `json:"limits,omitempty"` // its own; nil: it has those of all accounts
}

// SecurityControl is a security in the gate's image.
//
// Restricted is always an operator's. A security trades when it is enabled and neither halted nor
// restricted.
type SecurityControl struct {
	Ticker     string `json:"ticker"`
	Enabled    bool   `json:"enabled"`
	Halted     bool   `json:"halted"`
	Restricted bool   `json:"restricted"`
	Version    int64  `json:"version"`
	HeldBy     string `json:"heldBy"` // source or operator: which of them set Enabled or Halted
}

// Health is the answer of /health.
//
// The three sequences are inputSeqs of the member that answers: what its views have, what is on
// stable storage, and what is in SQL.
type Health struct {
	Service string `json:"service"`
	// Status is ok, or says what is wrong, such as failed, storage-full, history-ahead, not-ready or
	// degraded.
	Status string `json:"status"`
	Role   string `json:"role"`   // SINGLE, LEADER or FOLLOWER
	Member string `json:"member"` // in a cluster
	Leader string `json:"leader"` // in a cluster; "": unknown
	// Durability is fsync, os or quorum.
	Durability string `json:"durability"`
	Applied    uint64 `json:"applied"`
	Durable    uint64 `json:"durable"`
	// Projected is nil when the installation has no SQL projection.
	Projected *uint64 `json:"projected"`
}
