package blotter

import (
	"fmt"

	"posttrade/matcher"
)

// mustBeSound panics unless the list of doc.go holds. A build with ring.Checks calls it after every
// command. It looks after 1, 2, 4, 8 and so on commands, because a look costs what the tables hold.
func (v *Views) mustBeSound() {
	if v.current&(v.current-1) != 0 {
		return
	}
	if err := v.check(); err != nil {
		panic(fmt.Sprintf("blotter: after inputSeq=%d: %v", v.current, err))
	}
}

// check returns the first point of the list of doc.go that does not hold. Observer's goroutine
// only, between two commands. It costs what the tables hold, and allocates.
func (v *Views) check() error {
	if v.current != v.Applied() || v.finished != 0 {
		return fmt.Errorf("command %d is not complete, applied %d", v.current, v.Applied())
	}
	retained, err := v.orders.check()
	if err != nil {
		return err
	}
	sums := make(map[uint32]level)
	open := 0
	for at := uint32(1); at <= v.orders.top; at++ {
		row := &v.orders.slots[at].row
		switch {
		case row.Ref == 0:
			continue
		case row.Open() == retained[at]:
			return fmt.Errorf("order %d is %v, retained %v", row.Ref, row.Status, retained[at])
		case !row.Open():
			if row.level != 0 {
				return fmt.Errorf("order %d is %v and on level %d", row.Ref, row.Status, row.level)
			}
			continue
		}
		open++
		lv := v.levels.all[row.level]
		if row.level == 0 || lv.px != row.LimitPx || lv.side != row.SecurityID<<1|uint32(row.Side) {
			return fmt.Errorf("order %d of side %d at %d is on level %d: %+v", row.Ref, row.Side,
				row.LimitPx, row.level, lv)
		}
		sum := sums[row.level]
		sum.px, sum.side, sum.qty, sum.orders = lv.px, lv.side, sum.qty+int64(row.Leaves), sum.orders+1
		sums[row.level] = sum
	}
	if open != v.orders.open {
		return fmt.Errorf("%d orders are open, counted %d", open, v.orders.open)
	}
	if err := v.levels.check(sums); err != nil {
		return err
	}
	if err := v.keys.check(); err != nil {
		return err
	}
	return v.contracts.check(v.current)
}

// check asserts that rows and index agree, and returns the slots in the retained queue.
func (o *orders) check() (retained map[uint32]bool, err error) {
	used := 0
	for at := uint32(1); at <= o.top; at++ {
		if ref := o.slots[at].row.Ref; ref != 0 {
			used++
			if got := o.find(ref); got != at {
				return nil, fmt.Errorf("order %d lies in slot %d and is found in %d", ref, at, got)
			}
		}
	}
	for chain, head := range o.heads {
		if head != 0 && uint32(head>>32) != o.slots[uint32(head)].row.Ref {
			return nil, fmt.Errorf("chain %d starts with order %d in slot %d of order %d",
				chain, head>>32, uint32(head), o.slots[uint32(head)].row.Ref)
		}
		for at := uint32(head); at != 0; at = o.slots[at].row.next {
			used--
		}
	}
	if used != 0 {
		return nil, fmt.Errorf("%d more orders in slots than on chains", used)
	}
	retained = make(map[uint32]bool)
	for i := range o.kept {
		retained[o.retainedAt(i)] = true
	}
	if len(retained) != o.kept {
		return nil, fmt.Errorf("%d different orders retained, counted %d", len(retained), o.kept)
	}
	return retained, nil
}

