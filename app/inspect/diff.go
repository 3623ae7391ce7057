package inspect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"posttrade/app/settings"
	"posttrade/matcher"
)

// change is one thing that commands of a range have touched.
//
// The thing is shown twice, as it was at both ends of the range, by the endpoint that shows it.
type change struct {
	// As it is printed, and the key under which it is known: "order ord-7", "position 1 AAPL",
	// "policy".
	name string
	// Of the endpoint that shows it, with its query.
	path string
	// A piece of JSON text that only its element of a list contains; empty when it is the whole
	// document.
	pick string
	// The inputSeqs of the commands that have touched it, ascending, each once.
	by []uint64
}

// changes collects what events touch.
//
// It grows with the number of things and commands, not with the number of events.
type changes struct {
	// In the order in which the things were touched first: that of the output.
	list []*change
	// The same things by name.
	of map[string]*change
	// The ticker of a security's number, as the engine that replays knows it.
	ticker func(uint32) string
	// Only what is this account's is noted; 0 notes all.
	account uint32
}

// touch notes that a command changed something; the same command twice counts once.
func (c *changes) touch(name, path, pick string, inputSeq uint64) {
	known := c.of[name]
	if known == nil {
		known = &change{name: name, path: path, pick: pick}
		c.of[name] = known
		c.list = append(c.list, known)
	}
	if n := len(known.by); n == 0 || known.by[n-1] != inputSeq {
		known.by = append(known.by, inputSeq)
	}
}

// see notes what an event touches.
//
// A refusal touches an order only when there is one: a command that was refused before it had a
// number has changed nothing. Of a fill both sides come as events of their own.
func (c *changes) see(ev *matcher.Event) {
	mine := c.account == 0 || ev.AccountID == c.account
	if n := ev.Order(); n != 0 && mine && ev.Kind != matcher.EventApplied &&
		(ev.Kind != matcher.EventRejected || ev.Status == matcher.StatusRejected) {
		id := matcher.OrderID(n)
		c.touch("order "+id, "/orders/"+id, "", ev.InputSeq)
	}
	switch ev.Kind {
	case matcher.EventFilled:
		if mine {
			c.touch(fmt.Sprintf("position %d %s", ev.AccountID, c.ticker(ev.SecurityID)),
				fmt.Sprintf("/positions?limit=1000&accountId=%d", ev.AccountID),
				`"security":`+strconv.Quote(c.ticker(ev.SecurityID)), ev.InputSeq)
		}
	case matcher.EventContract:
		if mine {
			id := matcher.ContractID(ev.Cmd().Type == matcher.SwaptionBook, ev.InputSeq)
			c.touch("contract "+id, "/contracts/"+id, "", ev.InputSeq)
		}
	case matcher.EventApplied:
		if ev.Flags&matcher.EventFirst != 0 {
			c.control(ev.Cmd())
		}
	case matcher.EventLimits:
		// By the last part of the change, with which the limits change.
		if !ev.Limits().ForAccount {
			c.touch("policy", controls, "", ev.InputSeq)
		} else if mine {
			c.touchAccount(ev.AccountID, ev.InputSeq)
		}
	}
}

// controls is the endpoint that shows accounts, securities, and the policy with the limits.
const controls = "/risk/control/snapshot"

// touchAccount notes that a command changed an account's control or its own limits.
func (c *changes) touchAccount(id uint32, inputSeq uint64) {
	c.touch(fmt.Sprintf("account %d", id), controls, fmt.Sprintf(`{"id":%d,`, id), inputSeq)
}

// control notes what a control touches.
//
// It is called for the first event of a command, so a control of several events counts once.
// Limits have an event of their own; capacities and notes are left out, no endpoint shows them.
func (c *changes) control(cmd *matcher.Command) {
	if cmd.TemplateID != matcher.TemplateCommand {
		return
	}
	switch cmd.Type {
	case matcher.AccountControl:
		if c.account == 0 || c.account == cmd.AccountID {
			c.touchAccount(cmd.AccountID, cmd.InputSeq)
		}
	case matcher.SecurityControl, matcher.RestrictionControl:
		c.touch("security "+c.ticker(cmd.SecurityID), controls,
			`"ticker":`+strconv.Quote(c.ticker(cmd.SecurityID)), cmd.InputSeq)
	case matcher.PolicyControl:
		c.touch("policy", controls, "", cmd.InputSeq)
	}
}

