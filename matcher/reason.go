package matcher

// RiskReason states why a command was refused. The ordinal is stored in journals and snapshots, so
// entries are only appended. Checks run in the order of the list.
type RiskReason uint8

// The reasons, in the order of the contract.
const (
	Accepted RiskReason = iota
	Invalid
	NotEntitled
	UnknownAccount
	AccountDisabled
	UnknownSecurity
	SecurityDisabled
	Restricted
	KillSwitch
	PriceMissing
	PriceStale
	PriceCollar
	OrderSize
	OrderNotional
	CreditLimit
	PositionLimit
	ConcentrationLimit
	Duplicate
	ControlStateStale
	Capacity
	InternalPolicyError
	SelfTradePrevented

	// ReasonCount is the number of reasons.
	ReasonCount
)

var reasonNames = [ReasonCount]string{
	"ACCEPTED", "INVALID", "NOT_ENTITLED", "UNKNOWN_ACCOUNT", "ACCOUNT_DISABLED",
	"UNKNOWN_SECURITY", "SECURITY_DISABLED", "RESTRICTED", "KILL_SWITCH", "PRICE_MISSING",
	"PRICE_STALE", "PRICE_COLLAR", "ORDER_SIZE", "ORDER_NOTIONAL", "CREDIT_LIMIT",
	"POSITION_LIMIT", "CONCENTRATION_LIMIT", "DUPLICATE", "CONTROL_STATE_STALE", "CAPACITY",
	"INTERNAL_POLICY_ERROR", "SELF_TRADE_PREVENTED",
}

// String returns the name that JSON answers and metrics carry.
func (r RiskReason) String() string {
	if r < ReasonCount {
		return reasonNames[r]
	}
	return "UNKNOWN"
}
