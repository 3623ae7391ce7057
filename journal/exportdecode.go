package journal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	"posttrade/matcher"
	"posttrade/matcher/strictjson"
	"posttrade/matcher/timetext"
)

// ExportDecoded writes the commands of a journal as Export does, in the words of the HTTP
// interface: tickers, sides, decimal prices, times, and what a control sets. What a type does not
// use is left out. A type that this build has no words for has the fields of Export.
//
// It reads the journal from its beginning, whatever from is, because securities are numbered in the
// order of their registration. Decisions are not part of it: a command that the engine refused has
// the same line.
//
// Errors: those of Read and of a replay, and w's own.
func ExportDecoded(ctx context.Context, dir string, w io.Writer, from, to uint64,
	o VerifyOptions) error {
	j, err := Read(dir, o)
	if err != nil {
		return err
	}
	return errors.Join(j.exportDecoded(ctx, w, from, to), j.Close())
}

// exportDecoded is ExportDecoded of an open journal. One write for each commit, also for those
// before from, which have no lines.
func (j *Journal) exportDecoded(ctx context.Context, w io.Writer, from, to uint64) error {
	if err := j.reaches(from); err != nil {
		return err
	}
	text, _ := j.Genesis()
	genesis, err := matcher.ParseGenesis(text)
	if err != nil {
		return err
	}
	d := decoder{ids: map[string]bool{}, room: genesis.Limits.MaxSecurities}
	for _, s := range genesis.Securities {
		d.register(s.Ticker)
	}
	var lines []byte
	return j.replay(ctx, 1, to, false, func(commit *decoded) error {
		lines = lines[:0]
		for i := range commit.commands {
			c := &commit.commands[i]
			d.follow(c)
			if c.InputSeq >= from {
				lines = d.append(lines, c, commit.ids.Of(c.InputSeq))
			}
		}
		if _, err := w.Write(lines); err != nil {
			return fmt.Errorf("journal: export inputSeq=%d: %w", commit.first, err)
		}
		return nil
	})
}

// decoder knows the tickers behind the ids of securities, as they are numbered at the command that
// is being written. It follows every command of the history, in order.
type decoder struct {
	// The ticker of security id is at id - 1.
	tickers []string
	// The tickers that have a number: a second registration gives none.
	ids map[string]bool
	// How many securities may have one: that of the genesis, until a control has raised it.
	room int
}

// follow takes over what numbers securities: registrations, and the room for them.
func (d *decoder) follow(c *matcher.Command) {
	if ticker, err := c.Symbol(); err == nil {
		d.register(ticker)
	} else if c.TemplateID == matcher.TemplateCommand && c.Type == matcher.CapacityControl {
		d.room = max(d.room, int(c.SecurityID))
	}
}

// register numbers a ticker as the engine does: the next number, unless it has one or there is no
// room.
func (d *decoder) register(ticker string) {
	if !d.ids[ticker] && len(d.tickers) < d.room {
		d.ids[ticker] = true
		d.tickers = append(d.tickers, ticker)
	}
}

// append appends one command as a line of JSON. Registrations have the words of Export already.
func (d *decoder) append(b []byte, c *matcher.Command, id []byte) []byte {
	if c.TemplateID == matcher.TemplateRiskExtract { // it has a day in the place of the time
		b = strconv.AppendUint(append(b, `{"sequence":`...), c.InputSeq, 10)
		b = appendText(b, "type", "RISK_EXTRACT")
		b = appendText(b, "sessionDate", dayText(c.EventTimeMillis))
		return append(appendInt(b, "priceVersion", int64(uint32(c.LimitPx))), "}\n"...)
	}
	if c.TemplateID != matcher.TemplateCommand || int(c.Type) >= len(typeNames) ||
		typeNames[c.Type] == "" {
		return exportCommand(b, c, id)
	}
	b = strconv.AppendUint(append(b, `{"sequence":`...), c.InputSeq, 10)
	b = appendText(b, "type", typeNames[c.Type])
	b = appendText(b, "time", timetext.Of(c.EventTimeMillis))
	name := "clientOrderId"
	switch c.Type {
	case matcher.OrderNew, matcher.TradeNew, matcher.OrderReplace, matcher.OrderCancel,
		matcher.ForceFill:
		b = d.order(b, c)
	case matcher.PriceTick:
		b = appendPrice(d.security(b, c), "price", c.PriceTicks)
	case matcher.SwapBook, matcher.SwaptionBook:
		terms, _ := c.ContractTerms()
		b = appendTerms(appendInt(b, "accountId", int64(c.AccountID)), &terms, true)
	case matcher.OperatorNote:
		b = appendInt(appendInt(b, "acts", int64(c.AccountID)), "part", int64(c.OrderRef)+1)
		b, name = appendInt(b, "parts", int64(c.Qty)), "text"
	case matcher.SnapshotMark:
	default:
		b = d.control(b, c)
	}
	if len(id) > 0 {
		b = strictjson.AppendString(append(append(append(b, `,"`...), name...), `":`...), id)
	}
	return append(b, "}\n"...)
}

