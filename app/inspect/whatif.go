package inspect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"posttrade/app/settings"
	"posttrade/journal/whatif"
	"posttrade/matcher"
	"posttrade/matcher/strictjson"
)

// WhatIf is what the command line asks of what-if.
//
// The texts are as the operator has given them; changes checks them against the history.
type WhatIf struct {
	// The range of sequences that is decided anew, both included.
	From, To uint64
	// NAME=VALUE: a limit of all accounts, by the name and in the unit of its setting.
	Set []string
	// Numbers of accounts whose commands are left out.
	Without []string
	// TICKER@SEQ: the security is halted before the command of that sequence.
	Halt []string
	// TICKER=PRICE@SEQ: a market price comes before that command, in currency units.
	Price []string
	// account=N,ms=M: the account's commands come that much later.
	Latency []string
	// Lines of JSON for programs, and no table.
	JSON bool
	// Gets a line that is written over and over; nil for none.
	Progress io.Writer
}

// maxLatency is the longest latency, in milliseconds: ten years.
const maxLatency = 10 * 365 * 24 * 3600 * 1000

// WhatIf decides a range anew and prints what comes out differently.
//
//   - Output: with JSON each difference as it is found, so the memory does not grow with them;
//     otherwise the first ones of each kind and the totals, at the end.
//   - Errors: usage errors of the range and the changes, that of a run that was stopped, and those
//     of package whatif. A run that ctx has stopped still prints what was compared so far.
//   - Cost: see whatif.Run. Nothing is written and no server is asked.
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

// The line is at most ten times a second on its way to the terminal.
const (
	progressEvery = 100 * time.Millisecond
	progressWidth = 30
)

// progressLine is a bar, the share, and the speed.
//
// done and total count commands, total is at least 1, took is the time since the start.
func progressLine(done, total uint64, took time.Duration) string {
	full := int(done * progressWidth / total)
	return fmt.Sprintf("[%s%s] %3d %%  %.1f M commands/s", strings.Repeat("#", full),
		strings.Repeat(".", progressWidth-full), done*100/total,
		float64(done)/1e6/max(took.Seconds(), 1e-3))
}

// changes reads what is to be different.
//
// Every error is a usage error that begins with the flag. Of acts before one sequence the halts
// come first, then the prices.
func (p *Past) changes(ctx context.Context, o *WhatIf) (c whatif.Changes, err error) {
	c.Limits = map[matcher.LimitID]int64{}
	err = eachOf("--set", o.Set, func(text string) error {
		name, value, _ := strings.Cut(text, "=")
		id, n, err := limitValue(name, value)
		if _, given := c.Limits[id]; given && err == nil {
			err = errors.New("the limit is set twice")
		}
		c.Limits[id] = n
		return err
	})
	if err != nil {
		return c, err
	}
	err = eachOf("--without-account", o.Without, func(text string) error {
		n, err := strconv.ParseUint(text, 10, 32)
		if err != nil || n == 0 {
			return errors.New("it is no account's number")
		}
		c.Without = append(c.Without, uint32(n))
		return nil
	})
	if err != nil {
		return c, err
	}
	err = eachOf("--halt", o.Halt, func(text string) error {
		ticker, before, err := p.act(ctx, text, o)
		if err == nil {
			c.Acts = append(c.Acts, whatif.Halt(before, ticker))
		}
		return err
	})
	if err != nil {
		return c, err
	}
	err = eachOf("--price", o.Price, func(text string) error {
		act, err := p.price(ctx, text, o)
		if err == nil {
			c.Acts = append(c.Acts, act)
		}
		return err
	})
	if err != nil {
		return c, err
	}
	err = eachOf("--latency", o.Latency, func(text string) error {
		l, err := latencyOf(text)
		if err == nil && slices.ContainsFunc(c.Latency, func(other whatif.Latency) bool {
			return other.AccountID == l.AccountID
		}) {
			err = errors.New("the account has one already")
		}
		c.Latency = append(c.Latency, l)
		return err
	})
	return c, err
}

// eachOf reads the values of a flag. The first error is a usage error that begins with the flag and
// the value.
func eachOf(flag string, values []string, read func(text string) error) error {
	for _, text := range values {
		if err := read(text); err != nil {
			return settings.Usagef("%s %s: %v", flag, settings.Printable(text), err)
		}
	}
	return nil
}

// price reads TICKER=PRICE@SEQ.
func (p *Past) price(ctx context.Context, text string, o *WhatIf) (whatif.Act, error) {
	name, rest, _ := strings.Cut(text, "=")
	value, at, _ := strings.Cut(rest, "@")
	ticker, before, err := p.act(ctx, name+"@"+at, o)
	if err != nil {
		return whatif.Act{}, err
	}
	px, err := priceOf(value)
	return whatif.Price(before, ticker, px), err
}

// latencyOf reads account=NUMBER,ms=NUMBER, in that spelling alone.
func latencyOf(text string) (l whatif.Latency, err error) {
	const form = "account=%d,ms=%d"
	n, err := fmt.Sscanf(text, form, &l.AccountID, &l.Millis)
	if n != 2 || err != nil || text != fmt.Sprintf(form, l.AccountID, l.Millis) ||
		l.Millis < 0 || l.Millis > maxLatency {
		return l, fmt.Errorf("want account=NUMBER,ms=NUMBER, at most %d ms", int64(maxLatency))
	}
	return l, nil
}

// act reads TICKER@SEQ.
//
// The ticker must be known before the command: an act on a security that comes later would have no
// meaning. before is within the range.
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
//
// Money is a whole number of currency units here and millionths in the result; the other limits
// have one unit in both.
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

// priceOf reads a price in millionths of a currency unit: a number of JSON without an exponent.
func priceOf(text string) (int64, error) {
	px, err := strictjson.ParseDecimal([]byte(text))
	switch {
	case errors.Is(err, strictjson.ErrNumber), strings.ContainsAny(text, "eE"):
		return 0, errors.New("the price must be a number")
	case err != nil:
		return 0, errors.New("the price has more than 6 decimals, or is out of range")
	case px <= 0:
		return 0, errors.New("the price must be above 0")
	}
	return px, nil
}
