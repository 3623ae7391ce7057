package matcher

// LimitSettings names the setting of each limit, by its number.
var LimitSettings = [LimitCount]string{
	LimitOrderQty: "risk.max-order-quantity", LimitOrderNotional: "risk.max-order-notional",
	LimitPosition: "risk.max-position-quantity", LimitConcentration: "risk.max-concentration-notional",
	LimitCredit: "risk.credit-limit", LimitPriceAge: "risk.price.max-age-ms",
	LimitCollar: "risk.price.collar-bps",
}

// Suppose makes an engine decide by another limit of all accounts than its history has; an account
// keeps its own. Such an engine is good for "what if" only (journal/whatif): nothing that it
// decides may be recorded. The version of the policy does not change. The caller has checked value
// against id.Range. Only the owner may call it, between two commands.
func (e *Engine) Suppose(id LimitID, value int64) {
	change := LimitsChange{Set: 1 << id}
	change.Values[id] = value
	e.changeAll(&change)
}

// Without takes a supposed limit out of a command that would change it for all accounts, so that
// the supposed value holds on. In a part of a LIMITS_CONTROL it puts the supposed value, because a
// change must keep all its parts; in a POLICY_CONTROL it puts 0, which changes nothing. c is a copy
// that the caller decides once.
func (id LimitID) Without(c *Command, value int64) {
	if c.TemplateID != TemplateCommand {
		return
	}
	switch {
	case c.Type == LimitsControl && c.OrderRef == limitsOfAll && c.SecurityID == uint32(id):
		c.LimitPx = value
	case c.Type != PolicyControl:
	case id == LimitPosition:
		c.Qty = 0
	case id == LimitConcentration:
		c.LimitPx = 0
	}
}
