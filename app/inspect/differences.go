package inspect

import (
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"text/tabwriter"

	"posttrade/journal/whatif"
	"posttrade/matcher"
	"posttrade/matcher/strictjson"
)

// shown is how many differences of a kind the table lists.
//
// It bounds the memory, too. The JSON form has all of them.
const shown = 20

// notModelled is said with every result.
//
// Without it a reader could take the changed profit for a forecast.
const notModelled = "what a strategy would have done instead is not modelled"

// differences prints differences: all of them as lines of JSON, or the first ones of each kind.
//
// One goroutine uses it: add while the range is decided, then end.
type differences struct {
	w io.Writer
	// Lines of JSON are written as they come; otherwise the lists below are kept for the table.
	json bool
	// At most shown of each kind, the first ones.
	orders, trade []whatif.Difference
}

// add takes a difference as it is found. As text only the first are kept, however many there are.
func (d *differences) add(one whatif.Difference) error {
	if d.json {
		return d.line(one)
	}
	list := &d.orders
	if one.Kind == "trade" {
		list = &d.trade
	}
	if len(*list) < shown {
		*list = append(*list, one)
	}
	return nil
}

// line writes one JSON document and a line break.
func (d *differences) line(v any) error {
	text, err := json.Marshal(v)
	if err == nil {
		_, err = fmt.Fprintf(d.w, "%s\n", text)
	}
	return err
}

// profitLine and summaryLine are the last lines of JSON.
//
// The amounts are JSON numbers in currency units with at most 6 decimals. kind tells the lines
// apart.
type profitLine struct {
	Kind      string          `json:"kind"`
	AccountID uint32          `json:"accountId"`
	Before    json.RawMessage `json:"before"`
	After     json.RawMessage `json:"after"`
	Change    json.RawMessage `json:"change"`
}

// summaryLine is the very last line. Programs that want totals read only this one.
type summaryLine struct {
	Kind     string `json:"kind"`
	From     uint64 `json:"from"`
	To       uint64 `json:"to"`
	Commands uint64 `json:"commands"`
	LeftOut  uint64 `json:"leftOut"`
	Orders   uint64 `json:"ordersDecidedDifferently"`
	Appeared uint64 `json:"tradesAppeared"`
	Vanished uint64 `json:"tradesVanished"`
	Changed  uint64 `json:"tradesChanged"`
	Note     string `json:"note"`
}

// end prints the result.
//
// It is called once, also for a run that was stopped; res then says up to where.
func (d *differences) end(res *whatif.Result) error {
	if d.json {
		for i := range res.Accounts {
			p := &res.Accounts[i]
			if err := d.line(profitLine{"profit", p.AccountID, money(p.Before), money(p.After),
				money(p.Change())}); err != nil {
				return err
			}
		}
		return d.line(summaryLine{"summary", res.From, res.To, res.Commands, res.LeftOut, res.Orders,
			res.Appeared, res.Vanished, res.Changed, notModelled})
	}
	fmt.Fprintf(d.w, "sequences %d to %d, %d commands decided anew", res.From, res.To, res.Commands)
	if res.LeftOut > 0 {
		fmt.Fprintf(d.w, ", %d left out", res.LeftOut)
	}
	fmt.Fprintf(d.w, "; %s\n", notModelled)
	if res.Orders+res.Appeared+res.Vanished+res.Changed == 0 {
		fmt.Fprintln(d.w, "no difference")
	}
	table := tabwriter.NewWriter(d.w, 0, 0, 2, ' ', 0)
	if res.Orders > 0 {
		fmt.Fprintf(table, "\norders decided differently: %d\n", res.Orders)
		fmt.Fprint(table, "  sequence\tcommand\torder\taccount\tsecurity\twas\tis\n")
		for i := range d.orders {
			o := &d.orders[i]
			fmt.Fprintf(table, "  %d\t%s\t%s\t%d\t%s\t%s\t%s\n", o.Sequence, o.Command, dash(o.OrderID),
				o.AccountID, o.Security, decision(o.Before), decision(o.After))
		}
		more(table, res.Orders, len(d.orders))
	}
	if n := res.Appeared + res.Vanished + res.Changed; n > 0 {
		fmt.Fprintf(table, "\ntrades: %d appear, %d vanish, %d change\n", res.Appeared, res.Vanished,
			res.Changed)
		fmt.Fprint(table, "  sequence\torder\tagainst\tsecurity\twas\tis\n")
		for i := range d.trade {
			t := &d.trade[i]
			fmt.Fprintf(table, "  %d\t%s\t%s\t%s\t%s\t%s\n", t.Sequence, dash(t.OrderID),
				dash(t.CounterOrderID), t.Security, executed(t.Was), executed(t.Is))
		}
		more(table, n, len(d.trade))
	}
	if len(res.Accounts) > 0 {
		fmt.Fprint(table, "\nprofit and loss at the last prices\n  account\twas\tis\tchange\n")
		for i := range res.Accounts {
			p := &res.Accounts[i]
			fmt.Fprintf(table, "  %d\t%s\t%s\t%s\n", p.AccountID, money(p.Before), money(p.After),
				money(p.Change()))
		}
	}
	return table.Flush()
}

// more says what the lists above leave out.
func more(w io.Writer, all uint64, listed int) {
	if all > uint64(listed) {
		fmt.Fprintf(w, "  and %d more: --json lists all\n", all-uint64(listed))
	}
}

// dash shows the absence of an order, as in a market trade.
func dash(id *string) string {
	if id == nil {
		return "-"
	}
	return *id
}

// decision is the status of an order, with the reason of a refusal behind it.
func decision(d *whatif.Decision) string {
	if d.Reason == nil {
		return d.Decision
	}
	return d.Decision + " " + *d.Reason
}

// executed is quantity and price, in currency units; a dash when there was no trade.
func executed(e *whatif.Execution) string {
	if e == nil {
		return "-"
	}
	return fmt.Sprintf("%d at %s", e.Quantity, e.Price)
}

// money is an amount in millionths as a number.
//
// A sum over many accounts can exceed an int64, so it is a big.Int.
func money(v *big.Int) json.RawMessage {
	if v.IsInt64() {
		return strictjson.FormatDecimal(nil, v.Int64())
	}
	return json.RawMessage(new(big.Rat).SetFrac(v, big.NewInt(matcher.PriceScale)).FloatString(6))
}
