package orderflow

import "posttrade/matcher"

// Action is what a step asks of the venue.
type Action uint8

// The actions.
const (
	New     Action = iota // a new order
	Cancel                // of the order Ref
	Replace               // of the order Ref: new total quantity and limit price
	Trade                 // a market trade, booked at the last known price
	Price                 // a price tick of the security
)

// actionNames are the words of the CSV form, by Action; so are the lists below for their types.
// Words and order are part of what was written into files.
var actionNames = [...]string{"new", "cancel", "replace", "trade", "price"}

// String returns the word of the CSV form.
func (a Action) String() string { return name(actionNames[:], int(a)) }

// OrderType is limit or market.
type OrderType uint8

// The order types.
const (
	Limit OrderType = iota
	Market
)

var orderTypeNames = [...]string{"LIMIT", "MARKET"}

// String returns the contract's word.
func (t OrderType) String() string { return name(orderTypeNames[:], int(t)) }

// TimeInForce is how long an order lives.
type TimeInForce uint8

// The times in force.
const (
	GTC TimeInForce = iota
	IOC
	FOK
	PostOnly
)

var timeInForceNames = [...]string{"GTC", "IOC", "FOK", "POST_ONLY"}

// String returns the contract's word.
func (t TimeInForce) String() string { return name(timeInForceNames[:], int(t)) }

var sideNames = [...]string{matcher.Buy: "Buy", matcher.Sell: "Sell"}

// SideName returns the contract's word for a side.
func SideName(s matcher.Side) string { return name(sideNames[:], int(s)) }

// name is the word of a value, UNKNOWN for one that has none: String must not panic for a value
// that a caller made.
func name(names []string, i int) string {
	if i < len(names) {
		return names[i]
	}
	return "UNKNOWN"
}

// Step is one request of a flow. The action determines which fields are used:
//
//	New      all but Ref; LimitPx 0 for a market order; ClientOrderID required
//	Cancel   Ref
//	Replace  Ref, Quantity (the new total), LimitPx; ClientOrderID optional
//	Trade    ClientOrderID, AccountID, Security, Side, Quantity
//	Price    Security, LimitPx
//
// Other fields may be set and mean nothing to a venue; the CSV form keeps the AccountID of a cancel
// or a replace, and none of the others.
type Step struct {
	Action        Action
	ClientOrderID string
	AccountID     uint32
	Security      string
	Side          matcher.Side
	Type          OrderType
	TimeInForce   TimeInForce
	// Quantity is in shares, above 0 where it is used.
	Quantity int32
	// LimitPx is x 1e6, in matcher's fixed point.
	LimitPx int64
	// Ref is the ClientOrderID of the order that a cancel or replace names.
	Ref string
}

// StepReader returns a flow step by step; io.EOF ends it, another error means that the flow cannot
// go on. The next call overwrites the step, but the step's strings stay valid. One goroutine at a
// time.
type StepReader interface {
	Next(step *Step) error
}

// Level is one price of a book: Px x 1e6, and the quantity of all orders there, in shares.
type Level struct {
	Px  int64
	Qty int64
}

// Depth is the best levels of a book, best first on each side. A side without orders is empty.
type Depth struct {
	Bids, Asks []Level
}
