package wire

import (
	"unsafe"

	"posttrade/matcher"
)

// RequestBytes and RecordBytes are the sizes of a slot in either direction.
const (
	RequestBytes = 128
	RecordBytes  = 128

	MaxClientID = 64
)

// Request is a slot of the command ring: the 64-byte command, then the client's own id of it. One
// slot is one command and one answer; no command spans two slots.
//
// The command's InputSeq is the client's correlation id, returned in every record about the
// command. The fields that the server fills in must be 0: EventTimeMillis, PriceTicks, LeaderEpoch,
// and the OrderRef of a new order or trade; of a cancel and a replace also SecurityID, Side and
// Flags, which are the order's. OrderRef alone is unique among the orders that the server holds;
// Record has the fields of an order's full number.
//
// The server copies a slot before it judges it, so a client that changes a slot after its
// publication changes nothing that was judged.
type Request struct {
	Command  matcher.Command
	ClientID [MaxClientID]byte // 0 to 64 bytes of printable ASCII, padded with zeros
}

// RecordKind is the kind of a record in the event ring.
type RecordKind uint8

// The kinds of records.
const (
	Answer RecordKind = 1 // the outcome of one command; always exactly one
	// one execution of that command's order; Record.Fills of them follow its Answer
	Fill RecordKind = 2
	// drop copy: one event of an entitled account; What is the matcher's event kind
	Copy  RecordKind = 3
	Trade RecordKind = 4 // market data: one execution, without accounts and orders
	Gap   RecordKind = 5 // a feed has lost Missed records here, because its reader was too slow
	Name  RecordKind = 6 // drop copy: the client id of the order accepted just before; read ClientID
	Top   RecordKind = 7 // market data: the best levels of a security; read Best
)

// Code is how far a command was processed. Only Decided is a decision of the engine; every other
// code says what became of the command instead. The number is part of the protocol.
type Code uint8

// The codes of an Answer, with the HTTP status of the same meaning.
const (
	Decided     Code = 0 // sequenced: Status is Rejected for Reason (422), or it was accepted (2xx)
	Malformed   Code = 1 // the record cannot be read; never sequenced (400)
	NotEntitled Code = 2 // the token does not cover the account; never sequenced (403)
	NotFound    Code = 3 // no such order; never sequenced (404)
	// the client id was used with other terms, or the order can no longer change (409)
	Conflict    Code = 4
	NotReady    Code = 5 // not sequenced, safe to send again (503)
	Busy        Code = 6 // not sequenced, too much is in flight, safe to send again (429)
	Unavailable Code = 7 // not sequenced: the journal has failed or is full (503)
	Unknown     Code = 8 // applied once or not at all: send it again with the same client id (504)
	Refused     Code = 9 // refused by the gate for Reason, and not sequenced (422 with sequence null)
)

var codeNames = [...]string{"DECIDED", "MALFORMED", "NOT_ENTITLED", "NOT_FOUND", "CONFLICT",
	"NOT_READY", "BUSY", "UNAVAILABLE", "UNKNOWN", "REFUSED"}

// Codes is the number of codes.
const Codes = len(codeNames)

// String is the name of the code, as metrics carry it; "CODE" for one that this build does not
// know.
func (c Code) String() string {
	if int(c) < len(codeNames) {
		return codeNames[c]
	}
	return "CODE"
}

// The bits of Record.Flags. The lower ones are the matcher's event flags.
const (
	FlagAggressor = matcher.EventAggressor // a fill of the incoming side
	FlagRests     = matcher.EventRests     // the order rests on the book
	FlagKeptPlace = matcher.EventKeptPlace // a replace that kept its priority
	FlagMarket    = matcher.EventMarket    // a market trade: there is no order
	FlagForced    = matcher.EventForced    // a force fill
	FlagDuplicate = uint16(1 << 8)         // the first decision, repeated
	FlagSnapshot  = uint16(1 << 9)         // a Top that repeats the state; SecurityID 0: their end
)

// Unstated is Record.Leaves when the open quantity of the order is not known.
const Unstated = -1

// StatusUnstated is Record.Status when the order has ended and the server no longer holds it.
const StatusUnstated matcher.OrderStatus = 255

