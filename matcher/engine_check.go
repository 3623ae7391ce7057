package matcher

import "fmt"

// mustBeSound panics unless the list of doc.go holds. A build with ring.Checks calls it before
// every command. It looks after 1, 2, 4, 8 and so on commands, because a look costs what the tables
// hold, and at no engine whose positions alone would take longer than its commands: the bound is in
// rows of the table of positions, used or not, because check visits them all.
func (e *Engine) mustBeSound() {
	const rows = 1 << 18
	if e.applied&(e.applied-1) != 0 || len(e.positions.rows) > rows {
		return
	}
	if err := e.check(); err != nil {
		panic(fmt.Sprintf("matcher: after inputSeq=%d: %v", e.applied, err))
	}
}

// check returns an error that names an invariant of doc.go that does not hold. It recomputes
// everything from the orders and the book. Invariant 1 and the cash need the history of fills, so
// the model compares them (package matchertest).
//
// It changes nothing and may be called between two commands. It allocates, and costs what the
// tables have room for.
func (e *Engine) check() error {
	// The account here is its index + 1, as order.account has it; 0 is that of a refused order.
	type holding struct{ account, security uint32 }
	cash := make(map[uint32][2]int64)
	leaves := make(map[holding][2]int64)
	open, terminal := 0, 0
	var failed error
	e.orders.each(func(i ix) bool {
		o, cold := e.orders.hot(i), e.orders.cold(i)
		if err := e.checkOrder(o, cold); err != nil {
			failed = fmt.Errorf("order %d: %w", o.ref, err)
			return false
		}
		if o.status().Terminal() {
			terminal++
			return true
		}
		open++
		c := cash[o.account]
		c[o.side()] += cold.limit * int64(o.leaves)
		cash[o.account] = c
		h := holding{o.account, o.security()}
		l := leaves[h]
		l[o.side()] += int64(o.leaves)
		leaves[h] = l
		return true
	})
	if failed != nil {
		return failed
	}
	if open != e.openOrders || open > e.maxOpen {
		return fmt.Errorf("%d open orders, counted %d, at most %d", open, e.openOrders, e.maxOpen)
	}
	if terminal != e.retired.count {
		return fmt.Errorf("%d terminal orders, %d retained", terminal, e.retired.count)
	}
	for n := range e.retired.count {
		if o := e.orders.hot(e.retired.at(n)); o.ref == 0 || !o.status().Terminal() {
			return fmt.Errorf("retained order %d is %v", o.ref, o.status())
		}
	}
	for i := range e.accounts.rows[:e.accounts.count] {
		a := &e.accounts.rows[i]
		if want := cash[uint32(i+1)]; a.open != want {
			return fmt.Errorf("account %d reserves %d and %d, its orders need %v", a.id, a.open[Buy],
				a.open[Sell], want)
		}
		if e.accounts.find(a.id) != i {
			return fmt.Errorf("account %d is not found where it is", a.id)
		}
	}
	for i := range e.positions.rows {
		p := &e.positions.rows[i]
		row := uint32(i)
		h := holding{uint32(e.positions.account(row) + 1), e.positions.security(row)}
		if want := leaves[h]; p.open != want {
			return fmt.Errorf("position %v reserves %d and %d, its orders need %v", h, p.open[Buy],
				p.open[Sell], want)
		}
		if (p.quantity == 0) != (p.average == 0) || p.average < 0 {
			return fmt.Errorf("position %v is %d at %d", h, p.quantity, p.average)
		}
	}
	return e.checkBooks(open)
}

// checkOrder checks what holds of one order by itself: its leaves agree with its status, and it
// rests exactly when it is open.
func (e *Engine) checkOrder(o *order, cold *orderCold) error {
	switch status := o.status(); {
	case status == StatusRejected:
		if o.leaves != cold.qty {
			return fmt.Errorf("refused with leaves %d of %d", o.leaves, cold.qty)
		}
	case o.leaves < 0 || o.leaves > cold.qty || (o.leaves == 0) != (status == StatusFilled):
		return fmt.Errorf("%v with leaves %d of %d", status, o.leaves, cold.qty)
	case status == StatusNew && o.leaves != cold.qty ||
		status == StatusPartiallyFilled && o.leaves == cold.qty:
		return fmt.Errorf("%v with leaves %d of %d", status, o.leaves, cold.qty)
	}
	if o.rests() == o.status().Terminal() {
		return fmt.Errorf("%v, rests=%v", o.status(), o.rests())
	}
	return nil
}

// checkBooks checks every ladder, and that all open orders and no others rest, in the order of
// their priority: at one price the stamps rise from the first order of the queue to the last. open
// is the number of open orders in the pool.
func (e *Engine) checkBooks(open int) error {
	for id := range e.ladders {
		l := &e.ladders[id]
		if err := l.check(); err != nil {
			return fmt.Errorf("security %d: %w", id+1, err)
		}
		for _, side := range []Side{Buy, Sell} {
			var lastPx int64
			var lastStamp uint64
			var failed error
			l.eachOrder(side, func(i ix) bool {
				open--
				o, cold := e.orders.hot(i), e.orders.cold(i)
				switch {
				case o.security() != uint32(id+1) || o.side() != side:
					failed = fmt.Errorf("order %d is in the wrong queue", o.ref)
				case l.price(i)*e.policy.tickPx != cold.limit:
					failed = fmt.Errorf("order %d rests at %d, its limit is %d", o.ref, l.price(i), cold.limit)
				case cold.limit == lastPx && cold.stamp <= lastStamp:
					failed = fmt.Errorf("order %d stands behind a younger one", o.ref)
				}
				lastPx, lastStamp = cold.limit, cold.stamp
				return failed == nil
			})
			if failed != nil {
				return failed
			}
		}
	}
	if open != 0 {
		return fmt.Errorf("%d open orders are on no book", open)
	}
	if err := e.checkContracts(); err != nil {
		return err
	}
	return e.checkKeys()
}

// checkContracts checks that contracts ascend by id, up to the last command: the id is the sequence
// of the booking.
func (e *Engine) checkContracts() error {
	last := uint64(0)
	for i := range e.contracts.rows[:e.contracts.count] {
		if c := &e.contracts.rows[i]; c.id <= last || c.id > e.applied {
			return fmt.Errorf("contract %d after %d, applied are %d", c.id, last, e.applied)
		}
		last = e.contracts.rows[i].id
	}
	return nil
}

// checkKeys checks that every remembered entry is found under its family and its account, and that
// the buckets and the list of spilled entries name each entry of the ring and no other. A slot
// whose number has left the ring is free and does not count.
func (e *Engine) checkKeys() error {
	k := &e.keys
	for i := range k.count {
		entry := k.place(i)
		found, _ := k.find(entry.family(), entry.key, entry.decision&^decisionBits)
		if found != entry {
			return fmt.Errorf("key %d is not found where it is", entry.key)
		}
	}
	listed := map[uint32]bool{} // number 0 is also the number of empty slots
	inRing := func(number uint32) {
		if back := k.number - number; back >= 1 && back <= uint32(k.count) {
			listed[number] = true
		}
	}
	for _, b := range k.buckets {
		for _, number := range b.numbers {
			inRing(number)
		}
	}
	for _, number := range k.spilled[:k.spillCount] {
		inRing(number)
	}
	if len(listed) != k.count {
		return fmt.Errorf("%d of %d keys are listed", len(listed), k.count)
	}
	return nil
}
