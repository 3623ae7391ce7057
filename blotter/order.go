package blotter

import "posttrade/matcher"

// OrderType says how an order is priced. The number is stored in the image. The record has no such
// field: an order with a limit price of 0 or less is a market order.
type OrderType uint8

// The types of an order.
const (
	Limit  OrderType = 0
	Market OrderType = 1
)

// String returns the name that JSON answers carry.
func (t OrderType) String() string {
	if t == Market {
		return "MARKET"
	}
	return "LIMIT"
}

// TimeInForce says how long an order stays. The number is stored in the image.
type TimeInForce uint8

// The times in force.
const (
	GTC      TimeInForce = 0
	IOC      TimeInForce = 1
	FOK      TimeInForce = 2
	PostOnly TimeInForce = 3
)

var timeInForceNames = [...]string{"GTC", "IOC", "FOK", "POST_ONLY"}

// String returns the name that JSON answers carry.
func (t TimeInForce) String() string {
	if int(t) < len(timeInForceNames) {
		return timeInForceNames[t]
	}
	return "UNKNOWN"
}

// MaxClientID is the longest client order id, in bytes. A longer one is cut where a row is made.
const MaxClientID = 64

// OrderRow is one order as it was after one event. Prices are x 1e6, times epoch milliseconds. Ref,
// AccountID, SecurityID, InputSeq, CreatedMillis and the client id never change while the slot has
// the order; the rest is OrderState.
type OrderRow struct {
	Ref           uint32
	next          uint32 // next slot of the chain
	AccountID     uint32
	SecurityID    uint32
	InputSeq      uint64 // the command that created the order
	CreatedMillis int64
	OrderState
	clientID [MaxClientID]byte
}

// OrderState is the part of a row that changes after its creation, together with the fields that
// share a word with it.
type OrderState struct {
	Qty    int32
	Leaves int32 // open quantity; of a cancelled order the quantity not executed

	Side        matcher.Side
	Type        OrderType
	TimeInForce TimeInForce
	Status      matcher.OrderStatus
	Reason      matcher.RiskReason
	idLen       uint8
	Era         uint16 // of Ref, see Number

	LimitPx       int64 // 0 for a market order
	UpdatedMillis int64
	LastPx        int64 // price of the last fill, 0 for none
	LastQty       int32
	level         uint32 // the level it rests on, 0 = not on the book
}

// ClientID is the client's own id of the order, empty if there is none. It points into the row.
func (r *OrderRow) ClientID() []byte { return r.clientID[:r.idLen] }

// Number is the order's number: its reference in the lower half, its era above.
func (r *OrderRow) Number() uint64 { return uint64(r.Era)<<32 | uint64(r.Ref) }

// Open reports whether the order can still trade.
func (r *OrderRow) Open() bool { return !r.Status.Terminal() }
