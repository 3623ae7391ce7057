package blotter

import (
	"fmt"

	"posttrade/matcher"
)

// The panics of the hot files. Each is a bug of the event stream or of this package, and its text
// names both values that do not fit together.

func holeInFills(tradeSeq, last uint64) {
	panic(fmt.Sprintf("blotter: fill tradeSeq=%d after tradeSeq=%d", tradeSeq, last))
}

func holeInEvents(inputSeq, current, applied uint64) {
	panic(fmt.Sprintf("blotter: first event of inputSeq=%d after inputSeq=%d, complete up to %d",
		inputSeq, current, applied))
}

func unknownEvent(ev *matcher.Event) {
	panic(fmt.Sprintf("blotter: event of kind %d at inputSeq=%d", ev.Kind, ev.InputSeq))
}

func missingOrder(ev *matcher.Event) {
	panic(fmt.Sprintf(
		"blotter: event of kind %d at inputSeq=%d about order %d, of which there is no row",
		ev.Kind, ev.InputSeq, ev.OrderRef))
}

func missingAccount(ev *matcher.Event) {
	panic(fmt.Sprintf("blotter: fill at inputSeq=%d for account %d, which nothing has announced",
		ev.InputSeq, ev.AccountID))
}

func notRegistered(id uint32, count int64) {
	panic(fmt.Sprintf("blotter: event about security %d, %d are registered", id, count))
}

func tableFull(what string, id uint32, count int) {
	panic(fmt.Sprintf("blotter: no room for %s %d after %d", what, id, count))
}

func noContractLeft(id uint64, count int) {
	panic(fmt.Sprintf("blotter: no room for contract %d after %d", id, count))
}

func noSlotLeft(open, kept, slots int) {
	panic(fmt.Sprintf("blotter: no slot left for an order beside %d open and %d retained in %d",
		open, kept, slots))
}

func noRoomFor(to matcher.Capacities, err error) {
	panic(fmt.Sprintf("blotter: no memory for the capacities %+v: %v", to, err))
}
