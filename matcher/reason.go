package matcher

// RiskReason states why a command was refused, or why an order was cancelled by another than its
// owner. The ordinal is stored in journals and snapshots, so entries are only appended. The order
// of the list is not that of the checks: screenOrder and docs/http.md have that.
type RiskReason uint8

// The reasons. Their names are part of the contract (docs/http.md); clients test them.
const (
	// No refusal. A cancel with it came from the owner or from time in force.
	Accepted RiskReason = iota
	// The command contradicts itself or the state: quantity, side, flags, grid, an order that is not
	// open or is another account's, a policy version that does not rise.
	Invalid
	// From the gate alone: the token does not cover the command. The engine knows no tokens.
	NotEntitled
	// Account and security, as controls have set them. A security whose ticker is registered, but
	// which no SECURITY_CONTROL has made known, is unknown; a halted one is disabled.
	UnknownAccount
	AccountDisabled
	UnknownSecurity
	SecurityDisabled
	Restricted
	// The policy refuses new business: orders, trades, replaces and bookings. Cancels pass.
	KillSwitch
	// The market price that an order or trade without a price is judged at is not there, or too old by
	// event time.
	PriceMissing
	PriceStale
	// A limit price too far from the market price. In a cancel: a market order that came to its bound.
	PriceCollar
	// The limits, each by its number (LimitID).
	OrderSize
	OrderNotional
	CreditLimit
	PositionLimit
	ConcentrationLimit
	// The idempotency key is known. The event repeats the first decision (Event.Duplicated).
	Duplicate
	// From the gate alone: the edge does not have the current accounts and securities.
	ControlStateStale
	// A table is full: orders, order numbers, accounts, tickers, contracts or revocations.
	Capacity
	// A verdict that the gate cannot have given. It shows a fault of the edge, not of the client.
	InternalPolicyError
	// Of a resting order only: an order of its own account met it.
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
