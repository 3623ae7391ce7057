package gate

import "posttrade/matcher"

// advance records that a command has changed something. It returns false for a command before the
// last one that did; further events of the same command pass. The caller holds prices.
func (w *writers) advance(inputSeq uint64) bool {
	if inputSeq < w.observed {
		return false
	}
	w.observed = inputSeq
	return true
}

// Observe applies what an event of the engine changes: the price of a fill or a tick, a control, a
// new ticker. Events come in sequence. Observe ignores an event of a command before the last one
// that changed anything, so no price and no flag ever goes back. The holder of the recorder's lease
// calls it; it takes a few ns for most events.
//
// It never fails. An event that does not fit the image is counted (Missed).
func (g *Gate) Observe(ev *matcher.Event) {
	switch ev.Kind {
	case matcher.EventFilled:
		// The resting side's fill repeats the price of the aggressor's fill before it.
		if ev.Flags&(matcher.EventAggressor|matcher.EventMarket|matcher.EventForced) != 0 {
			g.observePrice(ev, ev.Px)
		}
	case matcher.EventApplied:
		if ev.Flags&matcher.EventFirst != 0 {
			g.observeApplied(ev, ev.Cmd())
		}
	case matcher.EventLimits:
		g.observeLimits(ev)
	}
}

// observePrice takes over a market price. Prices come often, so it takes only the lock of prices,
// which is held for an instant.
func (g *Gate) observePrice(ev *matcher.Event, px int64) {
	if ev.Flags&matcher.EventLate != 0 {
		return // the market price does not change
	}
	w := g.writers
	w.prices.Lock()
	defer w.prices.Unlock()
	t := g.tables.Load() // under the lock, so no goroutine moves the prices meanwhile
	if ev.SecurityID == 0 || uint64(ev.SecurityID) >= uint64(len(t.securities)) {
		w.missed.Add(1)
		return
	}
	if w.advance(ev.InputSeq) {
		w.priced[ev.SecurityID] = true
		t.securities[ev.SecurityID].setPrice(px, ev.TimeMillis)
	}
}

// observeApplied takes over a command that changed something but a book: a price, a control, a
// ticker, a capacity or a revocation. Any other command returns before a lock is taken.
func (g *Gate) observeApplied(ev *matcher.Event, c *matcher.Command) {
	if c.TemplateID == matcher.TemplateCommand {
		switch c.Type {
		case matcher.PriceTick:
			if ev.Flags&matcher.EventLate != 0 {
				g.writers.late.Add(1)
			}
			g.observePrice(ev, c.PriceTicks)
			return
		case matcher.AccountControl, matcher.SecurityControl, matcher.RestrictionControl,
			matcher.PolicyControl, matcher.CapacityControl, matcher.TokenRevoke:
		default:
			return
		}
	} else if c.TemplateID != matcher.TemplateSymbolRegister {
		return
	}
	w := g.writers
	w.mu.Lock()
	defer w.mu.Unlock()
	w.prices.Lock()
	fresh := w.advance(ev.InputSeq)
	w.prices.Unlock()
	if !fresh {
		return
	}
	if err := g.apply(ev, c); err != nil {
		w.missed.Add(1)
	}
}

// apply carries out a control that the engine has applied, so nothing is judged here. OrderRef is 0
// in a control that an operator gave and the mark of the source's epoch otherwise; that is how the
// image knows what holds a flag. The caller holds writers.mu.
func (g *Gate) apply(ev *matcher.Event, c *matcher.Command) error {
	if c.TemplateID == matcher.TemplateSymbolRegister {
		ticker, err := c.Symbol()
		if err != nil {
			return err
		}
		return g.register(ev.SecurityID, ticker)
	}
	switch c.Type {
	case matcher.AccountControl:
		flags := accountFlags(c.Side&matcher.SecurityEnabled != 0, c.OrderRef == 0)
		return g.setAccount(c.AccountID, flags, c.Side&matcher.KeepEnabled != 0, c.PriceTicks)
	case matcher.SecurityControl:
		byHand := c.OrderRef == 0
		return g.control(c.SecurityID,
			securityFlags(c.Side&matcher.SecurityEnabled != 0, c.Side&matcher.SecurityHalted != 0),
			securityFlags(byHand, byHand),
			securityFlags(c.Side&matcher.KeepEnabled != 0, c.Side&matcher.KeepHalted != 0), c.PriceTicks)
	case matcher.RestrictionControl:
		return g.restrict(c.SecurityID, c.Side == 1, c.PriceTicks)
	case matcher.TokenRevoke:
		g.revoke(c.Revocation())
		return nil
	case matcher.CapacityControl:
		g.grow(int(c.AccountID), int(c.SecurityID))
		return nil
	}
	g.setPolicy(c.PriceTicks, c.Side == 1, int64(c.Qty), c.LimitPx)
	return nil
}

// Late returns how many ticks were older than the market price and changed nothing. Late fills are
// not counted. Any goroutine.
func (g *Gate) Late() uint64 { return g.writers.late.Load() }

// Missed returns how many events of the engine did not fit this image: 0 unless the gate was filled
// with another universe than the engine.
func (g *Gate) Missed() uint64 { return g.writers.missed.Load() }
