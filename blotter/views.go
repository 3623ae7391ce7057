//perf:hot

package blotter

import (
	"sync/atomic"
	"unsafe"

	"posttrade/matcher"
	"posttrade/ring"
)

// Views are the orders, positions, depth, keys, contracts and controls after the events observed so
// far. doc.go lists the invariants; each method names its callers. Observer is the one goroutine at
// a time that calls Observe and Flush.
type Views struct {
	orders     orders
	levels     levels
	positions  positions
	keys       keys
	accounts   accounts
	securities securities
	policy     policySlot
	contracts  contracts

	// tables are the tables with a size set by capacities. The observer uses the fields above, readers
	// use this copy. Writer: the observer, before it adds a row for which only the larger tables have
	// room.
	tables atomic.Pointer[tables]

	applied  ring.Sequence // writer: the observer. Last InputSeq of which all events are observed
	current  uint64        // writer: the observer. InputSeq of the command being observed
	tradeSeq uint64        // writer: the observer. Last trade sequence
	finished uint32        // slot of the order that its own command has filled: it is retired last

	asked   atomic.Pointer[depthRequest] // writers: readers push, the observer takes all
	backlog *depthRequest                // writer: the observer. Taken, not yet answered
	asking  atomic.Int64                 // requests that are neither answered nor dropped
	wake    func()                       // constant after SetWake
	arena   ring.Arena
	sources [controlSources]sourceMark
	genesis [32]byte          // SHA-256 of the genesis record
	created matcher.OrderRoom // of the genesis record

	clientKey matcher.ClientKey // of the genesis record
}

// Applied is the last sequence of which all events have been observed. Rows may already show part
// of the next one. Any goroutine.
func (v *Views) Applied() uint64 { return uint64(v.applied.Load()) }

// Observe applies one event. clientID is the client's own id of the command, given with the first
// event; Observe copies it. Events come in order and without a hole; anything else is a bug and
// panics. No allocation, unless a CAPACITY_CONTROL raises capacities. Observer only.
//
// Readers see each row as it changes, also in the middle of a command; Applied rises with the
// command's last event.
func (v *Views) Observe(ev *matcher.Event, clientID []byte) {
	if ev.Flags&matcher.EventFirst != 0 {
		if ev.InputSeq != v.current+1 || v.current != uint64(v.applied.Load()) {
			holeInEvents(ev.InputSeq, v.current, v.Applied())
		}
		v.current = ev.InputSeq
	}
	switch ev.Kind {
	case matcher.EventAccepted:
		v.accepted(ev, clientID)
	case matcher.EventRejected:
		v.rejected(ev, clientID)
	case matcher.EventFilled:
		v.filled(ev)
	case matcher.EventCanceled:
		v.canceled(ev)
	case matcher.EventReplaced:
		v.replaced(ev, clientID)
	case matcher.EventRested:
		v.rested(ev)
	case matcher.EventApplied:
		v.control(ev)
	case matcher.EventLimits:
		v.limits(ev)
	case matcher.EventBooked:
		v.remember(ev, matcher.KeyTrade, ev.InputSeq, clientID)
	case matcher.EventContract:
		v.booked(ev, clientID)
	default:
		unknownEvent(ev)
	}
	if ev.Flags&matcher.EventLast != 0 {
		if v.finished != 0 {
			v.orders.retire(v.finished)
			v.finished = 0
		}
		v.applied.Release(int64(ev.InputSeq))
		if ring.Checks {
			v.mustBeSound()
		}
	}
}

// Flush answers the few readers that have asked the observer for depth. The observer calls it after
// every batch of events and whenever it is idle. more reports that requests are left; the observer
// then does not park. Flush costs two loads when there is no request.
func (v *Views) Flush() (more bool) {
	if v.backlog == nil && v.asked.Load() == nil {
		return false
	}
	return v.answerDepth()
}

// accepted makes a new order. Its key comes behind it: a reader that sees the key sees the order.
func (v *Views) accepted(ev *matcher.Event, clientID []byte) {
	var row OrderRow
	row.fill(ev)
	if ev.Flags&matcher.EventRests != 0 {
		row.level = v.levels.add(row.SecurityID, row.Side, row.LimitPx, row.Leaves)
	}
	v.orders.insert(&row, clientID)
	v.orders.open++
	v.remember(ev, matcher.KeyOrder, ev.Order(), clientID)
}

