package matcher

import "unsafe"

// PriceScale is how many ticks of a price column make one currency unit: every
// price, rate and notional in this package is a whole number of millionths.
const PriceScale = 1_000_000

// The identity of the record on the wire: SBE schema 111. The version names the rules that decide
// the record. So a replay decides a record of an older version as the engine did when the record
// was written. Every new command has SchemaVersion. The engine sequences it as a record of
// RecordVersion, unless only a rule of a later version decides it.
const (
	SchemaID      = 111
	SchemaVersion = 3 // the rules for new commands
	RecordVersion = 2 // the rules of most records
	OldestVersion = 1 // the earlier rules; rules.go lists the differences

	// One template for all that CommandType lists, one for a ticker, which needs more room than the
	// columns have, and one for the marker of a risk extract.
	TemplateCommand        = 1
	TemplateSymbolRegister = 7
	TemplateRiskExtract    = 8

	// The bytes behind the 8-byte header that belong to the template. Every record is padded with
	// zeros to CommandBytes.
	blockCommand        = 56
	blockSymbolRegister = 40
	blockRiskExtract    = 24
)

// CommandBytes is the size of a command in a ring slot, in the journal and on
// the wire: one cache line.
const CommandBytes = 64

// CommandType states what a command of template 1 asks for. The number is stored. A record of an
// older version cannot have a type that came later: see known.
type CommandType uint8

// The types of template 1.
const (
	// From clients: 1, 2, 5, 11, 12 and 13. From operators, the control feeds or a start: 3, 7 to 10
	// and 14 to 17. From price feeds and operators: 4. A SNAPSHOT (6) changes nothing, and no edge
	// writes one.
	OrderNew           CommandType = 1
	OrderCancel        CommandType = 2
	ForceFill          CommandType = 3
	PriceTick          CommandType = 4
	TradeNew           CommandType = 5
	SnapshotMark       CommandType = 6
	AccountControl     CommandType = 7
	SecurityControl    CommandType = 8
	PolicyControl      CommandType = 9
	RestrictionControl CommandType = 10
	OrderReplace       CommandType = 11
	SwapBook           CommandType = 12
	SwaptionBook       CommandType = 13
	CapacityControl    CommandType = 14 // of version 2
	OperatorNote       CommandType = 15 // of version 2
	LimitsControl      CommandType = 16 // of version 2
	TokenRevoke        CommandType = 17 // of version 2
)

// Side is the direction of an order, a trade or a swap.
type Side uint8

// The two sides. For a swap Buy is Receive and Sell is Pay.
const (
	Buy  Side = 0
	Sell Side = 1
)

// What Command.Side holds in a SECURITY_CONTROL, and the stored column of a security. A halted
// security is not tradable even when it is enabled. An ACCOUNT_CONTROL uses bit 0 in the same way.
const (
	SecurityEnabled Side = 1 << 0
	SecurityHalted  Side = 1 << 1
)

// The other bits of Command.Side in an ACCOUNT_CONTROL or SECURITY_CONTROL of version 2. With such
// a bit the flag applies only to an account or a security that is not known yet; a known one keeps
// its flag. So a change of a source's record that does not carry the flag does not alter what an
// operator has set by hand.
const (
	KeepEnabled Side = 1 << 2
	KeepHalted  Side = 1 << 3
)

// Opposite returns the other side.
func (s Side) Opposite() Side { return s ^ 1 }

// The bits of Command.Flags. Any other bit makes the record unreadable.
const (
	// No order, trade or booking is decided differently for it.
	FlagShadow uint16 = 1 << 0
	// Time in force of an order: IOC cancels what does not trade at once, FOK trades the whole
	// quantity at once or nothing, post-only is refused if it would trade. At most one of the three.
	FlagIOC      uint16 = 1 << 1
	FlagFOK      uint16 = 1 << 2
	FlagPostOnly uint16 = 1 << 3

	flagsKnown = FlagShadow | FlagIOC | FlagFOK | FlagPostOnly
)

