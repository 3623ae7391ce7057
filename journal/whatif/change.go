package whatif

import (
	"cmp"
	"slices"

	"posttrade/matcher"
)

// Changes are what is supposed to be different. The zero value changes nothing.
//
// All changes hold together, for the whole range. Run does not check them: the caller has made sure
// that limits are within their ranges, that accounts are not 0 and that no account has two
// latencies (app/inspect does). An account that does not exist is reported in Result.Unknown.
type Changes struct {
	// Limits of all accounts, in the units of the engine: money x 1e6, age in milliseconds, collar in
	// basis points. A supposed limit holds over the whole range, also behind a command that changes
	// the same limit for all accounts. An account with a limit of its own keeps that one.
	Limits map[matcher.LimitID]int64
	// Without are the accounts whose orders, trades and bookings are left out. Their open orders are
	// cancelled before the first command, and what they hold by then stays.
	Without []uint32
	// Acts come in between, in the order of their sequences. Acts of one sequence keep the order that
	// they have here.
	Acts []Act
	// Latency puts commands into another order, so that order numbers have to be translated. A latency
	// of 0 ms changes nothing.
	Latency []Latency
	// accounts is Without as a set. newChanger makes it.
	accounts map[uint32]bool
}

// Act is a command that comes before a sequence. Its event time becomes that of the command there,
// or 0 where that command has none. What an act itself decides is not compared: the history has
// nothing to compare it with.
type Act struct {
	Before uint64
	// Command is of template 1. Its event time and its sequence are not looked at.
	Command matcher.Command
}

// Halt is the act that halts a security. It keeps the flag "enabled" of the security, and holds
// until a later command of the history says something about "halted".
func Halt(before uint64, security uint32) Act {
	c := matcher.NewCommand(matcher.SecurityControl)
	c.SecurityID, c.Side = security, matcher.SecurityHalted|matcher.KeepEnabled
	return Act{before, c}
}

// Price is the act that sets a market price: px x 1e6, above 0. The next tick or trade of the
// history replaces it.
func Price(before uint64, security uint32, px int64) Act {
	c := matcher.NewCommand(matcher.PriceTick)
	c.SecurityID, c.PriceTicks = security, px
	return Act{before, c}
}

// Latency delays the commands of an account: they come after those of other accounts that were
// made in the meantime.
//
// Only what an account sends is delayed (see acts); an operator's command about the account is not.
// The delay counts from the latest event time so far, because event times may go back.
type Latency struct {
	AccountID uint32
	// 0 or less is no delay
	Millis int64
}

// item is one command for the supposed engine, and what the comparison has to know about it.
type item struct {
	// cmd is the command as the supposed engine gets it, but for the order's number (names.translate).
	cmd matcher.Command
	// was is the command's sequence in the history; 0 is an act. The supposed engine's own sequences
	// differ as soon as an act, a cancel or a delay has come in between.
	was uint64
	// removed: the command is of an account that is left out. That it is refused is no difference, but
	// trades that go with it are.
	removed bool
	// due is the moment, in epoch milliseconds of changer.clock, behind which a delayed command comes.
	// It is 0 for a command that is not delayed.
	due int64
}

// changer turns the history's commands into those of the supposed engine. The goroutine that reads
// the history uses it; the other stages read only reorder, Limits and accounts, which do not change
// once the changer is made.
type changer struct {
	*Changes
	// acts are those that have not come yet, ascending by sequence.
	acts []Act
	// late are the delayed commands that are held back. release sorts them by due, so that commands of
	// one due time keep the order of the history.
	late []item
	// clock is the latest event time so far, in epoch milliseconds. Times of the history may go back;
	// a clock that followed them would release a command before others that were sent earlier.
	clock int64
	// reorder: there is a latency, so commands and order numbers may come in another order.
	reorder bool
}

// newChanger copies the acts before it sorts them: the list belongs to the caller.
func newChanger(c *Changes) *changer {
	acts := slices.Clone(c.Acts)
	slices.SortStableFunc(acts, func(a, b Act) int { return cmp.Compare(a.Before, b.Before) })
	c.accounts = map[uint32]bool{}
	for _, id := range c.Without {
		c.accounts[id] = true
	}
	return &changer{Changes: c, acts: acts, reorder: len(c.Latency) > 0}
}

// plain reports that a chunk reaches the supposed engine as it is, so that no item has to be made
// of its commands. It must be false when add would change or add anything: a record with a verdict
// of the gate may be decided anew, and a control may set a limit that is supposed to differ.
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
//
// Acts that are due come first, behind what is due by the time of the command. So nothing that was
// held back comes between an act and its command.
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

// timeOf is a command's event time in epoch milliseconds. Those of templates 7 and 8 have none:
// where it lies in other records, they have bytes of another meaning.
func timeOf(c *matcher.Command) int64 {
	if c.TemplateID != matcher.TemplateCommand {
		return 0
	}
	return c.EventTimeMillis
}

// leaveOut makes a command of an account that is left out do nothing.
//
//   - An order or a market trade gets a refusal of the gate, so that it still takes its order
//     number and its idempotency key. Were it dropped, all later orders would have other numbers.
//   - A cancel, a replace or a force fill stays as it is. Its order was refused here, or cancelled
//     before the range, so the engine refuses the command.
//   - A booking becomes a mark, which has no effect: a booking has no order number to keep.
//   - A control stays and counts as an ordinary command: it is about the account, not of it.
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

// delay appends a command, or holds it back by its account's latency. First it releases what is due
// before the command's time: what is held back comes when a command of a later time does. The event
// time of a delayed command grows by the latency too, so that the age of a price is judged as of
// the moment at which the command would have come.
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

// acts reports a command that an account sends. Only these can be late: prices, controls and force
// fills have other senders.
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

// release appends what is due before a time, in the order of the due times. A command that is due
// at that time exactly stays behind what others sent until then.
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
//
// millis is the event time of the history's last command: an act takes it. Run calls remainder
// once, after the last chunk, and only when all of the range was read.
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
