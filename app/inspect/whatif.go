package inspect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"posttrade/app/settings"
	"posttrade/journal/whatif"
	"posttrade/matcher"
	"posttrade/matcher/strictjson"
)

// WhatIf is what the command line asks of what-if.
type WhatIf struct {
	From, To uint64
	Set      []string // NAME=VALUE
	Without  []string // account numbers
	Halt     []string // TICKER@SEQ
	Price    []string // TICKER=PRICE@SEQ
	Latency  []string // account=N,ms=M
	JSON     bool
	Progress io.Writer // nil: none
}

// shown is how many differences of a kind the table lists.
const shown = 20

// notModelled is said with every result.
const notModelled = "what a strategy would have done instead is not modelled"

// WhatIf decides a range anew and prints what comes out differently.
func (p *Past) WhatIf(ctx context.Context, w io.Writer, o *WhatIf) error {
	if head := p.h.Head(); o.From == 0 || o.From > o.To || o.To > head {
		return settings.Usagef("--from %d --to %d: want 1 <= from <= to <= %d, the head", o.From, o.To,
			head)
	}
	changes, err := p.changes(ctx, o)
	if err != nil {
		return err
	}
	out := &differences{w: w, json: o.JSON}
	begin, last := time.Now(), time.Time{}
	res, err := whatif.Run(ctx, p.h, whatif.Options{From: o.From, To: o.To, Changes: changes,
		Report: out.add, Progress: func(at uint64) {
			if o.Progress == nil || time.Since(last) < progressEvery && at != o.To {
				return
			}
			last = time.Now()
			fmt.Fprintf(o.Progress, "\r%s", progressLine(at-o.From+1, o.To-o.From+1, last.Sub(begin)))
		}})
	if o.Progress != nil && !last.IsZero() {
		fmt.Fprintln(o.Progress)
	}
	stopped := errors.Is(err, context.Canceled)
	if err != nil && !stopped {
		return err
	}
	if len(res.Unknown) > 0 && !stopped {
		return settings.Usagef("there is no account %d up to sequence %d", res.Unknown[0], o.To)
	}
	if err := out.end(&res); err != nil {
		return err
	}
	if stopped {
		return fmt.Errorf("stopped at sequence %d of %d", res.To, o.To)
	}
	return nil
}

const (
	progressEvery = 100 * time.Millisecond
	progressWidth = 30
)

// progressLine is a bar, the share, and the speed.
func progressLine(done, total uint64, took time.Duration) string {
	full := int(done * progressWidth / total)
	return fmt.Sprintf("[%s%s] %3d %%  %.1f M commands/s", strings.Repeat("#", full),
		strings.Repeat(".", progressWidth-full), done*100/total,
		float64(done)/1e6/max(took.Seconds(), 1e-3))
}

// changes reads what is to be different.
func (p *Past) changes(ctx context.Context, o *WhatIf) (c whatif.Changes, err error) {
	c.Limits = map[matcher.LimitID]int64{}
	for _, text := range o.Set {
		name, value, _ := strings.Cut(text, "=")
		id, n, err := limitValue(name, value)
		if _, given := c.Limits[id]; given && err == nil {
			err = errors.New("the limit is set twice")
		}
		if err != nil {
			return c, settings.Usagef("--set %s: %v", settings.Printable(text), err)
		}
		c.Limits[id] = n
	}
	for _, text := range o.Without {
		n, err := strconv.ParseUint(text, 10, 32)
		if err != nil || n == 0 {
			return c, settings.Usagef("--without-account %s: it is no account's number",
				settings.Printable(text))
		}
		c.Without = append(c.Without, uint32(n))
	}
	for _, text := range o.Halt {
		ticker, before, err := p.act(ctx, text, o)
		if err != nil {
			return c, settings.Usagef("--halt %s: %v", settings.Printable(text), err)
		}
		c.Acts = append(c.Acts, whatif.Halt(before, ticker))
	}
	for _, text := range o.Price {
		name, rest, _ := strings.Cut(text, "=")
		value, at, _ := strings.Cut(rest, "@")
		ticker, before, err := p.act(ctx, name+"@"+at, o)
		var px int64
		if err == nil {
			px, err = decimalOf(value)
		}
		if err == nil && px <= 0 {
			err = errors.New("the price must be above 0")
		}
		if err != nil {
			return c, settings.Usagef("--price %s: %v", settings.Printable(text), err)
		}
		c.Acts = append(c.Acts, whatif.Price(before, ticker, px))
	}
	for _, text := range o.Latency {
		var l whatif.Latency
		if n, err := fmt.Sscanf(text, "account=%d,ms=%d", &l.AccountID, &l.Millis); n != 2 ||
			err != nil ||
			text != fmt.Sprintf("account=%d,ms=%d", l.AccountID, l.Millis) || l.Millis < 0 {
			return c, settings.Usagef("--latency %s: want account=NUMBER,ms=NUMBER",
				settings.Printable(text))
		}
		if slices.ContainsFunc(c.Latency, func(other whatif.Latency) bool {
			return other.AccountID == l.AccountID
		}) {
			return c, settings.Usagef("--latency %s: the account has one already",
				settings.Printable(text))
		}
		c.Latency = append(c.Latency, l)
	}
	return c, nil
}

