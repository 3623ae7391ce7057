package why

import (
	"context"
	"fmt"
	"strconv"

	"posttrade/blotter"
	"posttrade/journal"
	"posttrade/journal/asof"
	"posttrade/matcher"
)

// inquiry is one explanation that is being made, on one goroutine. Its order: look, at the state
// before the command; then explain, which reads events, fills and earlier commands and fills in x.
type inquiry struct {
	*Explainer
	ctx context.Context
	x   *Explanation

	// cmd is the command that is explained, as the journal has it; ticker names its security, "" for
	// none.
	cmd    matcher.Command
	ticker string
	// judged is what the engine's checks say, without the verdict of the gate.
	judged matcher.Judgement
	before snapshot
	// events are those of the command, at least one.
	events []matcher.Event
	// number is that of the order that the command made, 0 for none or a refused one.
	number uint64
	// canceled is a half sentence about what cancelled the order, for the text.
	canceled string
}

// snapshot is what is kept of the state before the command. It is copied out because the state
// moves on when the command is replayed.
type snapshot struct {
	// tradeSeq is the last one before the command: fills behind it may be the order's, those up to it
	// are causes.
	tradeSeq uint64
	// security, policy and position are those of the command, as they were.
	security blotter.Security
	policy   blotter.Policy
	position blotter.Position
	// open are the account's open orders, of both sides and all securities.
	open []blotter.OrderRow
	// key is the first use of the command's client order id, if it was known before (hasKey).
	key    blotter.KeyRow
	hasKey bool
	// own are the limits that the account has for itself; limits are those that hold for it, its own
	// included.
	own    matcher.LimitSet
	limits matcher.RiskLimits
	// room is what the engine had room for.
	room matcher.Capacities
}

// command is Command on the caller's goroutine. The command is read from the journal, and then
// replayed from the state before it, which look sees.
func (e *Explainer) command(ctx context.Context, inputSeq uint64) (*Explanation, error) {
	if head := e.h.Head(); inputSeq == 0 || inputSeq > head { // a replay to 0 is one to the head
		return nil, &asof.BeyondError{InputSeq: inputSeq, Head: head}
	}
	q := &inquiry{Explainer: e, ctx: ctx,
		x: &Explanation{InputSeq: inputSeq, Because: []Cause{}, Against: []CounterFill{}}}
	err := e.h.Journal().ReplayTo(ctx, inputSeq, inputSeq,
		func(cmds []matcher.Command, _ journal.ClientIDs) error {
			q.cmd = cmds[0]
			return nil
		})
	if err == nil {
		q.events, err = e.h.Command(ctx, inputSeq, func(s asof.StateBefore) error {
			q.look(s)
			return nil
		})
	}
	if err != nil {
		return nil, err
	}
	return q.x, q.explain()
}

// look keeps what the explanation needs of the state before the command.
//
// Bookings have keys of their own family and no security. The orders are read in pages, to the end.
func (q *inquiry) look(s asof.StateBefore) {
	c := &q.cmd
	q.judged = s.Engine.Judge(c)
	b := &q.before
	b.tradeSeq, b.policy = s.Engine.TradeSeq(), s.Views.Policy()
	b.limits, b.room = s.Engine.RiskLimits(), s.Engine.Capacities()
	s.Engine.EachOwnLimits(func(o matcher.OwnLimits) bool {
		if o.AccountID == c.AccountID {
			b.own, b.limits = o.Own, o.Own.Over(&b.limits, &o.Values)
		}
		return o.AccountID != c.AccountID
	})
	if c.TemplateID != matcher.TemplateCommand {
		return
	}
	if c.Type == matcher.SwapBook || c.Type == matcher.SwaptionBook {
		b.key, b.hasKey = s.Views.Key(matcher.KeyContract, c.AccountID, uint64(c.PriceTicks))
	} else {
		b.key, b.hasKey = s.Views.Key(matcher.KeyOrder, c.AccountID, uint64(c.PriceTicks))
		b.security, _ = s.Views.Security(c.SecurityID)
		b.position, _ = s.Views.Position(c.AccountID, c.SecurityID)
		q.ticker = b.security.Ticker
	}
	var after uint64
	for {
		var rows []blotter.OrderRow
		rows, after = s.Views.Orders(blotter.OrderFilter{Accounts: []uint32{c.AccountID},
			Statuses: blotter.OpenOrders}, after, 1000, nil)
		b.open = append(b.open, rows...)
		if after == 0 {
			return
		}
	}
}

// forAdmin reports a command that acts for no account: its explanation may name what only an
// administrator may see. A new type of command is one, until it is listed here.
func (q *inquiry) forAdmin() bool {
	if q.cmd.TemplateID != matcher.TemplateCommand {
		return true
	}
	switch q.cmd.Type {
	case matcher.OrderNew, matcher.OrderCancel, matcher.OrderReplace, matcher.TradeNew,
		matcher.SwapBook, matcher.SwaptionBook:
		return false
	}
	return true
}

// verdict reports that the record carries the gate's refusal: in an order and in a market trade
// OrderRef is that, in other commands it is something else.
func (q *inquiry) verdict() bool {
	return q.cmd.TemplateID == matcher.TemplateCommand && q.cmd.OrderRef != 0 &&
		(q.cmd.Type == matcher.OrderNew || q.cmd.Type == matcher.TradeNew)
}

// what names the command for a sentence, without a full stop and beginning with a small letter.
func (q *inquiry) what() string {
	c := &q.cmd
	subject := fmt.Sprintf("command %d", q.x.InputSeq)
	if q.x.OrderID != nil {
		subject = *q.x.OrderID
	}
	if c.TemplateID == matcher.TemplateSymbolRegister {
		ticker, _ := c.Symbol() // "" for one that is none
		return "the ticker " + ticker + " at sequence " + strconv.FormatUint(q.x.InputSeq, 10)
	}
	if c.TemplateID != matcher.TemplateCommand {
		return subject
	}
	side := "Buy "
	if c.Side == matcher.Sell {
		side = "Sell "
	}
	security := q.ticker
	if security == "" {
		security = "an unknown security"
	}
	price := " at the market"
	if c.LimitPx > 0 {
		price = " at " + decimal(c.LimitPx)
	}
	account := " for account " + strconv.FormatUint(uint64(c.AccountID), 10)
	qty := strconv.Itoa(int(c.Qty))
	switch c.Type {
	case matcher.OrderNew:
		return subject + " (" + side + qty + " " + security + price + account + ")"
	case matcher.OrderReplace:
		return "the replace of " + subject + " (to " + qty + price + account + ")"
	case matcher.OrderCancel:
		return "the cancel of " + subject + " (" + account[1:] + ")"
	case matcher.TradeNew:
		return "the market trade at sequence " + strconv.FormatUint(q.x.InputSeq, 10) + " (" + side +
			qty + " " + security + account + ")"
	case matcher.SwapBook, matcher.SwaptionBook:
		product := "the swap"
		if c.Type == matcher.SwaptionBook {
			product = "the swaption"
		}
		return product + " at sequence " + strconv.FormatUint(q.x.InputSeq, 10) + " (notional " + qty +
			account + ")"
	}
	return "the control at sequence " + strconv.FormatUint(q.x.InputSeq, 10) + " (" +
		describe(c, q.ticker) + ")"
}
