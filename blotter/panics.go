package blotter

import (
	"fmt"

	"posttrade/matcher"
)

// The panics of the hot files. Each is a bug of the event stream or of this package, and its text
// names both values that do not fit together.

// holeInFills panics for a fill that is missing in the stream: a Blotter computes the slot from the
// sequence, so it cannot leave one out.
func holeInFills(tradeSeq, last uint64) {
	panic(fmt.Sprintf("blotter: fill tradeSeq=%d after tradeSeq=%d", tradeSeq, last))
}

// holeInEvents panics for a command that is missing, comes twice, or begins before the one before
// has had its last event.
func holeInEvents(inputSeq, current, applied uint64) {
	panic(fmt.Sprintf("blotter: first event of inputSeq=%d after inputSeq=%d, complete up to %d",
		inputSeq, current, applied))
}

// unknownEvent panics for a kind that these views do not know: engine and views are of different
// builds.
func unknownEvent(ev *matcher.Event) {
	panic(fmt.Sprintf("blotter: event of kind %d at inputSeq=%d", ev.Kind, ev.InputSeq))
}

// missingOrder panics for an event about an order of which the views have seen no acceptance, or
// which they have dropped before the engine has.
func missingOrder(ev *matcher.Event) {
	panic(fmt.Sprintf(
		"blotter: event of kind %d at inputSeq=%d about order %d, of which there is no row",
		ev.Kind, ev.InputSeq, ev.OrderRef))
}

// missingAccount panics for a fill of an account that neither the genesis record nor an
// ACCOUNT_CONTROL has made.
func missingAccount(ev *matcher.Event) {
	panic(fmt.Sprintf("blotter: fill at inputSeq=%d for account %d, which nothing has announced",
		ev.InputSeq, ev.AccountID))
}

// notRegistered panics for an event about a security beyond those of the genesis record and the
// SYMBOL records.
func notRegistered(id uint32, count int64) {
	panic(fmt.Sprintf("blotter: event about security %d, %d are registered", id, count))
}

// tableFull panics for an account or a security that the engine has taken in and for which the
// views have no row: their capacities differ. Also for a security that does not get the next id.
func tableFull(what string, id uint32, count int) {
	panic(fmt.Sprintf("blotter: no room for %s %d after %d", what, id, count))
}

// noContractLeft is tableFull for contracts.
func noContractLeft(id uint64, count int) {
	panic(fmt.Sprintf("blotter: no room for contract %d after %d", id, count))
}

// noSlotLeft is tableFull for orders: more are open and retained than the limits allow.
func noSlotLeft(open, kept, slots int) {
	panic(fmt.Sprintf("blotter: no slot left for an order beside %d open and %d retained in %d",
		open, kept, slots))
}

// noRoomFor panics when the system gives no memory for a CAPACITY_CONTROL that the engine has
// carried out.
func noRoomFor(to matcher.Capacities, err error) {
	panic(fmt.Sprintf("blotter: no memory for the capacities %+v: %v", to, err))
}
