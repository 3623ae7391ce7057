package installation

import (
	"log/slog"
	"strconv"

	"posttrade/app/settings"
	"posttrade/matcher"
	"posttrade/matcher/strictjson"
)

// fixedSettings are the settings that a journal's genesis record fixes. Capacities are not among
// them (capacitySettings), nor are the limits that a policy changes (policySettings).
var fixedSettings = []struct {
	name string
	of   func(matcher.Limits) int
}{
	{"risk.idempotency.capacity", func(l matcher.Limits) int { return l.IdempotencyCapacity }},
	{"risk.max-open-orders", func(l matcher.Limits) int { return l.MaxOpenOrders }},
	{"risk.retained-orders", func(l matcher.Limits) int { return l.RetainedOrders }},
}

// SameLimits refuses a limit that was set to another value than that in the journal's genesis
// record. The engine would not keep it, and the operator must not think that it does.
func SameLimits(c *settings.Config, g *matcher.Genesis) error {
	wanted := c.Limits()
	for _, s := range fixedSettings {
		if c.Source(s.name) != "default" && s.of(wanted) != s.of(g.Limits) {
			return settings.Usagef(
				"%s: this journal was created with another value, which its genesis record fixes; "+
					"leave the setting out, or start with an empty data.dir", s.name)
		}
	}
	return nil
}

// policySettings are the limits that a new journal begins with. From then on only a sequenced
// policy changes them, so that every replay and every member judges by the same.
var policySettings = [matcher.LimitCount]string{
	matcher.LimitOrderQty:      "risk.max-order-quantity",
	matcher.LimitOrderNotional: "risk.max-order-notional",
	matcher.LimitPosition:      "risk.max-position-quantity",
	matcher.LimitConcentration: "risk.max-concentration-notional",
	matcher.LimitCredit:        "risk.credit-limit",
	matcher.LimitPriceAge:      "risk.price.max-age-ms",
	matcher.LimitCollar:        "risk.price.collar-bps",
}

// warnOfLimits logs every limit that is set to another value than the one in force: the setting has
// no effect, and the log names the endpoint that has one.
func warnOfLimits(c *settings.Config, inForce matcher.RiskLimits, log *slog.Logger) {
	limits := c.Limits()
	wanted := limits.RiskLimits()
	for i, name := range policySettings {
		id := matcher.LimitID(i)
		if c.Source(name) == "default" || wanted[id] == inForce[id] {
			continue
		}
		log.Warn("the limits of a journal begin with the settings and change by policy: "+
			"this setting has no effect; use POST /risk/control/limits", "setting", name,
			"value", limitText(id, wanted[id]), "in force", limitText(id, inForce[id]),
			"member", id.String())
	}
}

// limitText is a limit as its setting has it: money in currency units.
func limitText(id matcher.LimitID, value int64) string {
	if id.Money() {
		return string(strictjson.FormatDecimal(nil, value))
	}
	return strconv.FormatInt(value, 10)
}
