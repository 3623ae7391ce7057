package matcher

// Limit names a limit that Suppose can change, as its setting does.
type Limit string

// The limits.
const (
	OrderQtyLimit      Limit = "risk.max-order-quantity"
	OrderNotionalLimit Limit = "risk.max-order-notional"
	PositionQtyLimit   Limit = "risk.max-position-quantity"
	ConcentrateLimit   Limit = "risk.max-concentration-notional"
	CreditUseLimit     Limit = "risk.credit-limit"
	PriceAgeLimit      Limit = "risk.price.max-age-ms"
	CollarLimit        Limit = "risk.price.collar-bps"
)

// Money reports that the limit is an amount x 1e6.
func (l Limit) Money() bool {
	return l == OrderNotionalLimit || l == ConcentrateLimit || l == CreditUseLimit
}

// Suppose makes an engine decide by another limit than its history has. Such an engine is good for
// "what if" only: nothing that it decides may be recorded. False: there is no such limit. Only the
// owner may call it, between two commands.
func (e *Engine) Suppose(l Limit, value int64) bool {
	p := &e.policy
	switch l {
	case OrderQtyLimit:
		p.maxOrderQty = value
	case OrderNotionalLimit:
		p.maxOrderNotional = value
	case PositionQtyLimit:
		p.maxPosition = value
	case ConcentrateLimit:
		p.maxConcentration = value
	case CreditUseLimit:
		p.creditLimit = value
	case PriceAgeLimit:
		p.maxAgeMillis = value
	case CollarLimit:
		p.collarBps = value
	default:
		return false
	}
	return true
}

// Without takes a supposed limit out of a command that would change it, so that the supposed value
// holds on.
func (l Limit) Without(c *Command) {
	if c.TemplateID != TemplateCommand || c.Type != PolicyControl {
		return
	}
	switch l {
	case PositionQtyLimit:
		c.Qty = 0
	case ConcentrateLimit:
		c.LimitPx = 0
	}
}
