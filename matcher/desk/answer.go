package desk

import "posttrade/matcher"

// Unstated is the Leaves of an answer when its events do not state them: of a replace that neither
// traded nor failed. The read view of the order has them.
const Unstated = -1

// Answer is the result of one command. It belongs to a ticket: the recorder writes it, and the
// holder reads it after Wait.
//
// Kind, Px, Qty and the ids are those of the command's first event; Status, Reason and Leaves are
// those after its last event about the command's own order. For a booked OTC contract (Kind
// EventContract) InputSeq is the contract's id.
type Answer struct {
	Kind   matcher.EventKind
	Side   matcher.Side
	Status matcher.OrderStatus
	Reason matcher.RiskReason
	Rests  bool // the order is on the book at the end of the command
	Late   bool // a tick: it is older than the market price, which does not change
	// Of a DUPLICATE: what DupRef names, and the reason of the first decision; see Duplicate.
	DupKind    matcher.IdempotencyKind
	DupReason  matcher.RiskReason // of the first decision
	InputSeq   uint64
	TradeSeq   uint64 // of the last own fill, 0 for none
	DupRef     uint64 // a DUPLICATE: OrderRef or InputSeq of the first decision, see DupKind
	TimeMillis int64
	Px         int64 // limit of the order, price of a booking, a tick or a force fill; x 1e6
	LastPx     int64 // of the last own fill, 0 for none
	OrderRef   uint32
	Era        uint16 // of OrderRef, see Order
	AccountID  uint32
	SecurityID uint32
	Qty        int32
	Leaves     int32 // open quantity, of a cancelled order the unexecuted one; or Unstated
	LastQty    int32
	Fills      []AnswerFill // own fills, in order; valid until Release
}

// AnswerFill is one execution of the command's own order: trade sequence, price x 1e6, whole units.
type AnswerFill struct {
	TradeSeq uint64
	Px       int64
	Qty      int32
}

// Order returns the number of the order that the answer is about, 0 for none.
func (a *Answer) Order() uint64 { return uint64(a.Era)<<32 | uint64(a.OrderRef) }

// Refused reports that the command was refused, for Reason.
func (a *Answer) Refused() bool { return a.Kind == matcher.EventRejected }

// Duplicate reports that the key is a repeated one: DupKind, DupRef and DupReason describe the
// first decision.
func (a *Answer) Duplicate() bool { return a.Refused() && a.Reason == matcher.Duplicate }

// reset clears an earlier answer, but keeps the room for its fills up to keptFills, so that a
// ticket in steady use allocates nothing.
func (a *Answer) reset() {
	fills := a.Fills[:0]
	if cap(fills) > keptFills {
		fills = nil
	}
	*a = Answer{Fills: fills}
}

// first records the command's first event. Leaves are the whole quantity until a later event states
// others.
func (a *Answer) first(ev *matcher.Event) {
	a.Kind, a.Side, a.Status, a.Reason = ev.Kind, ev.Side, ev.Status, ev.Reason
	a.Rests = ev.Flags&matcher.EventRests != 0
	a.Late = ev.Flags&matcher.EventLate != 0
	a.InputSeq, a.TimeMillis = ev.InputSeq, ev.TimeMillis
	a.Era = ev.Era
	a.OrderRef, a.AccountID, a.SecurityID = ev.OrderRef, ev.AccountID, ev.SecurityID
	a.Px, a.Qty, a.Leaves = ev.Px, ev.Qty, ev.Qty
	switch ev.Kind {
	case matcher.EventReplaced:
		a.Leaves = Unstated
	case matcher.EventRejected:
		if ev.Reason == matcher.Duplicate {
			a.Px = 0
			a.DupKind, a.DupRef, a.DupReason = ev.Duplicated()
		}
	}
}

// later records a further event about the command's own order. It may allocate when an order has
// more fills than any before it on this ticket.
func (a *Answer) later(ev *matcher.Event) {
	a.Status, a.Reason = ev.Status, ev.Reason
	a.Leaves = ev.Detail().Leaves
	switch ev.Kind {
	case matcher.EventFilled:
		a.TradeSeq, a.LastPx, a.LastQty = ev.TradeSeq, ev.Px, ev.Qty
		a.Fills = append(a.Fills, AnswerFill{TradeSeq: ev.TradeSeq, Px: ev.Px, Qty: ev.Qty})
	case matcher.EventRested:
		a.Rests = true
	}
}