// order appends what a command about an order says. The record's reference has three meanings: of
// an admission the reason for which the gate has refused it, 0 for none; of other commands the
// order that they are about. A limit price of 0 is a market order.
func (d *decoder) order(b []byte, c *matcher.Command) []byte {
	admission := c.Type == matcher.OrderNew || c.Type == matcher.TradeNew
	if !admission { // the reference is the order's number but for the era
		b = appendText(b, "orderId", matcher.OrderID(uint64(c.OrderRef)))
	}
	b = appendInt(b, "accountId", int64(c.AccountID))
	if c.Type == matcher.OrderCancel {
		return b
	}
	b = d.security(b, c)
	if c.Type != matcher.ForceFill {
		b = appendText(b, "side", [2]string{"Buy", "Sell"}[c.Side&1])
	}
	b = appendInt(b, "quantity", int64(c.Qty))
	switch {
	case c.Type == matcher.TradeNew:
	case c.Type == matcher.ForceFill:
		b = appendPrice(b, "price", c.LimitPx)
	case c.LimitPx > 0:
		b = appendPrice(b, "limitPrice", c.LimitPx)
	default:
		b = appendText(b, "orderType", "MARKET")
	}
	switch c.Flags &^ matcher.FlagShadow {
	case matcher.FlagIOC:
		b = appendText(b, "timeInForce", "IOC")
	case matcher.FlagFOK:
		b = appendText(b, "timeInForce", "FOK")
	case matcher.FlagPostOnly:
		b = appendText(b, "timeInForce", "POST_ONLY")
	}
	if admission && c.OrderRef != 0 {
		b = appendText(b, "refusedAtTheGate", matcher.RiskReason(c.OrderRef).String())
	}
	return b
}

// control appends what a control sets. A control's record has other meanings for the fields of an
// order; FORMAT.md, section 5, has those of the later types.
func (d *decoder) control(b []byte, c *matcher.Command) []byte {
	switch c.Type {
	case matcher.AccountControl:
		b = appendInt(b, "accountId", int64(c.AccountID))
		return appendControl(b, c)
	case matcher.SecurityControl:
		return appendControl(d.security(b, c), c)
	case matcher.RestrictionControl:
		b = appendFlag(d.security(b, c), "restricted", c.Side == 1)
		return appendInt(b, "version", c.PriceTicks)
	case matcher.PolicyControl:
		b = appendInt(b, "policyVersion", c.PriceTicks)
		b = appendFlag(b, "killSwitch", c.Side == 1)
		if c.Qty > 0 {
			b = appendInt(b, "maxPositionQuantity", int64(c.Qty))
		}
		if c.LimitPx > 0 {
			b = appendPrice(b, "maxConcentrationNotional", c.LimitPx)
		}
	case matcher.CapacityControl:
		b = appendInt(b, "maxAccounts", int64(c.AccountID))
		b = appendInt(b, "maxSecurities", int64(c.SecurityID))
		b = appendInt(b, "maxContracts", int64(c.Qty))
		if c.OrderRef != 0 {
			b = appendInt(b, "maxOpenOrders", int64(c.OrderRef))
			b = appendInt(b, "retainedOrders", c.PriceTicks)
			b = appendInt(b, "idempotencyCapacity", c.LimitPx)
		}
	case matcher.LimitsControl:
		b = appendLimit(b, c)
	case matcher.TokenRevoke:
		b = appendText(b, "subjectHash", c.Revocation().Subject.String())
	}
	return b
}

// appendLimit appends one part of a change of limits. A limit that is removed is null. A part is
// known by its number and the number of parts, both in the record's quantity.
func appendLimit(b []byte, c *matcher.Command) []byte {
	b = appendInt(b, "policyVersion", c.PriceTicks)
	if c.OrderRef != 0 {
		b = appendInt(b, "accountId", int64(c.AccountID))
	}
	id := matcher.LimitID(min(c.SecurityID, matcher.LimitCount))
	switch {
	case c.Side == 1:
		b = append(append(append(b, `,"`...), id.String()...), `":null`...)
	case id.Money():
		b = appendPrice(b, id.String(), c.LimitPx)
	default:
		b = appendInt(b, id.String(), c.LimitPx)
	}
	return appendInt(appendInt(b, "part", int64(c.Qty)&0xff), "parts", int64(c.Qty)>>8)
}

// appendControl appends the flags of an account's or a security's control, and what has set them. A
// flag that the control keeps as it is is left out.
func appendControl(b []byte, c *matcher.Command) []byte {
	if c.Side&matcher.KeepEnabled == 0 {
		b = appendFlag(b, "enabled", c.Side&matcher.SecurityEnabled != 0)
	}
	if c.Type == matcher.SecurityControl && c.Side&matcher.KeepHalted == 0 {
		b = appendFlag(b, "halted", c.Side&matcher.SecurityHalted != 0)
	}
	by := "operator"
	if c.OrderRef != 0 {
		by = "source"
	}
	return appendText(appendInt(b, "version", c.PriceTicks), "setBy", by)
}

// security appends the ticker of a command, its number in quotes when no ticker has it.
func (d *decoder) security(b []byte, c *matcher.Command) []byte {
	ticker := strconv.FormatUint(uint64(c.SecurityID), 10)
	if at := c.SecurityID - 1; int64(at) < int64(len(d.tickers)) {
		ticker = d.tickers[at]
	}
	return strictjson.AppendString(append(b, `,"security":`...), []byte(ticker))
}

// appendPrice appends a member with millionths as a decimal number.
func appendPrice(b []byte, name string, px int64) []byte {
	return strictjson.FormatDecimal(append(append(append(b, ',', '"'), name...), '"', ':'), px)
}

func appendFlag(b []byte, name string, v bool) []byte {
	return strconv.AppendBool(append(append(append(b, ',', '"'), name...), '"', ':'), v)
}
