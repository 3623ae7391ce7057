package inspect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"

	"posttrade/app/settings"
	"posttrade/journal/asof"
	"posttrade/journal/why"
	"posttrade/matcher"
)

// Why prints the explanation of ord-N, SW-N, SWPT-N or a sequence.
//
// The table has the sentence, then what the decision depended on with the sequence and time of
// each, then the orders that it traded with. The JSON is that of the HTTP endpoint.
//
// Errors: a usage error for a text of no known form; an id that is not known, by its name; those
// of reading the journal.
func (p *Past) Why(ctx context.Context, w io.Writer, id string, asJSON bool) error {
	x, err := p.explain(ctx, id)
	switch {
	case errors.Is(err, asof.ErrNoOrder), errors.Is(err, why.ErrNoContract):
		return fmt.Errorf("%s: %w", settings.Printable(id), err)
	case err != nil:
		return err
	}
	if asJSON {
		text, err := json.Marshal(x)
		if err == nil {
			_, err = fmt.Fprintf(w, "%s\n", text)
		}
		return err
	}
	fmt.Fprintln(w, x.Text)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, c := range x.Because {
		at, when := "", ""
		if c.InputSeq != nil {
			at = strconv.FormatUint(*c.InputSeq, 10)
		}
		if c.Time != nil {
			when = *c.Time
		}
		fmt.Fprintf(table, "  %s\t%s\t%s\t%s\n", at, when, c.What, c.Value)
	}
	for _, a := range x.Against {
		with := "-"
		if a.OrderID != nil {
			with = *a.OrderID
		}
		fmt.Fprintf(table, "  %s\tagainst %s\t%d at %s\t\n", a.TradeID, with, a.Quantity, a.Price)
	}
	if more := x.Fills - len(x.Against); more > 0 {
		fmt.Fprintf(table, "  and %d fills more\n", more)
	}
	return table.Flush()
}

// explain takes an order id, a contract id or an input sequence: their forms do not overlap.
//
// A sequence explains the decision on the command with that number.
func (p *Past) explain(ctx context.Context, id string) (*why.Explanation, error) {
	e := why.New(p.h)
	if n, ok := matcher.ParseOrderID(id); ok {
		return e.Order(ctx, n)
	}
	if swaption, n, ok := matcher.ParseContractID(id); ok {
		return e.Contract(ctx, swaption, n)
	}
	if n, err := strconv.ParseUint(id, 10, 63); err == nil {
		if n == 0 { // the history would call it beyond the head, as it does every number of no command
			return nil, settings.Usagef("%s is no command's sequence: sequences begin at 1",
				settings.Printable(id))
		}
		return e.Command(ctx, n)
	}
	return nil, settings.Usagef("%s is no order id, contract id or sequence", settings.Printable(id))
}
