package why

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"posttrade/blotter"
	"posttrade/journal/asof"
	"posttrade/matcher"
)

// causes names the commands that put the two sides of the deciding check there. A reason without a
// case has none. Every search reads the journal backwards and ends at the first match, so its cost
// is the distance to what is looked for, at worst the whole history.
func (q *inquiry) causes(reason matcher.RiskReason) error {
	switch reason {
	case matcher.KillSwitch:
		return q.policyCause("policy: kill switch on",
			func(c *matcher.Command) bool { return c.Side == 1 })
	case matcher.UnknownAccount, matcher.UnknownSecurity:
		q.x.because("genesis", "not among the first ones, and no command has added it", 0, 0)
	case matcher.AccountDisabled:
		return q.controlCause("account control: disabled", matcher.AccountControl, matcher.KeepEnabled,
			func(c *matcher.Command) bool { return c.AccountID == q.cmd.AccountID })
	case matcher.SecurityDisabled:
		keep, what := matcher.KeepEnabled, "security control: disabled"
		if q.judged.Rule == "security-halted" {
			keep, what = matcher.KeepHalted, "security control: halted"
		}
		return q.controlCause(what, matcher.SecurityControl, keep, q.sameSecurity)
	case matcher.Restricted:
		return q.controlCause("restriction", matcher.RestrictionControl, 0, q.sameSecurity)
	case matcher.PriceStale, matcher.PriceCollar:
		if err := q.limitCause(reason); err != nil {
			return err
		}
		return q.priceCause()
	case matcher.OrderSize, matcher.OrderNotional:
		if err := q.limitCause(reason); err != nil {
			return err
		}
		if reason == matcher.OrderNotional && q.cmd.LimitPx <= 0 {
			return q.priceCause()
		}
	case matcher.CreditLimit, matcher.PositionLimit, matcher.ConcentrationLimit:
		if err := q.limitCause(reason); err != nil {
			return err
		}
		q.openCauses(reason == matcher.CreditLimit)
		return q.fillCauses(reason == matcher.CreditLimit)
	case matcher.Duplicate:
		if q.before.hasKey {
			return q.commandCause("first use of the key", q.before.key.InputSeq)
		}
	case matcher.Capacity:
		return q.capacityCause()
	}
	return nil
}

// capacityLimit is what a rule of CAPACITY bounds.
type capacityLimit struct {
	what string // in a sentence, behind "the number of"
	// of is the room; nil: no command sets it, it is the same in every engine.
	of func(matcher.Capacities) int
}

// capacityLimits has every rule that refuses with CAPACITY.
var capacityLimits = map[string]capacityLimit{
	"open-orders":         {"open orders", func(c matcher.Capacities) int { return c.Open }},
	"risk.max-accounts":   {"accounts", func(c matcher.Capacities) int { return c.Accounts }},
	"risk.max-securities": {"securities", func(c matcher.Capacities) int { return c.Securities }},
	"risk.max-contracts":  {"contracts", func(c matcher.Capacities) int { return c.Contracts }},
	"revocations":         {"subjects whose tokens are refused", nil},
	"order-numbers":       {"orders beyond the last number", nil},
}

// capacityCause finds the raise that set the room in force, the limit of the check: the
// CAPACITY_CONTROL that has it and before which there was less, or the genesis record.
//
// A CAPACITY_CONTROL says all rooms, also those that it leaves as they are. So each that has the
// room is a suspect, the newest first, and the state before it decides.
func (q *inquiry) capacityCause() error {
	of := capacityLimits[q.judged.Rule].of
	if of == nil {
		return nil
	}
	what := q.judged.Rule
	if !strings.Contains(what, ".") { // the name of a setting has one, and stays as it is
		what = strings.ReplaceAll(what, "-", " ")
	}
	what = "capacity for " + what
	text, _ := q.j.Genesis()
	genesis, err := matcher.ParseGenesis(text)
	if err != nil {
		return err
	}
	from, room := q.x.InputSeq-1, of(q.before.room)
	if of(genesis.Limits.Capacities()) == room {
		from = 0
	}
	for {
		c, ok, err := lastCommand(q.ctx, q.j, from, func(c *matcher.Command) bool {
			return c.Type == matcher.CapacityControl && of(matcher.Capacities{}.Raised(c)) == room
		})
		if err != nil {
			return err
		}
		if !ok {
			q.x.becauseGenesis(what)
			return nil
		}
		less := false
		if _, err := q.h.Command(q.ctx, c.InputSeq, func(s asof.StateBefore) error {
			less = of(s.Engine.Capacities()) < room
			return nil
		}); err != nil {
			return err
		}
		if less {
			q.x.because(what, describe(&c, q.ticker), c.InputSeq, c.EventTimeMillis)
			return nil
		}
		from = c.InputSeq - 1
	}
}

