package whatif

import "posttrade/matcher"

// names translates order numbers between the history and the supposed engine, where commands come
// in another order and so get other numbers. Orders from before the range have the same number in
// both. The goroutine of the supposed engine uses it, and only where there is a latency.
//
// A number is the full one of 48 bits (matcher/number.go); a command carries its lower 32 bits.
// Memory grows with the orders of the range: 16 bytes each.
type names struct {
	// start is the first number of the range, the same for both.
	start uint64
	// there has, by a number of the history less start, the supposed engine's number; 0 is none yet.
	there []uint64
	// here is the other way; 0 means that the history has no such order.
	here []uint64
	// waiting has numbers that the history has given, by sequence, until the supposed engine has
	// decided the same command. What is delayed waits longest.
	waiting map[uint64]uint64
	// last is the highest number that the history has given by the end of the chunk.
	last uint64
}

func newNames(start uint64) names {
	return names{start: start, waiting: map[uint64]uint64{}, last: start - 1}
}

// note takes the numbers that the history has given in a chunk. It must see a chunk before the
// supposed engine decides it: learn looks the numbers up.
func (n *names) note(events []matcher.Event) {
	for i := range events {
		if number, ok := made(&events[i]); ok {
			n.waiting[events[i].InputSeq] = number
			n.last = max(n.last, number)
		}
	}
}

// made is the number of the order that a command has made, by its first event. A refused order has
// a number too; a DUPLICATE has not, because it repeats the decision on another order.
func made(ev *matcher.Event) (number uint64, ok bool) {
	if ev.Flags&matcher.EventFirst == 0 || ev.Cmd().TemplateID != matcher.TemplateCommand ||
		ev.Cmd().Type != matcher.OrderNew || ev.Reason == matcher.Duplicate {
		return 0, false
	}
	return ev.Order(), ev.OrderRef != 0
}

// learn pairs the numbers of an order. was is the sequence of its command in the history, first the
// first event of the supposed engine. When only one of the two has made an order, the other number
// is 0: one may be a DUPLICATE where the other is the first with its key.
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

// set grows the list with zeros up to the index: numbers are learned out of order.
func set(list *[]uint64, at, value uint64) {
	for uint64(len(*list)) <= at {
		*list = append(*list, 0)
	}
	(*list)[at] = value
}

// translate gives a command the supposed engine's reference of the order that it names. Of an order
// that has not come yet the reference is 0, and the engine refuses the command: an order that is
// still on its way cannot be cancelled.
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

// restore gives events of the supposed engine the history's numbers, so that both sides compare
// equal where the same happened. It changes the order of the event and, in any event but the first
// of a command, the order on the other side. The command in a first event keeps the translated
// reference.
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
