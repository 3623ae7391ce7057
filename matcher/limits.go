package matcher

import "unsafe"

// LimitID numbers a risk limit. The number is stored.
type LimitID uint8

// The limits that a LIMITS_CONTROL sets. Money is x 1e6.
const (
	LimitOrderQty      LimitID = 0
	LimitOrderNotional LimitID = 1
	LimitPosition      LimitID = 2
	LimitConcentration LimitID = 3
	LimitCredit        LimitID = 4
	LimitPriceAge      LimitID = 5 // milliseconds
	LimitCollar        LimitID = 6 // basis points; 0 = no collar

	// LimitCount is the number of limits.
	LimitCount = 7
)

var limitNames = [LimitCount]string{
	"maxOrderQuantity", "maxOrderNotional", "maxPositionQuantity", "maxConcentrationNotional",
	"creditLimit", "priceMaxAgeMs", "priceCollarBps",
}

// String returns the name of the limit in JSON.
func (id LimitID) String() string {
	if id < LimitCount {
		return limitNames[id]
	}
	return "unknown"
}

// Range returns the smallest and the largest value that an engine takes.
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

// RiskLimits are the values of all limits, by LimitID.
type RiskLimits [LimitCount]int64

// LimitSet names some of the limits: bit n is limit n.
type LimitSet uint8

// AllLimits is the set of all limits.
const AllLimits LimitSet = 1<<LimitCount - 1

// Has reports whether a limit is in the set.
func (s LimitSet) Has(id LimitID) bool { return s>>id&1 != 0 }

// Over returns the limits of an account that has those of the set as its own.
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
type LimitsChange struct {
	Version    int64 // of the policy
	ForAccount bool  // only AccountID; else all accounts
	AccountID  uint32
	Set        LimitSet   // the limits that get the value in Values
	Remove     LimitSet   // the account's own limits to be removed; those of all accounts hold then
	Values     RiskLimits // of Set, else 0
}

// What Command.OrderRef holds in a LIMITS_CONTROL.
const (
	limitsOfAll     = 0
	limitsOfAccount = 1
)

// The two parts of Command.Qty in a LIMITS_CONTROL.
const (
	partBits = 8
	partMask = 1<<partBits - 1
)

// AppendTo appends the change as commands, one for each limit. The caller must sequence them side
// by side: the engine applies the whole change with the last of them, or nothing.
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

// LimitsDetail is the second line of an EventLimits: what holds from this command on.
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
func (s LimitSet) only(values *RiskLimits) RiskLimits {
	return s.Over(&RiskLimits{}, values)
}