// Record is a slot of the event ring. Its writer is the server; the client maps it read-only. A
// field that the kind does not use means nothing. Prices are x 1e6, times epoch milliseconds.
type Record struct {
	Kind        RecordKind
	Code        Code
	What        uint8 // Answer: the command's type. Copy: the matcher's event kind
	Side        matcher.Side
	Status      matcher.OrderStatus // or StatusUnstated
	Reason      matcher.RiskReason  // of Rejected; of Canceled: of its rest, 0 = as ordered
	Flags       uint16
	Correlation uint64 // Answer and Fill: the client's correlation id of the command
	InputSeq    uint64 // 0: not sequenced. Of a booked contract its id
	TimeMillis  int64
	Px          int64  // x 1e6: of a Fill, Trade or filling Copy the execution price, else the limit
	LastPx      int64  // Answer: of the last execution, 0 for none
	TradeSeq    uint64 // of the fill; of an Answer its last one, 0 for none
	OrderRef    uint32
	AccountID   uint32
	SecurityID  uint32
	Qty         int32
	Leaves      int32 // open quantity, of a cancelled order the quantity not executed; or Unstated
	LastQty     int32
	Fills       uint32 // Answer: Fill records that follow it
	Era         uint32 // of OrderRef: the order is ord-<Era * 2^32 + OrderRef>
	Missed      uint64 // Gap: number of lost records; after an overrun of the tap, of lost events
	PositionQty int64  // Copy of a fill: the account's position after it
	AverageCost int64  // Copy of a fill: that position's average cost x 1e6
	LimitPx     int64  // Copy: the order's limit
	_           uint64
}

// nameAt is the offset at which a Name holds the client id instead of numbers.
const nameAt = RecordBytes - MaxClientID

// text is the second line of a Name.
func (r *Record) text() *[MaxClientID]byte {
	return (*[MaxClientID]byte)(unsafe.Add(unsafe.Pointer(r), nameAt))
}

// SetClientID makes the record the Name of an order. id has at most MaxClientID bytes. It
// overwrites the second line: the fields from SecurityID on.
func (r *Record) SetClientID(id []byte) {
	r.Kind = Name
	clear(r.text()[copy(r.text()[:], id):])
}

// ClientID is the client id that a Name holds. It points into the record; of another kind the
// result means nothing.
func (r *Record) ClientID() []byte {
	n := 0
	for n < MaxClientID && r.text()[n] != 0 {
		n++
	}
	return r.text()[:n]
}

// bestAt is the offset at which a Top holds its levels instead of quantities.
const bestAt = RecordBytes - int(unsafe.Sizeof(Best{}))

// Best are the best levels of a security. A side without orders has the quantity 0.
type Best struct {
	BidPx     int64 // x 1e6
	BidQty    int64 // the sum of all that rests at that price
	AskPx     int64
	AskQty    int64
	BidOrders uint32
	AskOrders uint32
}

// best is the end of a Top, viewed as its levels.
func (r *Record) best() *Best { return (*Best)(unsafe.Add(unsafe.Pointer(r), bestAt)) }

// SetBest makes the record the Top of its security.
func (r *Record) SetBest(b Best) { r.Kind, *r.best() = Top, b }

// Best are the levels that a Top holds; of another kind the result means nothing.
func (r *Record) Best() Best { return *r.best() }

// Compile-time checks: slots are two lines, and fields lie at the offsets of session's doc.go.
var (
	_ = [1]struct{}{}[unsafe.Sizeof(Request{})-RequestBytes]
	_ = [1]struct{}{}[unsafe.Sizeof(Record{})-RecordBytes]
	_ = [1]struct{}{}[unsafe.Offsetof(Record{}.OrderRef)-56]
	_ = [1]struct{}{}[unsafe.Offsetof(Record{}.Fills)-80]
	_ = [1]struct{}{}[unsafe.Offsetof(Record{}.Era)-84]
	_ = [1]struct{}{}[unsafe.Offsetof(Record{}.LimitPx)-112]
	_ = [1]struct{}{}[bestAt-int(unsafe.Offsetof(Record{}.Missed))]
)
