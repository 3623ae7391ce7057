package matcher

import "unsafe"

// EventBytes is the size of an event in the output ring: two cache lines. The command that a first
// event carries takes the second one.
const EventBytes = 128

// EventKind says what an event states.
type EventKind uint8

// The kinds. The first event of every command carries the sequenced command itself (EventFirst).
// The last one is marked (EventLast). Often one event is both.
const (
	// EventAccepted: a new order was accepted. With EventRests the whole order went straight onto the
	// book.
	EventAccepted EventKind = 1
	// EventRejected: the command was refused, see Reason. A refused new order has an OrderRef too,
	// except for a DUPLICATE: read the decision that it repeats with Duplicated.
	EventRejected EventKind = 2
	// EventFilled: one executed fill, one side of a match, a market trade or a force fill.
	EventFilled EventKind = 3
	// EventCanceled: an order's remainder (Qty) was cancelled. Reason is Accepted when the owner asked
	// or time in force ended it, else it states why. The rest of a market order that the book could
	// fill only beyond its bound has PriceCollar, or without a collar the limit that the next fill
	// would have passed.
	EventCanceled EventKind = 4
	// EventReplaced: an order has a new total quantity and limit. With EventKeptPlace it kept its
	// priority; else the engine took it off the book, and matches and rests it again like a new one.
	// With EventRests the whole order rests.
	EventReplaced EventKind = 5
	// EventRested: the leaves of an order first went onto the book: Qty at Px. The order has traded
	// before, or lost a maker to self-trade prevention.
	EventRested EventKind = 6
	// EventApplied: a control command, a tick, a symbol or a marker took effect.
	EventApplied EventKind = 7
	// EventBooked: a market trade was accepted; its fill follows.
	EventBooked EventKind = 8
	// EventContract: an OTC contract was booked. Its id is InputSeq, Cmd holds its
	// terms (read ContractTerms); Px is the fixed rate, Qty the notional, OrderRef
	// and SecurityID are 0.
	EventContract EventKind = 9
	// EventLimits: the last part of a LIMITS_CONTROL has changed the limits of all accounts, or of
	// AccountID; read them with Limits. Px is the version of the policy.
	EventLimits EventKind = 10
)

// The bits of Event.Flags.
//
// Several can be set. EventLast lets a reader of the ring take whole commands only.
const (
	EventFirst     uint16 = 1 << 0 // Cmd holds the command
	EventLast      uint16 = 1 << 1 // no further event of this command
	EventAggressor uint16 = 1 << 2 // a fill of the incoming side
	EventRests     uint16 = 1 << 3 // the order now rests on the book
	EventKeptPlace uint16 = 1 << 4 // a replace that kept its priority
	EventMarket    uint16 = 1 << 5 // a fill of a market trade: there is no order
	EventForced    uint16 = 1 << 6 // a force fill
	EventLate      uint16 = 1 << 7 // a tick or a fill older than the market price, which stays
)

// OrderStatus is an order's state. The number is stored.
type OrderStatus uint8

// The states of an order. A new order that rests is NEW until its first fill; an order that was
// refused is REJECTED from the beginning.
const (
	StatusNew             OrderStatus = 0
	StatusPartiallyFilled OrderStatus = 1
	StatusFilled          OrderStatus = 2
	StatusCanceled        OrderStatus = 3
	StatusRejected        OrderStatus = 4
)

var statusNames = [...]string{"NEW", "PARTIALLY_FILLED", "FILLED", "CANCELED", "REJECTED"}

// String returns the name that JSON answers carry.
func (s OrderStatus) String() string {
	if int(s) < len(statusNames) {
		return statusNames[s]
	}
	return "UNKNOWN"
}

// Terminal reports whether an order in this state can never change again. The comparison
// needs the three terminal states to be the last ones.
func (s OrderStatus) Terminal() bool { return s >= StatusFilled }

// Event is one 128-byte statement of the engine. The matcher writes it into the output ring; the
// recorder and every other reader only read it. Events are not stored: the journal keeps commands
// and fills, and a replay gives the same events again.
//
// The second line is a union: with EventFirst the command itself (read Cmd), otherwise the position
// and order behind a fill (read Detail), or the limits in force (an EventLimits: read Limits).
type Event struct {
	Kind   EventKind
	Side   Side
	Reason RiskReason
	Status OrderStatus // of the order, after this event
	Flags  uint16
	Era    uint16 // of OrderRef, see Order

	// Of the command. All events of a command share it and its event time.
	InputSeq   uint64
	TimeMillis int64
	// Execution price of a fill; limit price of anything else; of a DUPLICATE see Duplicated.
	Px       int64
	TradeSeq uint64 // of a fill, else 0; of a DUPLICATE see Duplicated
	Ref      uint64 // EventFirst: the submitter's correlation id. Else 0

	OrderRef   uint32
	AccountID  uint32
	SecurityID uint32
	Qty        int32 // filled, cancelled, rested or ordered quantity

	tail [64]byte
}

// Detail is the second line of an event that is not the first of its command.
type Detail struct {
	Leaves      int32  // of the order, after this event
	CounterRef  uint32 // a fill: the order on the other side; 0 for a market trade
	PositionQty int64  // a fill: the account's position after it
	AverageCost int64  // a fill: that position's average cost x 1e6
	LimitPx     int64  // the order's limit: the level that a resting order is on
	CounterEra  uint16 // of CounterRef, see Counter
	_           [30]byte
}

// IdempotencyKind says what a remembered key refers to. The number is stored.
type IdempotencyKind uint8

// The things that an idempotency entry's reference names.
const (
	KeyOrder    IdempotencyKind = 0 // Ref is an OrderRef
	KeyTrade    IdempotencyKind = 1 // Ref is the InputSeq of a market trade's booking
	KeyContract IdempotencyKind = 2 // Ref is the InputSeq of an OTC booking
)

// Duplicated returns the first decision that a DUPLICATE refusal repeats: the kind of thing that it
// was about, its reference and the decision. TradeSeq holds the reference and Px the kind (bits
// 8-9) and the reason (bits 0-7). OrderRef is the reference again when the thing is an order. Of
// any other event the result means nothing.
func (e *Event) Duplicated() (kind IdempotencyKind, ref uint64, decision RiskReason) {
	return IdempotencyKind(e.Px >> 8), e.TradeSeq, RiskReason(e.Px)
}

// Compile-time checks: an event is two lines, and the union starts on the second.
var (
	_ = [1]struct{}{}[unsafe.Sizeof(Event{})-EventBytes]
	_ = [1]struct{}{}[unsafe.Offsetof(Event{}.tail)-64]
	_ = [1]struct{}{}[unsafe.Sizeof(Detail{})-64]
)

// Cmd returns the sequenced command of an event with EventFirst. It points into the event: a reader
// of the output ring copies what it needs before it releases the slot.
func (e *Event) Cmd() *Command { return (*Command)(unsafe.Pointer(&e.tail)) }

// about is OrderRef, AccountID, SecurityID and Qty in one piece. A command has the same four in the
// same order.
func (e *Event) about() *[16]byte { return (*[16]byte)(unsafe.Pointer(&e.OrderRef)) }

// Detail is the second line of an event without EventFirst. It points into the event, like Cmd.
func (e *Event) Detail() *Detail { return (*Detail)(unsafe.Pointer(&e.tail)) }
