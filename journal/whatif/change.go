package whatif

import (
	"cmp"
	"slices"

	"posttrade/matcher"
)

// Changes are what is supposed to be different. The zero value changes nothing.
type Changes struct {
	Limits   map[matcher.LimitID]int64 // of all accounts, as the engine counts: money x 1e6
	Without  []uint32                  // accounts whose orders, trades and bookings are left out
	Acts     []Act                     // commands that come in between
	Latency  []Latency
	accounts map[uint32]bool
}

// Act is a command that comes before a sequence. Its event time is that of the command there.
type Act struct {
	Before  uint64
	Command matcher.Command
}

// Halt is the act that halts a security.
func Halt(before uint64, security uint32) Act {
	c := matcher.NewCommand(matcher.SecurityControl)
	c.SecurityID, c.Side = security, matcher.SecurityHalted|matcher.KeepEnabled
	return Act{before, c}
}

// Price is the act that sets a market price.
func Price(before uint64, security uint32, px int64) Act {
	c := matcher.NewCommand(matcher.PriceTick)
	c.SecurityID, c.PriceTicks = security, px
	return Act{before, c}
}

// Latency delays the commands of an account: they come after those of other accounts that were
// made in the meantime.
type Latency struct {
	AccountID uint32
	Millis    int64
}

// item is a command for the supposed engine.
type item struct {
	cmd     matcher.Command
	was     uint64 // its sequence in the history; 0 is an act
	removed bool   // it is left out: its refusal is no difference
	due     int64  // when it comes, by the latest event time of the others
}

// changer turns the history's commands into those of the supposed engine. One goroutine uses it.
type changer struct {
	*Changes
	acts    []Act // those that have not come yet, by sequence
	late    []item
	clock   int64 // the latest event time so far: times may go back, what was sent does not
	reorder bool
}

func newChanger(c *Changes) *changer {
	acts := slices.Clone(c.Acts)
	slices.SortStableFunc(acts, func(a, b Act) int { return cmp.Compare(a.Before, b.Before) })
	c.accounts = map[uint32]bool{}
	for _, id := range c.Without {
		c.accounts[id] = true
	}
	return &changer{Changes: c, acts: acts, reorder: len(c.Latency) > 0}
}

// plain reports that commands reach the supposed engine as they are.
func (x *changer) plain(cmds []matcher.Command) bool {
	if x.reorder || len(x.accounts) > 0 || len(x.acts) > 0 && len(cmds) > 0 &&
		x.acts[0].Before <= cmds[len(cmds)-1].InputSeq {
		return false
	}
	for i := range cmds {
		if c := &cmds[i]; verdict(c) || len(x.Limits) > 0 &&
			(c.Type == matcher.PolicyControl || c.Type == matcher.LimitsControl) {
			return false
		}
	}
	return true
}

// add appends what the supposed engine gets for one command. anew: a verdict of the gate that it
// carries is dropped.
func (x *changer) add(items []item, c *matcher.Command, anew bool) []item {
	for len(x.acts) > 0 && x.acts[0].Before <= c.InputSeq {
		act := item{cmd: x.acts[0].Command}
		act.cmd.EventTimeMillis = timeOf(c)
		x.clock = max(x.clock, timeOf(c))
		items = x.release(items, x.clock)
		x.acts = x.acts[1:]
		items = append(items, act)
	}
	next := item{cmd: *c, was: c.InputSeq}
	if anew {
		next.cmd.OrderRef = 0
	}
	for limit, value := range x.Limits {
		limit.Without(&next.cmd, value)
	}
	if x.accounts[c.AccountID] {
		next.leaveOut()
	}
	if !x.reorder {
		return append(items, next)
	}
	return x.delay(items, next)
}

// timeOf is a command's event time; those of templates 7 and 8 have none.
func timeOf(c *matcher.Command) int64 {
	if c.TemplateID != matcher.TemplateCommand {
		return 0
	}
	return c.EventTimeMillis
}

// leaveOut makes a command of an account that is left out do nothing. An order is refused, so that
// it takes its number and its key.
func (n *item) leaveOut() {
	c := &n.cmd
	if c.TemplateID != matcher.TemplateCommand {
		return
	}
	switch c.Type {
	case matcher.OrderNew, matcher.TradeNew:
		c.OrderRef = uint32(matcher.NotEntitled)
	case matcher.OrderCancel, matcher.OrderReplace, matcher.ForceFill: // of an order that is not open
	case matcher.SwapBook, matcher.SwaptionBook:
		mark := matcher.NewCommand(matcher.SnapshotMark)
		mark.EventTimeMillis = c.EventTimeMillis
		*c = mark
	default:
		return
	}
	n.removed = true
}

// delay holds a command back by its account's latency. What is held back comes when a command of a
// later time does.
func (x *changer) delay(items []item, next item) []item {
	millis := timeOf(&next.cmd)
	x.clock = max(x.clock, millis)
	items = x.release(items, x.clock)
	if acts(&next.cmd) {
		for _, l := range x.Latency {
			if l.AccountID == next.cmd.AccountID && l.Millis > 0 {
				next.due = x.clock + l.Millis
				next.cmd.EventTimeMillis = millis + l.Millis
				x.late = append(x.late, next)
				return items
			}
		}
	}
	return append(items, next)
}

// acts reports a command that an account sends.
func acts(c *matcher.Command) bool {
	if c.TemplateID != matcher.TemplateCommand {
		return false
	}
	switch c.Type {
	case matcher.OrderNew, matcher.OrderCancel, matcher.OrderReplace, matcher.TradeNew,
		matcher.SwapBook, matcher.SwaptionBook:
		return true
	}
	return false
}

// release appends what is due before a time, in the order of the due times.
func (x *changer) release(items []item, millis int64) []item {
	if len(x.late) == 0 {
		return items
	}
	slices.SortStableFunc(x.late, func(a, b item) int { return cmp.Compare(a.due, b.due) })
	n := 0
	for n < len(x.late) && x.late[n].due < millis {
		n++
	}
	items = append(items, x.late[:n]...)
	x.late = slices.Delete(x.late, 0, n)
	return items
}

// remainder appends what is left at the end: acts behind the last command, and what is still held
// back.
func (x *changer) remainder(items []item, millis int64) []item {
	for _, act := range x.acts {
		act.Command.EventTimeMillis = millis
		items = append(items, item{cmd: act.Command})
	}
	x.acts = nil
	slices.SortStableFunc(x.late, func(a, b item) int { return cmp.Compare(a.due, b.due) })
	items = append(items, x.late...)
	x.late = nil
	return items
}