// Command is one 64-byte record, exactly as it lies in a ring slot, in the
// journal and on the wire (SBE template 1, little endian). Templates 7 and 8
// share its header and its InputSeq and are read through Symbol and Extract.
//
// What each type carries beside account, security, side, quantity and flags:
//
//	ORDER_NEW            LimitPx (0 or less = market), PriceTicks = idempotency key (0 none),
//	                     OrderRef = the gate's refusal as a RiskReason (0 = admitted);
//	                     SecurityID may be an UnknownTicker, and the order is then refused
//	ORDER_CANCEL         OrderRef; AccountID must be the order's
//	ORDER_REPLACE        OrderRef, Qty = the new total, LimitPx, PriceTicks = idempotency key;
//	                     AccountID, SecurityID and Side must be the order's
//	FORCE_FILL           OrderRef, Qty, LimitPx = the execution price; AccountID must be the
//	                     order's
//	PRICE_TICK           SecurityID, PriceTicks = the price
//	TRADE_NEW            like ORDER_NEW without a price: booked at the last known price
//	ACCOUNT_CONTROL      Side: bit 0 enabled, bit 2 keep it; PriceTicks = control version,
//	                     OrderRef = the mark of the source's epoch when it comes from the control
//	                     feed, 0 by hand
//	SECURITY_CONTROL     Side: bit 0 enabled, bit 1 halted, bits 2 and 3 keep them; PriceTicks and
//	                     OrderRef as above
//	RESTRICTION_CONTROL  Side = restricted, PriceTicks = control version
//	POLICY_CONTROL       Side = kill switch, PriceTicks = policy version, Qty = maximum position
//	                     (0 = unchanged), LimitPx = maximum concentration notional x 1e6
//	                     (0 = unchanged)
//	CAPACITY_CONTROL     AccountID, SecurityID, Qty = room for accounts, securities and contracts
//	                     (a value that is not larger than before changes nothing)
//	OPERATOR_NOTE        OrderRef = the number of this part from 0, Qty = parts of the note,
//	                     AccountID = acts: how many commands behind the last part it is about,
//	                     LimitPx = what binds it to them (0 without acts). Its text is where the
//	                     client ids are; see package matcher/note
//	LIMITS_CONTROL       one part of a LimitsChange: PriceTicks = policy version, SecurityID = the
//	                     LimitID, LimitPx = the value, Side = 1: remove the account's own limit;
//	                     OrderRef = 1: only for AccountID, 0: for all accounts; Qty = part (from 1)
//	                     in bits 0 to 7, number of parts from bit 8 on. The last part applies the
//	                     change; a part that does not continue the one before it is refused
//	TOKEN_REVOKE         LimitPx and PriceTicks = the SubjectHash; tokens issued up to the event time
//	                     are refused
//	SWAP_BOOK            Qty = notional, LimitPx = fixed rate, PriceTicks = idempotency key,
//	                     OrderRef = effective and maturity day, SecurityID = convention; see
//	                     ContractTerms
//	SWAPTION_BOOK        like SWAP_BOOK; SecurityID = convention, exercise style and expiry day
//
// A CAPACITY_CONTROL of version 3 also has OrderRef, PriceTicks and LimitPx = room for open orders,
// retained orders and idempotency keys; records before version 3 say nothing about these.
type Command struct {
	// The header, 8 bytes: block length and template agree (Decode checks it), the version names the
	// rules.
	BlockLength uint16
	TemplateID  uint16
	SchemaID    uint16
	Version     uint16

	// InputSeq is the sequence once the engine has assigned it. Before that it is the submitter's
	// correlation id (0 = no caller waits for the answer).
	InputSeq uint64
	// The only clock that decisions know: epoch milliseconds, given by the edge. It may go back from
	// one command to the next.
	EventTimeMillis int64
	LimitPx         int64
	PriceTicks      int64
	OrderRef        uint32
	AccountID       uint32
	SecurityID      uint32
	Qty             int32
	// The term of the leader in a cluster, else 0. No decision depends on it.
	LeaderEpoch uint32
	Type        CommandType
	Side        Side
	Flags       uint16
}

// Compile-time check: a command is one line, and its fields lie where the wire has them.
var (
	_ = [1]struct{}{}[unsafe.Sizeof(Command{})-CommandBytes]
	_ = [1]struct{}{}[unsafe.Offsetof(Command{}.InputSeq)-8]
	_ = [1]struct{}{}[unsafe.Offsetof(Command{}.OrderRef)-(8+32)]
	_ = [1]struct{}{}[unsafe.Offsetof(Command{}.Type)-(8+52)]
	_ = [1]struct{}{}[unsafe.Offsetof(Command{}.Flags)-(8+54)]
)

// NewCommand returns a template 1 record of the given type with its header filled. Everything else
// is zero; the caller sets what the type carries, and the event time.
func NewCommand(t CommandType) Command {
	return Command{
		BlockLength: blockCommand, TemplateID: TemplateCommand,
		SchemaID: SchemaID, Version: SchemaVersion, Type: t,
	}
}

// NewSymbolRegister returns a template 7 record. The ticker must be 1 to
// TickerBytes bytes of printable ASCII; the caller has checked it.
func NewSymbolRegister(ticker string) Command {
	c := Command{
		BlockLength: blockSymbolRegister, TemplateID: TemplateSymbolRegister,
		SchemaID: SchemaID, Version: SchemaVersion,
	}
	copy(c.symbolBytes()[:], ticker)
	return c
}

// symbolBytes is the char[32] of a template 7 record: it lies behind the request id, over the
// fields from EventTimeMillis on. The pointer is into c.
func (c *Command) symbolBytes() *[TickerBytes]byte {
	return (*[TickerBytes]byte)(unsafe.Pointer(&c.EventTimeMillis))
}

// about is what Event.about is in an event, so first copies the four fields in one move.
func (c *Command) about() *[16]byte { return (*[16]byte)(unsafe.Pointer(&c.OrderRef)) }

// Bytes returns the record's own memory, in wire order on a little-endian machine. It is no copy: a
// change of one is a change of the other.
func (c *Command) Bytes() *[CommandBytes]byte {
	return (*[CommandBytes]byte)(unsafe.Pointer(c))
}
