package whatif

import "posttrade/matcher"

// names translates order numbers between the history and the supposed engine, where commands come
// in another order. Orders from before the range have the same number in both. One goroutine uses
// it.
type names struct {
	start uint64 // the first number of the range
	// by a number of the history, less start: the supposed engine's; 0 none yet
	there   []uint64
	here    []uint64          // the other way; 0: the history has no such order
	waiting map[uint64]uint64 // by sequence: numbers that the history has given
	last    uint64            // of them
}

func newNames(start uint64) names {
	return names{start: start, waiting: map[uint64]uint64{}, last: start - 1}
}

// note takes the numbers that the history has given in a chunk.
func (n *names) note(events []matcher.Event) {
	for i := range events {
		if number, ok := made(&events[i]); ok {
			n.waiting[events[i].InputSeq] = number
			n.last = max(n.last, number)
		}
	}
}

// made is the number of the order that a first event has made, if it has made one.
func made(ev *matcher.Event) (number uint64, ok bool) {
	if ev.Flags&matcher.EventFirst == 0 || ev.Cmd().TemplateID != matcher.TemplateCommand ||
		ev.Cmd().Type != matcher.OrderNew || ev.Reason == matcher.Duplicate {
		return 0, false
	}
	return ev.Order(), ev.OrderRef != 0
}

// learn pairs the numbers of an order, from the first event of the supposed engine.
func (n *names) learn(was uint64, first *matcher.Event) {
	there, ok := made(first)
	here := n.waiting[was]
	delete(n.waiting, was)
	if !ok {
		return
	}
	set(&n.here, there-n.start, here)
	if here != 0 {
		set(&n.there, here-n.start, there)
	}
}

func set(list *[]uint64, at, value uint64) {
	for uint64(len(*list)) <= at {
		*list = append(*list, 0)
	}
	(*list)[at] = value
}

// translate gives a command the supposed engine's reference of the order that it names. An order
// that has not come yet is none.
func (n *names) translate(c *matcher.Command) {
	if c.TemplateID != matcher.TemplateCommand || c.Type != matcher.OrderCancel &&
		c.Type != matcher.OrderReplace && c.Type != matcher.ForceFill {
		return
	}
	number := matcher.LastNumber(n.last, c.OrderRef)
	if number < n.start {
		return
	}
	c.OrderRef = uint32(at(n.there, number-n.start))
}

func at(list []uint64, i uint64) uint64 {
	if i >= uint64(len(list)) {
		return 0
	}
	return list[i]
}

// restore gives events the history's numbers.
func (n *names) restore(events []matcher.Event) {
	for i := range events {
		ev := &events[i]
		if number := ev.Order(); number >= n.start {
			ev.SetOrder(at(n.here, number-n.start))
		}
		if ev.Flags&matcher.EventFirst != 0 {
			continue
		}
		if number := ev.Detail().Counter(); number >= n.start {
			ev.Detail().SetCounter(at(n.here, number-n.start))
		}
	}
}
