package feed

import (
	"posttrade/blotter"
	"posttrade/matcher"
)

// Kind is what an event states.
type Kind uint8

// The kinds. A Fill is one side of a trade, as its own account sees it. Trade and Fill have one
// name on the wire; a Fill has an account.
const (
	// The new total of one level, the best levels of a book, a trade without accounts.
	Book Kind = iota
	BBO
	Trade
	Fill
	// The state of an order after a change; a market price that a tick has moved.
	Order
	Price
	// A change of accounts, securities, limits, policy or capacities; a contract that was booked; a
	// whole book.
	Control
	Contract
	Snapshot
)

// kindNames are the names that clients see, by number.
var kindNames = [...]string{Book: "book", BBO: "bbo", Trade: "trade", Fill: "trade",
	Order: "order", Price: "price", Control: "control", Contract: "contract", Snapshot: "snapshot"}

// String is the name of the event on the wire.
func (k Kind) String() string { return kindNames[k] }

// Event is one change. Its pointers are valid only during the call that passes it. Prices are x
// 1e6. Fields that the kind does not name are zero.
type Event struct {
	Position
	Kind       Kind
	Side       matcher.Side // of a Book
	SecurityID uint32       // 0: of none
	AccountID  uint32       // of an Order, a Fill or a Contract
	Ticker     string       // of SecurityID

	Level    blotter.Level  // of a Book: the new total
	Bid, Ask blotter.Level  // of a BBO; no orders: the side is empty
	Depth    *blotter.Depth // of a Snapshot

	Engine   *matcher.Event       // the engine's event behind it; nil for Book, BBO and Snapshot
	Order    *blotter.OrderRow    // as it is after the event
	Contract *blotter.ContractRow // that was booked
	Views    *blotter.Views       // after the event: the state that a Control has set
}