// sameSecurity reports a command about the security of the one that is explained.
func (q *inquiry) sameSecurity(c *matcher.Command) bool { return c.SecurityID == q.cmd.SecurityID }

// commandCause adds one command of the history, by its sequence.
func (q *inquiry) commandCause(what string, inputSeq uint64) error {
	c, ok, err := lastCommand(q.ctx, q.j, inputSeq,
		func(c *matcher.Command) bool { return c.InputSeq == inputSeq })
	if err == nil && ok {
		q.x.because(what, describe(&c, q.ticker), inputSeq, c.EventTimeMillis)
	}
	return err
}

// find adds the newest earlier command that matches. When there is none, the value is that of the
// genesis record, with the sequence 0. match sees commands of template 1 only.
func (q *inquiry) find(what string, match func(*matcher.Command) bool) error {
	c, ok, err := lastCommand(q.ctx, q.j, q.x.InputSeq-1, match)
	switch {
	case err != nil:
		return err
	case ok:
		q.x.because(what, describe(&c, q.ticker), c.InputSeq, c.EventTimeMillis)
	default:
		q.x.becauseGenesis(what)
	}
	return nil
}

// controlCause finds the control that set a flag. A control with the keep bit is passed over,
// because it leaves the flag of a known account or security as it is.
func (q *inquiry) controlCause(what string, kind matcher.CommandType, keep matcher.Side,
	about func(*matcher.Command) bool) error {
	return q.find(what, func(c *matcher.Command) bool {
		return c.Type == kind && c.Side&keep == 0 && about(c)
	})
}

// policyCause finds the newest policy that took effect and that matches. A policy in force has a
// version of at most the present one; a late one was refused. Only POLICY_CONTROL has a kill
// switch, so changes of limits are not looked at.
func (q *inquiry) policyCause(what string, match func(*matcher.Command) bool) error {
	below := q.before.policy.Version + 1
	return q.find(what, func(c *matcher.Command) bool {
		return c.Type == matcher.PolicyControl && c.PriceTicks < below && match(c)
	})
}

// limitOf is the limit that a reason is about. The reasons without a case are those of
// PRICE_COLLAR.
func limitOf(reason matcher.RiskReason) (id matcher.LimitID) {
	switch reason {
	case matcher.OrderSize:
		return matcher.LimitOrderQty
	case matcher.OrderNotional:
		return matcher.LimitOrderNotional
	case matcher.PositionLimit:
		return matcher.LimitPosition
	case matcher.ConcentrationLimit:
		return matcher.LimitConcentration
	case matcher.CreditLimit:
		return matcher.LimitCredit
	case matcher.PriceStale:
		return matcher.LimitPriceAge
	}
	return matcher.LimitCollar
}

// limitCause finds what set the limit of a rule: a change of limits, of the account or of all, or a
// policy.
//
// It looks for the newest command that sets the value in force. A version above the one in force
// was refused by the engine, or the limit would be another.
func (q *inquiry) limitCause(reason matcher.RiskReason) error {
	what, id := "limit "+q.judged.Rule+" = "+q.judged.Limit.String(), limitOf(reason)
	own := q.before.own.Has(id)
	if own {
		what += ", of the account"
	}
	value := q.before.limits[id]
	return q.find(what, func(c *matcher.Command) bool {
		if c.PriceTicks > q.before.policy.Version {
			return false // it was refused
		}
		switch c.Type {
		case matcher.LimitsControl:
			return c.SecurityID == uint32(id) && c.Side == 0 && c.LimitPx == value &&
				(c.OrderRef != 0) == own && (!own || c.AccountID == q.cmd.AccountID)
		case matcher.PolicyControl:
			return !own && (id == matcher.LimitPosition && int64(c.Qty) == value ||
				id == matcher.LimitConcentration && c.LimitPx == value)
		}
		return false
	})
}

