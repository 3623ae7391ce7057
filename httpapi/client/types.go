package client

import (
	"fmt"
	"time"

	"posttrade/matcher"
	"posttrade/matcher/strictjson"
)

// Price is a price, rate or average cost in millionths: exact, never a float.
type Price int64

// Units is a whole number of currency units as a Price.
func Units(n int64) Price { return Price(n * matcher.PriceScale) }

// String is the price as the interface writes it: without trailing zeros.
func (p Price) String() string { return string(strictjson.FormatDecimal(nil, int64(p))) }

// MarshalJSON writes a JSON number.
func (p Price) MarshalJSON() ([]byte, error) { return strictjson.FormatDecimal(nil, int64(p)), nil }

// UnmarshalJSON reads a JSON number exactly; null is 0.
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

// OrderType is LIMIT or MARKET.
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
	GTC      TimeInForce = "GTC"
	IOC      TimeInForce = "IOC"
	FOK      TimeInForce = "FOK"
	PostOnly TimeInForce = "POST_ONLY"
)

// Side says whether an account buys or sells.
type Side string

// The sides.
const (
	Buy  Side = "Buy"
	Sell Side = "Sell"
)

// OrderRequest is a createOrder. Empty members that have a default are not sent.
type OrderRequest struct {
	ClientOrderID string      `json:"clientOrderId,omitempty"`
	AccountID     uint32      `json:"accountId"`
	Security      string      `json:"security"`
	Side          Side        `json:"side"`
	Quantity      int32       `json:"quantity"`
	LimitPrice    Price       `json:"limitPrice,omitempty"` // 0: none
	Type          OrderType   `json:"type,omitempty"`
	TimeInForce   TimeInForce `json:"timeInForce,omitempty"`
}

// TradeRequest is a bookMarketTrade.
type TradeRequest struct {
	ClientOrderID string `json:"clientOrderId,omitempty"`
	AccountID     uint32 `json:"accountId"`
	Security      string `json:"security"`
	Side          Side   `json:"side"`
	Quantity      int32  `json:"quantity"`
}

// ReplaceRequest is a replace. Quantity is the new total, including the filled quantity.
type ReplaceRequest struct {
	ClientOrderID string `json:"clientOrderId,omitempty"`
	Quantity      int32  `json:"quantity"`
	LimitPrice    Price  `json:"limitPrice"`
}

// PriceRequest is a market price of one security.
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
	OrderID            string      `json:"orderId"`
	ClientOrderID      string      `json:"clientOrderId"`
	AccountID          uint32      `json:"accountId"`
	Security           string      `json:"security"`
	Side               Side        `json:"side"`
	Type               OrderType   `json:"type"`
	TimeInForce        TimeInForce `json:"timeInForce"`
	Quantity           int32       `json:"quantity"`
	RemainingQuantity  int32       `json:"remainingQuantity"`
	LimitPrice         Price       `json:"limitPrice"`
	Status             string      `json:"status"`
	RiskReason         string      `json:"riskReason"`
	LastExecutionPrice Price       `json:"lastExecutionPrice"`
	LastFillQuantity   int32       `json:"lastFillQuantity"`
	CreatedAt          time.Time   `json:"createdAt"`
	UpdatedAt          time.Time   `json:"updatedAt"`
	Sequence           uint64      `json:"sequence"`
	Fills              []Fill      `json:"fills"`
	// Only of an order in a batch: TERMS_DIFFER, see CreateOrderBatch, and the status with which the
	// order alone would have been answered.
	Code       string `json:"code"`
	HTTPStatus int    `json:"httpStatus"`
}

// Trade is a booked market trade.
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
	Accepted int    `json:"accepted"`
	Sequence uint64 `json:"sequence"`
}

// OrdersQuery selects orders. Zero members do not select.
type OrdersQuery struct {
	Status    string // open, all or a state's name
	AccountID *uint32
	Security  string
	Limit     int
	Cursor    string
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
	AccountID   uint32 `json:"accountId"`
	Security    string `json:"security"`
	Quantity    int64  `json:"quantity"`
	AverageCost Price  `json:"averageCost"`
}

// PositionPage is a page of positions; NextCursor "" is the last one.
type PositionPage struct {
	Items      []Position `json:"items"`
	NextCursor string     `json:"nextCursor"`
}

// Credit is what an account uses of its credit limit.
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
	Price    Price `json:"price"`
	Quantity int64 `json:"quantity"`
	Orders   int   `json:"orders"`
}

// Book is the book of one security, best levels first.
type Book struct {
	Security string  `json:"security"`
	Sequence uint64  `json:"sequence"`
	Bids     []Level `json:"bids"`
	Asks     []Level `json:"asks"`
}

// BlotterEntry is one executed fill.
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
type BlotterPage struct {
	Items        []BlotterEntry `json:"items"`
	NextSinceSeq uint64         `json:"nextSinceSeq"`
	Evicted      uint64         `json:"evicted"`
	Capacity     int            `json:"capacity"`
}

// ControlApplied is the answer to a risk control.
type ControlApplied struct {
	Applied  bool   `json:"applied"`
	Version  int64  `json:"version"`
	Sequence uint64 `json:"sequence"`
}

// Policy is a policy control. Zero limits stay as they are.
type Policy struct {
	PolicyVersion            int64 `json:"policyVersion"`
	KillSwitch               bool  `json:"killSwitch"`
	MaxPositionQuantity      int32 `json:"maxPositionQuantity,omitempty"`
	MaxConcentrationNotional Price `json:"maxConcentrationNotional,omitempty"`
}

// Limits are the risk limits of all accounts.
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
type SomeLimits struct {
	MaxOrderQuantity         *int32 `json:"maxOrderQuantity,omitempty"`
	MaxOrderNotional         *Price `json:"maxOrderNotional,omitempty"`
	MaxPositionQuantity      *int32 `json:"maxPositionQuantity,omitempty"`
	MaxConcentrationNotional *Price `json:"maxConcentrationNotional,omitempty"`
	CreditLimit              *Price `json:"creditLimit,omitempty"`
	PriceMaxAgeMs            *int64 `json:"priceMaxAgeMs,omitempty"`
	PriceCollarBps           *int32 `json:"priceCollarBps,omitempty"` // 0: no collar
}

// Controls is the gate's image.
type Controls struct {
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
	Version int64  `json:"version"`
	HeldBy  string `json:"heldBy"` // source or operator: which of them set Enabled

	Limits *SomeLimits `json:"limits,omitempty"` // its own; nil: it has those of all accounts
}

// SecurityControl is a security in the gate's image.
type SecurityControl struct {
	Ticker     string `json:"ticker"`
	Enabled    bool   `json:"enabled"`
	Halted     bool   `json:"halted"`
	Restricted bool   `json:"restricted"`
	Version    int64  `json:"version"`
	HeldBy     string `json:"heldBy"` // source or operator: which of them set Enabled or Halted
}

// Health is the answer of /health.
type Health struct {
	Service    string  `json:"service"`
	Status     string  `json:"status"`
	Role       string  `json:"role"`   // SINGLE, LEADER or FOLLOWER
	Member     string  `json:"member"` // in a cluster
	Leader     string  `json:"leader"` // in a cluster; "": unknown
	Durability string  `json:"durability"`
	Applied    uint64  `json:"applied"`
	Durable    uint64  `json:"durable"`
	Projected  *uint64 `json:"projected"`
}