// Diff prints what the commands after from, up to to, have changed, and which commands it was. args
// are empty, or: account NUMBER.
//
// from is 0 to to, to at most the head. Things come in the order of their first change, then a
// line with the counts.
//
//   - Errors: usage errors about the range and the arguments; those of reading the journal, and of
//     w.
//   - Cost: the replay from the nearest snapshot before from up to to, and two documents for each
//     thing. It holds one engine beside those of the history.
func (p *Past) Diff(ctx context.Context, w io.Writer, from, to uint64, args []string) (err error) {
	c := changes{of: map[string]*change{}}
	switch {
	case len(args) == 2 && args[0] == "account":
		n, err := strconv.ParseUint(args[1], 10, 32)
		if err != nil || n == 0 {
			return settings.Usagef("account: %s is no account's number", settings.Printable(args[1]))
		}
		c.account = uint32(n)
	case len(args) > 0:
		return settings.Usagef("unexpected argument %s", settings.Printable(args[0]))
	}
	if from > to || to > p.h.Head() {
		return settings.Usagef("--from %d --to %d: want from <= to <= %d, the head", from, to,
			p.h.Head())
	}
	sh, err := p.h.Shadow(ctx, from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sh.Close()) }()
	c.ticker = sh.Engine().(*matcher.Engine).Ticker
	if err := sh.Follow(ctx, to, func(events []matcher.Event) error {
		for i := range events {
			c.see(&events[i])
		}
		return nil
	}); err != nil {
		return err
	}
	for _, one := range c.list {
		if err := p.printChange(ctx, w, one, from, to); err != nil {
			return err
		}
	}
	fmt.Fprintf(w, "%d commands, %d things changed\n", to-from, len(c.list))
	return nil
}

// printChange prints the members that differ; "-" stands for one that is null or not there.
//
// A member that is a list, and the time of the last change, are left out.
func (p *Past) printChange(ctx context.Context, w io.Writer, c *change, from, to uint64) error {
	before, err := p.object(ctx, c, from)
	if err != nil {
		return err
	}
	after, err := p.object(ctx, c, to)
	if err != nil {
		return err
	}
	var text []string
	for _, m := range slices.Concat(after, gone(before, after)) {
		was, is := textOf(before, m.name), textOf(after, m.name)
		switch {
		case m.name == "updatedAt" || strings.HasPrefix(string(m.value), "[") || was == is:
		case len(before) == 0:
			text = append(text, m.name+" "+is)
		default:
			text = append(text, m.name+" "+was+" -> "+is)
		}
	}
	switch {
	case len(after) == 0:
		text = []string{"no longer kept"}
	case len(before) == 0:
		text = append([]string{"new"}, text...)
	case len(text) == 0:
		text = []string{"as before"}
	}
	_, err = fmt.Fprintf(w, "%s: %s  (by %s)\n", c.name, strings.Join(text, ", "), sequences(c.by))
	return err
}

// gone are the members of before that after does not have.
func gone(before, after []member) []member {
	return slices.DeleteFunc(slices.Clone(before), func(b member) bool {
		return slices.ContainsFunc(after, func(a member) bool { return a.name == b.name })
	})
}

// textOf is the value of a member as text, "-" where there is none.
func textOf(all []member, name string) string {
	if i := slices.IndexFunc(all, func(m member) bool { return m.name == name }); i >= 0 {
		return plain(all[i].value)
	}
	return "-"
}

// sequences lists the first ones of a list.
//
// Ten are enough to begin to look with why or step.
func sequences(list []uint64) string {
	const most = 10
	var text []string
	for _, n := range list[:min(len(list), most)] {
		text = append(text, strconv.FormatUint(n, 10))
	}
	if more := len(list) - most; more > 0 {
		text = append(text, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(text, ", ")
}

// object is what a change is about, as it was after a sequence; nil for none.
//
// Only what the endpoint does not know was not there: every other error ends the command, because
// the caller would print damage as a change. A list is searched page by page for the element that
// contains pick, whatever the list's name is. The members of an object in it, such as the limits,
// are members with the names of both: limits.creditLimit.
func (p *Past) object(ctx context.Context, c *change, at uint64) (found []member, err error) {
	err = p.pages(ctx, at, c.path, c.pick != "", func(text []byte) (enough bool, err error) {
		if c.pick == "" {
			found, err = members(text)
			return true, err
		}
		found, err = c.among(text)
		return found != nil, err
	})
	var absent absentError
	if errors.As(err, &absent) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return flat(found)
}

// flat replaces each member that is an object by its members.
func flat(all []member) (list []member, err error) {
	for _, m := range all {
		if !strings.HasPrefix(string(m.value), "{") {
			list = append(list, m)
			continue
		}
		inner, err := members(m.value)
		if err != nil {
			return nil, err
		}
		for _, i := range inner {
			list = append(list, member{m.name + "." + i.name, i.value})
		}
	}
	return list, nil
}

// among is the element of a document's lists that contains pick; nil for none.
func (c *change) among(text []byte) ([]member, error) {
	lists := map[string]json.RawMessage{}
	if err := json.Unmarshal(text, &lists); err != nil {
		return nil, err
	}
	for _, list := range lists {
		var rows []json.RawMessage
		if json.Unmarshal(list, &rows) != nil {
			continue
		}
		for _, row := range rows {
			if strings.Contains(string(row), c.pick) {
				return members(row)
			}
		}
	}
	return nil, nil
}