// check asserts that the trees hold exactly the levels of sums, in order.
func (l *levels) check(sums map[uint32]level) error {
	seen := 0
	for side := range l.trees {
		t, count, last := &l.trees[side], int64(0), uint64(0)
		var fault error
		l.branches.each(t, func(at uint32) bool {
			lv := l.all[at]
			key := rank(uint32(side), lv.px)
			switch {
			case count > 0 && key <= last:
				fault = fmt.Errorf("side %d: level of rank %d after %d", side, key, last)
			case lv != sums[at]:
				fault = fmt.Errorf("side %d: level %d is %+v, its orders add up to %+v", side, at, lv, sums[at])
			}
			count, last = count+1, key
			seen++
			return fault == nil
		})
		if fault == nil && count != t.count {
			fault = fmt.Errorf("side %d has %d levels, counted %d", side, count, t.count)
		}
		if fault != nil {
			return fault
		}
	}
	if seen != len(sums) {
		return fmt.Errorf("%d levels in trees, %d in use", seen, len(sums))
	}
	return nil
}

// check asserts that every remembered key is found, and leads to its own first decision.
func (k *keys) check() error {
	for i := range k.count {
		row, got := k.oldest(i), KeyRow{}
		if !k.read(family(row.Kind), row.Key, row.AccountID, &got) || got.InputSeq != row.InputSeq {
			return fmt.Errorf("key %016x of inputSeq %d leads to inputSeq %d", row.Key, row.InputSeq,
				got.InputSeq)
		}
	}
	return nil
}

// Check compares the views with the engine that produced the observed events, in all data that both
// hold, and names the first difference. Both must stand between the same two commands. It reads all
// of both, so it does not belong on the path of an order. The caller owns both the engine and the
// views: the goroutine that replays a journal.
func (v *Views) Check(e *matcher.Engine) error {
	if v.Applied() != e.AppliedSeq() || v.tradeSeq != e.TradeSeq() {
		return fmt.Errorf("blotter: views at inputSeq=%d tradeSeq=%d, engine at %d and %d",
			v.Applied(), v.tradeSeq, e.AppliedSeq(), e.TradeSeq())
	}
	if got, want := v.Capacities(), e.Capacities(); got != want {
		return fmt.Errorf("blotter: views have capacities %+v, the engine %+v", got, want)
	}
	for _, compare := range []func(*matcher.Engine) error{
		v.checkOrders, v.checkDepth, v.checkPositions, v.checkControls, v.checkKeys, v.checkContracts,
	} {
		if err := compare(e); err != nil {
			return fmt.Errorf("blotter: views and engine differ at inputSeq=%d: %w", v.Applied(), err)
		}
	}
	return nil
}

// info is the part of a row that the engine knows too. Type, time in force and client id are the
// views' alone.
func (r *OrderRow) info() matcher.OrderInfo {
	return matcher.OrderInfo{
		Ref: r.Ref, Era: r.Era, AccountID: r.AccountID, SecurityID: r.SecurityID, Side: r.Side,
		Status: r.Status, Reason: r.Reason, Qty: r.Qty, Leaves: r.Leaves, LimitPx: r.LimitPx,
		LastPx: r.LastPx, LastQty: r.LastQty, CreatedMillis: r.CreatedMillis,
		UpdatedMillis: r.UpdatedMillis,
	}
}

// checkOrders compares every order, and the order in which the terminal ones will be forgotten.
func (v *Views) checkOrders(e *matcher.Engine) (err error) {
	open, kept := 0, 0
	e.EachOrder(func(want matcher.OrderInfo) bool {
		got, ok := v.Order(want.Ref)
		switch {
		case !ok:
			err = fmt.Errorf("no row of order %+v", want)
		case got.info() != want:
			err = fmt.Errorf("order %+v, engine %+v", got.info(), want)
		case want.Open():
			open++
		case v.orders.slots[v.orders.retainedAt(kept)].row.Ref != want.Ref:
			err = fmt.Errorf("order %d is number %d to be evicted in the engine", want.Ref, kept)
		default:
			kept++
		}
		return err == nil
	})
	if err == nil && (open != v.orders.open || kept != v.orders.kept) {
		err = fmt.Errorf("%d open and %d retained orders, engine %d and %d", v.orders.open, v.orders.kept,
			open, kept)
	}
	return err
}

