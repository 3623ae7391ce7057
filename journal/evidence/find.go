package evidence

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"posttrade/journal"
	"posttrade/journal/asof"
	"posttrade/matcher"
)

// Wanted names a record. Exactly one of its fields is set; the others are zero.
type Wanted struct {
	InputSeq uint64
	TradeSeq uint64
	Order    uint64 // an order's number
	// Contract is its id: SW-N or SWPT-N
	Contract string
}

// ParseWanted reads an id: trd-N, ord-N, SW-N, SWPT-N or an input sequence. N is at least 1,
// without sign and leading zeros, so that each record has one id.
func ParseWanted(id string) (w Wanted, ok bool) {
	w.TradeSeq, _ = matcher.ParseTradeID(id)
	w.Order, _ = matcher.ParseOrderID(id)
	if _, _, isContract := matcher.ParseContractID(id); isContract {
		w.Contract = id
	}
	if n, err := strconv.ParseUint(id, 10, 63); err == nil && strconv.FormatUint(n, 10) == id {
		w.InputSeq = n
	}
	return w, w != (Wanted{})
}

// Find returns the command of a record and the account that it is of. A control or a tick is of no
// account: Place.Owned is false then, and only an administrator may see its proof.
//
// Errors: ErrUnknown; ErrBusy, only for an order; those of ctx and the journal. An order takes a
// place of the Prover while it is looked for.
func (p *Prover) Find(ctx context.Context, w Wanted) (at Place, err error) {
	switch {
	case w.TradeSeq != 0:
		return p.findTrade(w.TradeSeq)
	case w.Order != 0:
		return p.findOrder(ctx, w.Order)
	case w.Contract != "":
		swaption, seq, ok := matcher.ParseContractID(w.Contract)
		if !ok {
			return at, fmt.Errorf("evidence: %q: %w", w.Contract, ErrUnknown)
		}
		at, err = p.command(ctx, seq)
		if want := contractType(swaption); err == nil && at.kind != want {
			err = fmt.Errorf("evidence: %s: %w", w.Contract, ErrUnknown)
		}
		at.ID = w.Contract
		return at, err
	}
	return p.command(ctx, w.InputSeq)
}

func contractType(swaption bool) matcher.CommandType {
	if swaption {
		return matcher.SwaptionBook
	}
	return matcher.SwapBook
}

// Place is where a record is. Find makes it; Prove takes it.
type Place struct {
	InputSeq uint64
	// TradeSeq is that of a fill; 0: the record is that of the command.
	TradeSeq  uint64
	AccountID uint32
	// Owned: the record is of AccountID.
	Owned bool
	// Act: the record is a part of an operator's act, as GET /audit shows it.
	Act bool
	// ID is what the record was asked by, for the proof; empty for a sequence.
	ID string
	// kind is the type of the command, 0 for a fill and for templates without types.
	kind matcher.CommandType
}

// findTrade reads one block of fills: the fill says which command made it. A trade sequence is one
// side of a match, with that side's account.
func (p *Prover) findTrade(tradeSeq uint64) (at Place, err error) {
	if _, last := p.j.Head(); tradeSeq > last {
		return at, fmt.Errorf("evidence: %s: %w", matcher.TradeID(tradeSeq), ErrUnknown)
	}
	enough := errors.New("enough")
	err = p.j.Fills(tradeSeq, func(fills []matcher.Fill) error {
		at = Place{InputSeq: fills[0].InputSeq, TradeSeq: tradeSeq, AccountID: fills[0].AccountID,
			Owned: true, ID: matcher.TradeID(tradeSeq)}
		return enough
	})
	if errors.Is(err, enough) {
		err = nil
	}
	return at, err
}

// command is the place of a command's record. It reads the block that holds the command.
func (p *Prover) command(ctx context.Context, inputSeq uint64) (at Place, err error) {
	if head, _ := p.j.Head(); inputSeq == 0 || inputSeq > head {
		return at, fmt.Errorf("evidence: sequence %d: %w", inputSeq, ErrUnknown)
	}
	err = p.j.ReplayTo(ctx, inputSeq, inputSeq, func(c []matcher.Command, _ journal.ClientIDs) error {
		at = placeOf(&c[0])
		return nil
	})
	return at, err
}

// placeOf is the place of a command's record. A command of an operator or of a feed has no owner; a
// force fill has, because it executes an account's order.
func placeOf(c *matcher.Command) Place {
	at := Place{InputSeq: c.InputSeq}
	if c.TemplateID != matcher.TemplateCommand {
		return at
	}
	switch at.kind = c.Type; c.Type {
	case matcher.OrderNew, matcher.OrderCancel, matcher.OrderReplace, matcher.ForceFill,
		matcher.TradeNew, matcher.SwapBook, matcher.SwaptionBook:
		at.AccountID, at.Owned = c.AccountID, true
	case matcher.OperatorNote:
		at.Act = true
	}
	return at
}

// findOrder looks for the command that made an order. It takes a place of the Prover, because an
// order that the views have dropped costs a replay.
func (p *Prover) findOrder(ctx context.Context, number uint64) (at Place, err error) {
	leave, err := p.enter()
	if err != nil {
		return at, err
	}
	defer leave()
	var inputSeq uint64
	err = journal.Politely(journal.Background, func() (err error) {
		inputSeq, err = p.past.OrderCommand(ctx, number)
		return err
	})
	switch {
	case errors.Is(err, asof.ErrNoOrder):
		return at, fmt.Errorf("evidence: %s: %w", matcher.OrderID(number), ErrUnknown)
	case errors.Is(err, asof.ErrBusy):
		return at, fmt.Errorf("evidence: %w: %w", ErrBusy, err)
	case err != nil:
		return at, err
	}
	at, err = p.command(ctx, inputSeq)
	at.ID = matcher.OrderID(number)
	return at, err
}