// rejected makes the order that a refused ORDER_NEW leaves behind, and remembers refusals that
// carry a key. A DUPLICATE leaves nothing: the key has its first decision.
func (v *Views) rejected(ev *matcher.Event, clientID []byte) {
	cmd := ev.Cmd()
	if ev.Reason == matcher.Duplicate || cmd.TemplateID != matcher.TemplateCommand {
		return
	}
	switch cmd.Type {
	case matcher.OrderNew:
		if ev.OrderRef == 0 {
			return // no reference was left for it
		}
		var row OrderRow
		row.fill(ev)
		v.orders.retire(v.orders.insert(&row, clientID))
		v.remember(ev, matcher.KeyOrder, ev.Order(), clientID)
	case matcher.OrderReplace:
		v.rememberReplace(ev, clientID)
	case matcher.TradeNew:
		v.remember(ev, matcher.KeyTrade, ev.InputSeq, clientID)
	case matcher.SwapBook, matcher.SwaptionBook:
		v.remember(ev, matcher.KeyContract, ev.InputSeq, clientID)
	}
}

// rememberReplace remembers the key of a replace, unless it names an order that never existed.
func (v *Views) rememberReplace(ev *matcher.Event, clientID []byte) {
	ref := ev.Cmd().OrderRef
	number := matcher.LastNumber(uint64(v.orders.lastRef.Load()), ref)
	if at := v.orders.find(ref); at != 0 {
		number = v.orders.slots[at].row.Number()
	}
	if number != 0 {
		v.remember(ev, matcher.KeyOrder, number, clientID)
	}
}

// remember keeps the decision of a first event, if its command carries a key.
func (v *Views) remember(ev *matcher.Event, kind matcher.IdempotencyKind, ref uint64,
	clientID []byte) {
	cmd := ev.Cmd()
	if cmd.PriceTicks == 0 {
		return
	}
	row := KeyRow{
		Key: uint64(cmd.PriceTicks), InputSeq: ev.InputSeq, TermsHash: TermsHash(cmd, clientID),
		Ref: ref, Kind: kind, Reason: ev.Reason,
	}
	if cmd.Version >= 2 {
		row.ByAccount, row.AccountID = true, cmd.AccountID
	}
	v.keys.remember(&row)
}

// order returns the slot of the order that an event is about. The engine knows the order, so a
// missing row is a bug.
func (v *Views) order(ev *matcher.Event) uint32 {
	at := v.orders.find(ev.OrderRef)
	if at == 0 {
		missingOrder(ev)
	}
	return at
}

// filled applies one executed fill to the order, the position and the prices. The incoming order of
// a match is retired with its command's last event, because the engine retires the resting orders
// that it fills before it.
func (v *Views) filled(ev *matcher.Event) {
	detail := ev.Detail()
	v.tradeSeq = ev.TradeSeq
	account := v.accounts.find(ev.AccountID)
	if account < 0 {
		missingAccount(ev)
	}
	if v.positions.at(account, ev.SecurityID).set(detail.PositionQty, detail.AverageCost) {
		row := v.accounts.slots[account].row
		row.held++
		v.accounts.slots[account].set(&row)
	}
	// The fill of the other side follows at the same price.
	if ev.Flags&matcher.EventAggressor == 0 {
		v.securities.at(ev.SecurityID).trade(ev)
	}
	if ev.OrderRef == 0 {
		return
	}
	at := v.order(ev)
	s := &v.orders.slots[at]
	row, level := &s.row, s.row.level
	if level != 0 {
		if detail.Leaves == 0 {
			v.levels.leave(level, ev.Qty)
			level = 0
		} else {
			v.levels.reduce(level, ev.Qty)
		}
	}
	s.lock.Begin()
	store(&row.Leaves, detail.Leaves)
	store(&row.Status, ev.Status)
	store(&row.LastPx, ev.Px)
	store(&row.LastQty, ev.Qty)
	store(&row.UpdatedMillis, ev.TimeMillis)
	store(&row.level, level)
	s.lock.End()
	if detail.Leaves != 0 {
		return
	}
	v.orders.open--
	if ev.Flags&matcher.EventAggressor != 0 {
		v.finished = at
	} else {
		v.orders.retire(at)
	}
}

