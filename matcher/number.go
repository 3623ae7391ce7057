//perf:hot

package matcher

// Orders are numbered from 1, and no number is assigned twice. Records, rings and tables carry the
// reference: the lower 32 bits of the number, which distinguish the orders that are held. Events,
// fills and rows also carry the upper bits, the era, where the number is shown. Era 0 is the first
// 2^32-1 orders, for which number and reference are the same; records of version 1 know no other.
const (
	// References have 32 bits, and 0 is none. An era has 16 bits in records, events and rows, so a
	// number has 48 in all.
	maxOrderRef    = 1<<32 - 1
	maxOrderNumber = 1<<48 - 1
	eraAt          = 32
)

// MaxOrderNumber is the last number that an order can have.
const MaxOrderNumber uint64 = maxOrderNumber

// numberLate returns the number of the next order once the references of an era are used up, 0 for
// none. It skips a reference that an order from an earlier era still has, so that a reference names
// at most one order that is held. Records of version 1 have no era and get no number here.
//
// A number that it skips is never assigned. The orders held bound the number of steps.
func (e *Engine) numberLate(c *Command) uint64 {
	if c.Version < 2 {
		return 0
	}
	number := e.nextRef
	for uint32(number) == 0 || e.orders.find(uint32(number)) != 0 {
		number++
	}
	if number > maxOrderNumber {
		return 0
	}
	return number
}

// number returns the number of an order that is held. In era 0 it does not read the cold half,
// which the path has no other reason to load.
func (e *Engine) number(o *order, cold *orderCold) uint64 {
	if e.nextRef <= maxOrderRef+1 {
		return uint64(o.ref)
	}
	return uint64(o.ref) | uint64(cold.era)<<eraAt
}

// named returns the number of the order that a command names: that of the held order, else that of
// the last order that had the reference, 0 when none had it. It is for events and keys; a decision
// needs the held order.
func (e *Engine) named(c *Command) uint64 {
	if i := e.orders.find(c.OrderRef); i != 0 {
		return e.number(e.orders.hot(i), e.orders.cold(i))
	}
	return LastNumber(e.nextRef-1, c.OrderRef)
}

// LastNumber is the highest number up to last that has the reference, 0 if there is none. Readers
// that know only a reference, and the last number issued, name the order with it.
func LastNumber(last uint64, ref uint32) uint64 {
	number := last>>eraAt<<eraAt | uint64(ref)
	switch {
	case ref == 0:
		return 0
	case number <= last:
		return number
	case number <= maxOrderRef:
		return 0
	}
	return number - 1<<eraAt
}

// rejectNamed is reject for a command that names an order: the event also has the era of that
// order, so that readers see its whole number.
func (e *Engine) rejectNamed(c *Command, reason RiskReason) {
	number := e.named(c)
	ev := e.first(c, head(EventRejected, c.Side, reason, 0, EventLast), c.LimitPx)
	ev.Era = uint16(number >> eraAt)
}

// name sets the order that an event is about.
func (e *Event) name(number uint64) { e.OrderRef, e.Era = uint32(number), uint16(number>>eraAt) }

// Order returns the number of the order that the event is about, 0 for none.
func (e *Event) Order() uint64 { return uint64(e.Era)<<eraAt | uint64(e.OrderRef) }

// Named returns the number of the order that the command of a first event names. A repeated replace
// names one of the era of the first decision's order.
func (e *Event) Named() uint64 {
	if ref := e.Cmd().OrderRef; ref != 0 {
		return uint64(e.Era)<<eraAt | uint64(ref)
	}
	return 0
}

// Counter returns the number of the order on the other side of a fill, 0 for none.
func (d *Detail) Counter() uint64 { return uint64(d.CounterEra)<<eraAt | uint64(d.CounterRef) }

// Order returns the number of the order that was filled, 0 for a market trade.
func (f *Fill) Order() uint64 { return uint64(f.Era)<<eraAt | uint64(f.OrderRef) }

// counter sets the order on the other side of a fill.
func (d *Detail) counter(number uint64) {
	d.CounterRef, d.CounterEra = uint32(number), uint16(number>>eraAt)
}