// act reads TICKER@SEQ.
func (p *Past) act(ctx context.Context, text string, o *WhatIf) (security uint32, before uint64,
	err error) {
	ticker, at, _ := strings.Cut(text, "@")
	before, err = strconv.ParseUint(at, 10, 63)
	if err != nil || before < o.From || before > o.To {
		return 0, 0, fmt.Errorf("the sequence behind @ must be of %d to %d", o.From, o.To)
	}
	m, err := p.h.At(ctx, before-1)
	if err != nil {
		return 0, 0, err
	}
	defer m.Release()
	security, known := m.Engine().Security(ticker)
	if !known {
		return 0, 0, fmt.Errorf("no such security at that sequence: %s", settings.Printable(ticker))
	}
	return security, before, nil
}

// limitValue reads a limit by the name of its setting, and its value in the units of the setting.
func limitValue(name, text string) (id matcher.LimitID, value int64, err error) {
	at := slices.Index(matcher.LimitSettings[:], name)
	if at < 0 {
		return 0, 0, fmt.Errorf("want NAME=VALUE of %s", strings.Join(matcher.LimitSettings[:], ", "))
	}
	id = matcher.LimitID(at)
	least, most := id.Range()
	if id.Money() {
		most /= matcher.PriceScale
	}
	value, err = strconv.ParseInt(text, 10, 64)
	if err != nil || value < least || value > most {
		return 0, 0, fmt.Errorf("want a whole number of %d to %d", least, most)
	}
	if id.Money() {
		value *= matcher.PriceScale
	}
	return id, value, nil
}

// decimalOf reads a price.
func decimalOf(text string) (int64, error) {
	r, ok := new(big.Rat).SetString(text)
	if !ok || strings.ContainsAny(text, "eE/") {
		return 0, errors.New("the price must be a number")
	}
	r.Mul(r, big.NewRat(matcher.PriceScale, 1))
	if !r.IsInt() || !r.Num().IsInt64() {
		return 0, errors.New("the price has more than 6 decimals, or is out of range")
	}
	return r.Num().Int64(), nil
}

// differences prints differences: all of them as lines of JSON, or the first ones of each kind.
type differences struct {
	w             io.Writer
	json          bool
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

func (d *differences) line(v any) error {
	text, err := json.Marshal(v)
	if err == nil {
		_, err = fmt.Fprintf(d.w, "%s\n", text)
	}
	return err
}

// profitLine and summaryLine are the last lines of JSON.
type profitLine struct {
	Kind      string          `json:"kind"`
	AccountID uint32          `json:"accountId"`
	Before    json.RawMessage `json:"before"`
	After     json.RawMessage `json:"after"`
	Change    json.RawMessage `json:"change"`
}

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

func dash(id *string) string {
	if id == nil {
		return "-"
	}
	return *id
}

func decision(d *whatif.Decision) string {
	if d.Reason == nil {
		return d.Decision
	}
	return d.Decision + " " + *d.Reason
}

func executed(e *whatif.Execution) string {
	if e == nil {
		return "-"
	}
	return fmt.Sprintf("%d at %s", e.Quantity, e.Price)
}

// money is an amount in millionths as a number.
func money(v *big.Int) json.RawMessage {
	if v.IsInt64() {
		return strictjson.FormatDecimal(nil, v.Int64())
	}
	return json.RawMessage(new(big.Rat).SetFrac(v, big.NewInt(matcher.PriceScale)).FloatString(6))
}