// priceCause finds the tick or the fill that made the market price.
//
// A fill sets the market price as a tick does. Where both have the same price and time, the fill is
// named.
func (q *inquiry) priceCause() error {
	s := &q.before.security
	if s.MarketPx == 0 {
		return nil
	}
	what := "market price of " + s.Ticker
	value := decimal(s.MarketPx)
	if s.LastTradePx == s.MarketPx {
		var found matcher.Fill
		err := eachFillBack(q.ctx, q.j, q.before.tradeSeq, func(f *matcher.Fill) bool {
			if f.SecurityID == s.ID && f.Px == s.MarketPx && f.TimeMillis == s.MarketMillis {
				found = *f
			}
			return found.TradeSeq == 0 && (f.SecurityID != s.ID || f.TimeMillis >= s.MarketMillis)
		})
		if err != nil {
			return err
		}
		if found.TradeSeq != 0 {
			q.x.because(what, value+" by a trade", found.InputSeq, found.TimeMillis)
			return nil
		}
	}
	c, ok, err := lastCommand(q.ctx, q.j, q.x.InputSeq-1, func(c *matcher.Command) bool {
		return c.Type == matcher.PriceTick && c.SecurityID == s.ID && c.PriceTicks == s.MarketPx &&
			c.EventTimeMillis == s.MarketMillis
	})
	if err == nil && ok {
		q.x.because(what, value+" by a price", c.InputSeq, c.EventTimeMillis)
	}
	return err
}

// openCauses lists the open orders that make up the reservation: of the whole account, or in the
// security.
//
// An OTC booking uses the credit of both sides, so the orders of both are listed. The order that a
// replace is about is not: its reservation is given back before the check.
func (q *inquiry) openCauses(whole bool) {
	var rows []blotter.OrderRow
	qty, notional := int64(0), int64(0)
	for _, row := range q.before.open {
		same := row.SecurityID == q.cmd.SecurityID
		replaced := q.cmd.Type == matcher.OrderReplace && row.Ref == q.cmd.OrderRef
		booking := q.cmd.Type == matcher.SwapBook || q.cmd.Type == matcher.SwaptionBook
		if row.Side != q.cmd.Side && !booking || !whole && !same || replaced {
			continue
		}
		rows = append(rows, row)
		qty += int64(row.Leaves)
		notional += int64(row.Leaves) * row.LimitPx
	}
	if len(rows) == 0 {
		return
	}
	q.x.counted("open orders", "%d orders for %d, worth %s", len(rows), qty, decimal(notional))
	slices.SortFunc(rows, func(a, b blotter.OrderRow) int {
		return cmp.Compare(b.InputSeq, a.InputSeq)
	})
	for _, row := range rows[:min(len(rows), MaxCauses)] {
		q.x.because("open order", fmt.Sprintf("%s: %d at %s", matcher.OrderID(row.Number()), row.Leaves,
			decimal(row.LimitPx)), row.InputSeq, row.CreatedMillis)
	}
}

// fillCauses lists the fills that make up the position, which are those since it was flat, or all
// fills of the account, which make up its use of credit.
//
// Cost: for a position the fills back to where it was flat; for the use of credit all fills of the
// history, because each fill of the account counts.
func (q *inquiry) fillCauses(whole bool) error {
	if q.before.position.Qty == 0 && !whole {
		return nil
	}
	var newest []matcher.Fill
	count, sum := 0, int64(0)
	err := eachFillBack(q.ctx, q.j, q.before.tradeSeq, func(f *matcher.Fill) bool {
		if f.AccountID != q.cmd.AccountID || !whole && f.SecurityID != q.cmd.SecurityID {
			return true
		}
		if count++; len(newest) < MaxCauses {
			newest = append(newest, *f)
		}
		if f.Side == matcher.Buy {
			sum += int64(f.Qty)
		} else {
			sum -= int64(f.Qty)
		}
		return whole || sum != q.before.position.Qty
	})
	if err != nil || count == 0 {
		return err
	}
	if whole {
		q.x.counted("fills", "%d fills of the account", count)
	} else {
		q.x.counted("fills", "%d fills since the position was flat, position %d", count,
			q.before.position.Qty)
	}
	for _, f := range newest {
		side := "bought "
		if f.Side == matcher.Sell {
			side = "sold "
		}
		q.x.because("fill",
			matcher.TradeID(f.TradeSeq)+": "+side+strconv.Itoa(int(f.Qty))+" at "+decimal(f.Px),
			f.InputSeq, f.TimeMillis)
	}
	return nil
}
