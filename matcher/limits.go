package matcher

import "unsafe"

// LimitID numbers a risk limit. The number is stored: in a LIMITS_CONTROL, in the bits of a
// LimitSet and as the column of a LIMITS record. So numbers are only appended, and at most eight
// fit a LimitSet.
type LimitID uint8

// The limits that a LIMITS_CONTROL sets. Money is x 1e6. Each is the largest value that passes;
// doc.go states what is counted against it.
const (
	// One order or trade: its quantity, and its quantity times the price that it is judged at.
	LimitOrderQty      LimitID = 0
	LimitOrderNotional LimitID = 1
	// What an account would hold of one security, and its value at the judged price, if this order and
	// all that it has open on the side were executed.
	LimitPosition      LimitID = 2
	LimitConcentration LimitID = 3
	// What an account would have paid net, or received net, over all securities.
	LimitCredit LimitID = 4
	// Milliseconds between the event time of the market price and that of the command. It concerns
	// only what is judged at the market price: market orders and market trades.
	LimitPriceAge LimitID = 5
	// How far a limit price may be from the market price, in basis points; 0 = no collar.
	LimitCollar LimitID = 6

	// LimitCount is the number of limits.
	LimitCount = 7
)

var limitNames = [LimitCount]string{
	"maxOrderQuantity", "maxOrderNotional", "maxPositionQuantity", "maxConcentrationNotional",
	"creditLimit", "priceMaxAgeMs", "priceCollarBps",
}

// String returns the name of the limit in JSON, "unknown" for a number that this build does not
// know.
func (id LimitID) String() string {
	if id < LimitCount {
		return limitNames[id]
	}
	return "unknown"
}

// Range returns the smallest and the largest value that an engine takes. A value outside is refused
// as INVALID in a command, and as ErrSnapshotValue in a snapshot. 0 is valid only for the collar,
// where it means that there is none.
func (id LimitID) Range() (least, most int64) {
	switch id {
	case LimitOrderQty:
		return 1, 1<<31 - 1
	case LimitCollar:
		return 0, maxInt64
	}
	return 1, maxInt64
}

// Money reports that the limit is an amount of money.
func (id LimitID) Money() bool {
	return id == LimitOrderNotional || id == LimitConcentration || id == LimitCredit
}

// RiskLimits are the values of all limits, by LimitID, in the unit of each.
type RiskLimits [LimitCount]int64

// LimitSet names some of the limits: bit n is limit n.
type LimitSet uint8

// AllLimits is the set of all limits.
const AllLimits LimitSet = 1<<LimitCount - 1

// Has reports whether a limit is in the set; false for a number that no limit has.
func (s LimitSet) Has(id LimitID) bool { return s>>id&1 != 0 }

// Over returns the limits of an account that has those of the set as its own: those of own for the
// set, those of all for the rest.
func (s LimitSet) Over(all, own *RiskLimits) RiskLimits {
	limits := *all
	for id := range LimitID(LimitCount) {
		if s.Has(id) {
			limits[id] = own[id]
		}
	}
	return limits
}

// RiskLimits returns the limits that a genesis record gives to all accounts.
func (l *Limits) RiskLimits() RiskLimits {
	return RiskLimits{
		LimitOrderQty: l.MaxOrderQty, LimitOrderNotional: l.MaxOrderNotional,
		LimitPosition: l.MaxPositionQty, LimitConcentration: l.MaxConcentrationNotional,
		LimitCredit: l.CreditLimit, LimitPriceAge: l.PriceMaxAgeMillis, LimitCollar: l.PriceCollarBps,
	}
}

// LimitsChange is what one request asks for: new values for some limits, of all accounts or of one.
//
//   - Set and Remove have no limit in common, and at least one of them is not empty.
//   - Remove is empty without ForAccount: a limit of all accounts always has a value.
//   - A value that Set names is within Range.
//
// AppendTo does not check this. The engine refuses the part that breaks it, and with it the change.
type LimitsChange struct {
	// Of the policy: above the one in force, or the engine refuses the change.
	Version    int64
	ForAccount bool // only AccountID; else all accounts
	AccountID  uint32
	Set        LimitSet   // the limits that get the value in Values
	Remove     LimitSet   // the account's own limits to be removed; those of all accounts hold then
	Values     RiskLimits // of Set, else 0
}

// What Command.OrderRef holds in a LIMITS_CONTROL. With limitsOfAll the AccountID is 0.
const (
	limitsOfAll     = 0
	limitsOfAccount = 1
)

// The two parts of Command.Qty in a LIMITS_CONTROL: the number of the part from 1 in the lower
// bits, the number of parts above. A change has at most LimitCount parts, so both fit.
const (
	partBits = 8
	partMask = 1<<partBits - 1
)

// AppendTo appends the change as commands, one for each limit, ascending by LimitID. The caller
// must sequence them side by side: the engine applies the whole change with the last of them, or
// nothing. The caller sets the event time of each.
func (c *LimitsChange) AppendTo(commands []Command) []Command {
	begin := len(commands)
	for id := range LimitID(LimitCount) {
		if !c.Set.Has(id) && !c.Remove.Has(id) {
			continue
		}
		cmd := NewCommand(LimitsControl)
		cmd.PriceTicks, cmd.SecurityID, cmd.LimitPx = c.Version, uint32(id), c.Values[id]
		if c.Remove.Has(id) {
			cmd.Side, cmd.LimitPx = 1, 0
		}
		if c.ForAccount {
			cmd.OrderRef, cmd.AccountID = limitsOfAccount, c.AccountID
		}
		commands = append(commands, cmd)
	}
	parts := commands[begin:]
	for i := range parts {
		parts[i].Qty = int32(i + 1 | len(parts)<<partBits)
	}
	return commands
}

// LimitsDetail is the second line of an EventLimits: what holds from this command on. The first
// event of the same command states only that the last part was accepted.
type LimitsDetail struct {
	Values     RiskLimits // of Own, else 0
	Own        LimitSet   // the account's own limits; all limits without ForAccount
	ForAccount bool       // of Event.AccountID; else of all accounts
	_          [6]byte
}

// Limits is the second line of an EventLimits.
func (e *Event) Limits() *LimitsDetail { return (*LimitsDetail)(unsafe.Pointer(&e.tail)) }

var _ = [1]struct{}{}[unsafe.Sizeof(LimitsDetail{})-64]

// RiskLimits returns the limits of all accounts. Only the owner may call it.
func (e *Engine) RiskLimits() RiskLimits { return e.all.RiskLimits }

// OwnLimits are the limits of one account that differ from those of all accounts.
type OwnLimits struct {
	AccountID uint32
	Own       LimitSet
	Values    RiskLimits // of Own, else 0
}

// EachOwnLimits calls f for every account with limits of its own, in the order in which the
// accounts appeared, until f returns false. Only the owner may call it.
func (e *Engine) EachOwnLimits(f func(OwnLimits) bool) {
	for i := range e.accounts.rows[:e.accounts.count] {
		a := &e.accounts.rows[i]
		if a.bounds() == 0 {
			continue
		}
		b := e.bounds.table.at(a.bounds())
		if !f(OwnLimits{a.id, b.own, b.own.only(&b.RiskLimits)}) {
			return
		}
	}
}

// only returns the values of the set, and 0 for every other limit.
//
// Stored and stated limits have 0 where the set has no bit, so equal limits have equal bytes.
func (s LimitSet) only(values *RiskLimits) RiskLimits {
	return s.Over(&RiskLimits{}, values)
}
