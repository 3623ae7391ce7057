//perf:hot

package matcher

import (
	"unsafe"

	"posttrade/ring"
)

// Engine is the whole state that decisions depend on. One goroutine owns it. See doc.go for what
// must hold.
type Engine struct {
	// Of the command being decided.
	out         *Outlet
	now         int64  // its event time
	correlation uint64 // of the submitter that waits for it; 0 in a replay
	version     uint16 // of its record
	applied     uint64 // its InputSeq; between commands the last one applied
	tradeSeq    uint64 // last issued
	nextRef     uint64 // the next order's reference
	stamp       uint64 // last priority stamp given to an order

	policy        policy
	all           bounds // the limits of all accounts
	policyVersion int64

	keys       keys
	accounts   accounts
	securities securities
	positions  positions
	orders     *orderPool
	ladders    []ladder              // of security id - 1
	books      table[uint32, ladder] // ladders, pages.levels and pages.leaves, for the path
	levels     table[uint32, level]
	leaves     table[uint32, page]
	retired    retired
	openOrders int
	maxOpen    int
	contracts  contracts
	bounds     boundRows
	pending    pendingLimits
	revoked    Revocations

	taker    taker
	requests [2 * nearAhead]request // of the command being decided and of those to come, in turns
	scratch  []uint32               // orders collected by a restriction; capacity maxOpen
	arena    ring.Arena
	genesis  Genesis
}

// AppliedSeq returns the last sequence applied, 0 before the first.
func (e *Engine) AppliedSeq() uint64 { return e.applied }

// TradeSeq returns the last trade sequence issued, 0 before the first fill.
func (e *Engine) TradeSeq() uint64 { return e.tradeSeq }

// Apply gives the command the next sequence and decides it. On entry c.InputSeq is the submitter's
// correlation id. Apply does not change c; the first event carries the sequenced command, which has
// the lowest version, from RecordVersion on, whose rules decide it so.
//
// c has passed Decode or comes from this package's constructors. A record of no known form is a bug
// of the caller, and Apply panics before anything has changed. It does not allocate. Only the owner
// may call it.
func (e *Engine) Apply(c *Command, out *Outlet) {
	e.correlation = c.InputSeq
	e.decideAlone(c, out)
}

// decideAlone decides a command that lookAhead has not covered. It runs lookAhead for its result;
// the prefetches come too late to help.
func (e *Engine) decideAlone(c *Command, out *Outlet) {
	e.out = out
	q := &e.requests[0]
	e.lookAhead(c, c, q)
	e.decide(c, q)
}

// decide carries out a command; q is what lookAhead has found out about it. Every case writes at
// least one event, the first with the command and the last marked. A case may change e.version
// before it writes the first event: the record is then of that version.
//
// A record of version 1 stays one in a replay; a new record becomes one of RecordVersion.
func (e *Engine) decide(c *Command, q *request) {
	if ring.Checks {
		e.mustBeSound()
	}
	e.applied++
	e.version = min(c.Version, RecordVersion)
	if c.TemplateID != TemplateCommand {
		e.now = 0
		e.decideOther(c)
		return
	}
	e.now = c.EventTimeMillis
	switch c.Type {
	case OrderNew:
		e.orderNew(c, q)
	case OrderCancel:
		e.orderCancel(c)
	case OrderReplace:
		e.orderReplace(c, q)
	case PriceTick:
		e.priceTick(c)
	case TradeNew:
		e.tradeNew(c, q)
	case ForceFill:
		e.forceFill(c)
	case AccountControl:
		e.accountControl(c)
	case SecurityControl:
		e.securityControl(c)
	case PolicyControl:
		e.policyControl(c)
	case RestrictionControl:
		e.restrictionControl(c)
	case SnapshotMark, OperatorNote:
		e.mark(c)
	case SwapBook, SwaptionBook:
		e.book(c)
	case CapacityControl:
		e.capacityControl(c)
	case LimitsControl:
		e.limitsControl(c)
	case TokenRevoke:
		e.tokenRevoke(c)
	default:
		e.applied--
		panicUnknown(c)
	}
}

// decideOther decides templates 7 and 8, which have no event time.
func (e *Engine) decideOther(c *Command) {
	switch c.TemplateID {
	case TemplateSymbolRegister:
		e.symbolRegister(c)
	case TemplateRiskExtract:
		e.mark(c)
	default:
		e.applied--
		panicUnknown(c)
	}
}

// head packs the first eight bytes of an event, in the order of the fields Kind to Flags; Era is 0.
// One store writes them.
func head(kind EventKind, side Side, reason RiskReason, status OrderStatus, flags uint16) uint64 {
	return uint64(kind) | uint64(side)<<8 | uint64(reason)<<16 | uint64(status)<<24 | uint64(flags)<<32
}

// first writes the event that carries the command. Its OrderRef, AccountID, SecurityID and Qty are
// the command's; the caller changes those that differ. The event is complete but for the caller's
// changes, and must not be read again once a later event is claimed.
func (e *Engine) first(c *Command, head uint64, px int64) *Event {
	if e.out.full() {
		e.out.More(e.out)
	}
	ev := e.out.claim()
	*(*uint64)(unsafe.Pointer(ev)) = head | uint64(EventFirst)<<32
	ev.InputSeq = e.applied
	ev.TimeMillis = e.now
	ev.Px = px
	ev.TradeSeq = 0
	ev.Ref = e.correlation
	*ev.about() = *c.about()
	cmd := ev.Cmd()
	*cmd = *c
	cmd.Version = e.version
	cmd.InputSeq = e.applied
	return ev
}

// next writes a later event of the command and returns its cleared second line. The caller must set
// Px, TradeSeq, OrderRef, AccountID, SecurityID and Qty; next sets the rest.
func (e *Engine) next(head uint64) (*Event, *Detail) {
	if e.out.full() {
		e.out.More(e.out)
	}
	ev := e.out.claim()
	*(*uint64)(unsafe.Pointer(ev)) = head
	ev.InputSeq = e.applied
	ev.TimeMillis = e.now
	ev.Ref = 0
	far := e.out.slot(e.out.Next + farAhead)
	ring.Prefetch(unsafe.Pointer(far), unsafe.Pointer(far.Cmd()), nil, nil)
	detail := ev.Detail()
	*detail = Detail{}
	return ev, detail
}

// reject refuses a command that made no order of its own; the event carries the command unchanged.
func (e *Engine) reject(c *Command, reason RiskReason) {
	e.first(c, head(EventRejected, c.Side, reason, 0, EventLast), c.LimitPx)
}

// rejectDuplicate answers a repeated key with the first decision on it, whatever the command asks
// for this time. The key is not remembered anew: its age is that of its first use.
func (e *Engine) rejectDuplicate(c *Command, entry *remembered) {
	decision := entry.decision & decisionBits
	ev := e.first(c, head(EventRejected, c.Side, Duplicate, 0, EventLast), int64(decision))
	ev.TradeSeq = entry.ref
	ev.OrderRef = 0
	if decision>>8 == uint64(KeyOrder) {
		ev.name(entry.ref)
	}
}

// applyEvent states that a control, a tick, a symbol or a marker took effect. Without EventLast in
// flags the caller writes a later event of the command.
func (e *Engine) applyEvent(c *Command, px int64, flags uint16) *Event {
	return e.first(c, head(EventApplied, c.Side, Accepted, 0, flags), px)
}