// canceled ends an order; Qty is the quantity not executed.
func (v *Views) canceled(ev *matcher.Event) {
	at := v.order(ev)
	s := &v.orders.slots[at]
	row := &s.row
	if row.level != 0 {
		v.levels.leave(row.level, row.Leaves)
	}
	s.lock.Begin()
	store(&row.Leaves, ev.Qty)
	store(&row.Status, ev.Status)
	store(&row.Reason, ev.Reason)
	store(&row.UpdatedMillis, ev.TimeMillis)
	store(&row.level, 0)
	s.lock.End()
	v.orders.open--
	v.orders.retire(at)
}

// replaced gives an order a new total quantity and limit. Unless the whole order rests, events for
// fills and for a rest or a cancel follow.
func (v *Views) replaced(ev *matcher.Event, clientID []byte) {
	s := &v.orders.slots[v.order(ev)]
	row, level := &s.row, uint32(0)
	if row.level != 0 {
		v.levels.leave(row.level, row.Leaves)
	}
	leaves := row.Leaves + ev.Qty - row.Qty
	if ev.Flags&(matcher.EventRests|matcher.EventKeptPlace) != 0 {
		level = v.levels.add(row.SecurityID, row.Side, ev.Px, leaves)
	}
	s.lock.Begin()
	store(&row.Leaves, leaves)
	store(&row.Qty, ev.Qty)
	store(&row.LimitPx, ev.Px)
	store(&row.Status, ev.Status)
	store(&row.UpdatedMillis, ev.TimeMillis)
	store(&row.level, level)
	s.lock.End()
	v.rememberReplace(ev, clientID)
}

// rested puts the remaining quantity of an order onto the book. Its leaves are those after its last
// fill.
func (v *Views) rested(ev *matcher.Event) {
	s := &v.orders.slots[v.order(ev)]
	level := v.levels.add(s.row.SecurityID, s.row.Side, s.row.LimitPx, s.row.Leaves)
	s.lock.Begin()
	store(&s.row.level, level)
	s.lock.End()
}

// control applies the change of a control, a tick or a symbol. Markers change nothing, and the fill
// of a force fill follows in an event of its own.
func (v *Views) control(ev *matcher.Event) {
	cmd := ev.Cmd()
	if cmd.TemplateID == matcher.TemplateSymbolRegister {
		v.securities.register(ev.SecurityID, tickerOf(cmd))
		return
	}
	if cmd.TemplateID != matcher.TemplateCommand {
		return
	}
	switch cmd.Type {
	case matcher.PriceTick:
		if s := v.securities.at(cmd.SecurityID); ev.Flags&matcher.EventLate == 0 {
			s.price(cmd.PriceTicks, ev.TimeMillis, s.row.traded)
		}
	case matcher.AccountControl:
		keep := cmd.Side&matcher.KeepEnabled != 0
		v.accounts.control(cmd.AccountID, accountFlagsOf(cmd), keep, cmd.PriceTicks)
		v.noteSource(AccountSource, cmd)
	case matcher.SecurityControl:
		v.securities.at(cmd.SecurityID).control(cmd)
		v.noteSource(SecuritySource, cmd)
	case matcher.RestrictionControl:
		bits := uint64(cmd.Side&1) * flagRestricted
		v.securities.at(cmd.SecurityID).flag(flagRestricted, bits, cmd.PriceTicks)
	case matcher.PolicyControl:
		v.policy.control(cmd.PriceTicks, cmd.Side == 1, int64(cmd.Qty), cmd.LimitPx)
	case matcher.CapacityControl:
		v.raise(cmd)
	}
}

// limits notes the version of a change of limits, and the limits of all accounts that are part of
// the policy.
func (v *Views) limits(ev *matcher.Event) {
	position, concentration := int64(0), int64(0)
	if limits := ev.Limits(); !limits.ForAccount {
		position = limits.Values[matcher.LimitPosition]
		concentration = limits.Values[matcher.LimitConcentration]
	}
	v.policy.control(ev.Px, v.policy.row.kill == 1, position, concentration)
}

// tickerOf is the char[32] of a template 7 record, which lies behind the request id.
func tickerOf(cmd *matcher.Command) *[matcher.TickerBytes]byte {
	return (*[matcher.TickerBytes]byte)(unsafe.Pointer(&cmd.EventTimeMillis))
}