// checkDepth compares every level of every book, best first. The engine counts its queues for this.
func (v *Views) checkDepth(e *matcher.Engine) (err error) {
	for id := uint32(1); v.registered(id); id++ {
		for side := matcher.Buy; side <= matcher.Sell; side++ {
			t := &v.levels.trees[id<<1|uint32(side)]
			all := v.levels.copySide(id<<1|uint32(side), make([]Level, 0, t.count+1))
			e.EachLevel(id, side, func(px, qty int64, orders int) bool {
				want := Level{Px: px, Qty: qty, Orders: uint32(orders)}
				if len(all) == 0 || all[0] != want {
					err = fmt.Errorf("security %d side %d: levels %v, engine %+v", id, side,
						all[:min(1, len(all))], want)
					return false
				}
				all = all[1:]
				return true
			})
			if err == nil && len(all) > 0 {
				err = fmt.Errorf("security %d side %d: levels %v that the engine has not", id, side, all[:1])
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// checkPositions compares every position that ever had a fill. The order differs: the engine has
// that of the first fills.
func (v *Views) checkPositions(e *matcher.Engine) (err error) {
	count := 0
	e.EachPosition(func(want matcher.PositionInfo) bool {
		count++
		if got, ok := v.Position(want.AccountID, want.SecurityID); !ok || got != Position(want) {
			err = fmt.Errorf("position %+v, engine %+v", got, want)
		}
		return err == nil
	})
	if all := v.AllPositions(nil); err == nil && len(all) != count {
		err = fmt.Errorf("%d positions, engine %d", len(all), count)
	}
	return err
}

// checkControls compares accounts, securities with their prices, and the policy. Control versions
// and marks of sources are the views' alone.
func (v *Views) checkControls(e *matcher.Engine) (err error) {
	accounts, securities := 0, 0
	e.EachAccount(func(want matcher.AccountInfo) bool {
		accounts++
		if got, ok := v.Account(want.ID); !ok || got.Enabled != want.Enabled {
			err = fmt.Errorf("account %+v, engine %+v", got, want)
		}
		return err == nil
	})
	e.EachSecurity(func(want matcher.SecurityInfo) bool {
		securities++
		got, _ := v.Security(want.ID)
		same := matcher.SecurityInfo{
			ID: got.ID, Ticker: got.Ticker, Controlled: got.Known, Enabled: got.Enabled, Halted: got.Halted,
			Restricted: got.Restricted, LastPx: got.MarketPx, LastPxTimeMillis: got.MarketMillis,
			LastTradePx: got.LastTradePx,
		}
		if err == nil && same != want {
			err = fmt.Errorf("security %+v, engine %+v", same, want)
		}
		return err == nil
	})
	switch {
	case err != nil:
	case accounts != len(v.Accounts()) || securities != len(v.Securities()):
		err = fmt.Errorf("%d accounts and %d securities, engine %d and %d",
			len(v.Accounts()), len(v.Securities()), accounts, securities)
	case v.Policy() != Policy(e.Policy()):
		err = fmt.Errorf("policy %+v, engine %+v", v.Policy(), e.Policy())
	}
	return err
}

// checkKeys compares the remembered keys in the order in which they will be forgotten.
func (v *Views) checkKeys(e *matcher.Engine) (err error) {
	n := 0
	e.EachKey(func(want matcher.KeyInfo) bool {
		if n == v.keys.count {
			err = fmt.Errorf("%d keys, the engine has more", n)
			return false
		}
		row := v.keys.oldest(n)
		n++
		got := matcher.KeyInfo{
			Key: row.Key, Kind: row.Kind, Ref: row.Ref, Decision: row.Reason,
			ByAccount: row.ByAccount, AccountID: row.AccountID,
		}
		if got != want {
			err = fmt.Errorf("key number %d %+v, engine %+v", n, got, want)
		}
		return err == nil
	})
	if err == nil && n != v.keys.count {
		err = fmt.Errorf("%d keys, engine %d", v.keys.count, n)
	}
	return err
}
