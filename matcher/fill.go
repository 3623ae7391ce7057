package matcher

import "unsafe"

// FillBytes is the size of a fill in the journal's fill blocks and in the blotter.
const FillBytes = 64

// Fill is one executed fill: one side of a match, of a market trade or of a force fill. All
// post-trade services are built on this record. The journal stores it as it lies in memory, so its
// layout is fixed and its padding is zero.
type Fill struct {
	// From 1, without a hole; the two fills of a match have two, the incoming order's first.
	TradeSeq   uint64
	InputSeq   uint64
	TimeMillis int64
	// Execution price x 1e6, the resting order's in a match.
	Px         int64
	OrderRef   uint32 // 0 for a market trade
	AccountID  uint32
	SecurityID uint32
	Qty        int32
	CounterRef uint32 // the order on the other side, 0 for none
	Side       Side
	_          uint8
	Flags      uint16 // EventAggressor, EventMarket, EventForced
	Era        uint16 // of OrderRef, see Order
	CounterEra uint16 // of CounterRef
	_          uint32
}

var _ = [1]struct{}{}[unsafe.Sizeof(Fill{})-FillBytes]

// Bytes returns the fill's own memory, little endian. It is no copy.
func (f *Fill) Bytes() *[FillBytes]byte { return (*[FillBytes]byte)(unsafe.Pointer(f)) }

// FillFlags are the flags of an event that its fill keeps.
const FillFlags = EventAggressor | EventMarket | EventForced

// Fill returns the executed fill that an EventFilled states; of another kind the result means
// nothing.
func (e *Event) Fill() Fill {
	return Fill{
		TradeSeq: e.TradeSeq, InputSeq: e.InputSeq, TimeMillis: e.TimeMillis, Px: e.Px,
		OrderRef: e.OrderRef, AccountID: e.AccountID, SecurityID: e.SecurityID, Qty: e.Qty,
		CounterRef: e.Detail().CounterRef, Side: e.Side,
		Flags: e.Flags & FillFlags, Era: e.Era, CounterEra: e.Detail().CounterEra,
	}
}
