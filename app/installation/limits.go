package installation

import (
	"log/slog"
	"strconv"

	"posttrade/app/settings"
	"posttrade/matcher"
	"posttrade/matcher/strictjson"
)

// policySettings are the limits that a new journal begins with. From then on only a sequenced
// policy changes them, so that every replay and every member judges by the same.
//
// The index is the limit's id, so each limit has exactly one setting.
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
//
// A limit whose setting is the default is not compared: the operator has not asked for anything.
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
