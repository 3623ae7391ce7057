package feed

import (
	"io"

	"posttrade/blotter"
	"posttrade/matcher"
)

// deriver derives the feed's events from the engine's. It stands in the place of a shadow's views
// and keeps views of its own, in which it looks at orders and levels before and after each event.
// It belongs to the goroutine that follows the shadow, and the views have no other reader.
//
// The numbers of a command's events: fills and orders in the order in which the engine states them,
// then the levels in the order in which the command touched them, then the best levels. They count
// from 1, and also the events that no reader wants: a position means the same for every selection.
type deriver struct {
	views *blotter.Views
	emit  func(e *Event)                  // nil: events are not wanted yet
	wants func(e *Event) bool             // nil: all; those not wanted are numbered, not passed on
	ended func(inputSeq uint64, n uint32) // a command has ended, with n events; nil with emit

	tickers []string // by id - 1
	n       uint32   // events of the command so far
	levels  []touchedLevel
	books   []touchedBook
	event   Event
	row     blotter.OrderRow
	booked  blotter.ContractRow
}

// touchedLevel is a level as it was before the command, and touchedBook the best levels.
type touchedLevel struct {
	security uint32
	side     matcher.Side
	before   blotter.Level
}

type touchedBook struct {
	security uint32
	bid, ask blotter.Level
}

// Observe implements journal.Observer. Until emit is set it only brings the views forward: events
// before the first position that a reader can ask for are not derived.
func (d *deriver) Observe(ev *matcher.Event, clientID []byte) {
	if d.emit == nil {
		d.views.Observe(ev, clientID)
		return
	}
	if ev.Flags&matcher.EventFirst != 0 {
		d.n, d.levels, d.books = 0, d.levels[:0], d.books[:0]
	}
	// Levels are noted before the views change, and orders told after: an event states both moments.
	d.touch(ev)
	d.views.Observe(ev, clientID)
	d.tell(ev)
	if ev.Flags&matcher.EventLast != 0 {
		d.tellBooks(ev)
		d.ended(ev.InputSeq, d.n)
	}
}

// Write and Close implement journal.Views.
func (d *deriver) Write(w io.Writer) error {
	_, err := d.views.WriteTo(w)
	return err
}

// Close frees the views.
func (d *deriver) Close() error { return d.views.Close() }

// touch notes the levels that an event is about to change, as they are before it: the level on
// which the order rests, and that to which a replace moves it.
func (d *deriver) touch(ev *matcher.Event) {
	rests := ev.Flags&(matcher.EventRests|matcher.EventKeptPlace) != 0
	switch ev.Kind {
	case matcher.EventAccepted:
		if rests {
			d.touchLevel(ev.SecurityID, ev.Side, ev.Px)
		}
		return
	case matcher.EventFilled, matcher.EventCanceled, matcher.EventReplaced, matcher.EventRested:
	default:
		return
	}
	row, ok := d.views.Order(ev.OrderRef)
	if ev.OrderRef == 0 || !ok {
		return
	}
	if row.Resting() || ev.Kind == matcher.EventRested {
		d.touchLevel(row.SecurityID, row.Side, row.LimitPx)
	}
	if ev.Kind == matcher.EventReplaced && rests {
		d.touchLevel(row.SecurityID, row.Side, ev.Px)
	}
}

// touchLevel notes a level once for each command, and the best levels of its book before the first
// change. A command touches few levels, so the search is a walk.
func (d *deriver) touchLevel(security uint32, side matcher.Side, px int64) {
	for i := range d.levels {
		if l := &d.levels[i]; l.before.Px == px && l.security == security && l.side == side {
			return
		}
	}
	d.levels = append(d.levels, touchedLevel{security, side, d.views.LevelAt(security, side, px)})
	for i := range d.books {
		if d.books[i].security == security {
			return
		}
	}
	bid, ask := d.views.Best(security)
	d.books = append(d.books, touchedBook{security, bid, ask})
}

// tell derives what one engine event states by itself.
func (d *deriver) tell(ev *matcher.Event) {
	switch ev.Kind {
	case matcher.EventFilled:
		if ev.Flags&(matcher.EventAggressor|matcher.EventMarket|matcher.EventForced) != 0 {
			d.pass(ev, Trade, ev.SecurityID, 0)
		}
		d.pass(ev, Fill, ev.SecurityID, ev.AccountID)
		d.order(ev)
	case matcher.EventAccepted, matcher.EventCanceled, matcher.EventReplaced:
		d.order(ev)
	case matcher.EventRejected:
		if cmd := ev.Cmd(); ev.Reason != matcher.Duplicate &&
			cmd.TemplateID == matcher.TemplateCommand && cmd.Type == matcher.OrderNew {
			d.order(ev)
		}
	case matcher.EventContract:
		d.contract(ev)
	case matcher.EventApplied:
		d.applied(ev)
	}
}

// order passes on the state of the order that an event is about, if there is one. An order that the
// views do not have is a bug: the panic ends this follower, not the process (caught).
func (d *deriver) order(ev *matcher.Event) {
	if ev.OrderRef == 0 {
		return
	}
	if d.begin(ev, Order, ev.SecurityID, ev.AccountID) {
		row, ok := d.views.Order(ev.OrderRef)
		if !ok {
			panic("feed: an order that an event is about is not in the views")
		}
		d.row, d.event.Order = row, &d.row
		d.emit(&d.event)
	}
}

// contract passes on a contract that was booked.
func (d *deriver) contract(ev *matcher.Event) {
	if d.begin(ev, Contract, 0, ev.AccountID) {
		row, ok := d.views.Contract(ev.InputSeq)
		if !ok {
			panic("feed: a contract that an event is about is not in the views")
		}
		d.booked, d.event.Contract = row, &d.booked
		d.emit(&d.event)
	}
}

// applied passes on a tick that has moved the market price, or a control. Late ticks, markers,
// notes and revocations have no event; a force fill has those of its fill.
func (d *deriver) applied(ev *matcher.Event) {
	cmd := ev.Cmd()
	switch {
	case cmd.TemplateID == matcher.TemplateSymbolRegister:
		d.pass(ev, Control, ev.SecurityID, 0)
		return
	case cmd.TemplateID != matcher.TemplateCommand:
		return
	}
	switch cmd.Type {
	case matcher.PriceTick:
		if ev.Flags&matcher.EventLate == 0 {
			d.pass(ev, Price, cmd.SecurityID, 0)
		}
	case matcher.SecurityControl, matcher.RestrictionControl:
		d.pass(ev, Control, cmd.SecurityID, 0)
	case matcher.ForceFill, matcher.SnapshotMark, matcher.OperatorNote, matcher.TokenRevoke:
	case matcher.LimitsControl: // its last part applies the change
		if part, parts := cmd.Qty&0xff, cmd.Qty>>8; part == parts {
			d.pass(ev, Control, 0, 0)
		}
	default:
		d.pass(ev, Control, 0, 0)
	}
}

// tellBooks passes on the levels and the best levels that the command has changed. A level that is
// as before at the end of the command has no event.
func (d *deriver) tellBooks(ev *matcher.Event) {
	for i := range d.levels {
		t := &d.levels[i]
		now := d.views.LevelAt(t.security, t.side, t.before.Px)
		if now != t.before && d.begin(ev, Book, t.security, 0) {
			d.event.Side, d.event.Level = t.side, now
			d.emit(&d.event)
		}
	}
	for i := range d.books {
		t := &d.books[i]
		bid, ask := d.views.Best(t.security)
		if (bid != t.bid || ask != t.ask) && d.begin(ev, BBO, t.security, 0) {
			d.event.Bid, d.event.Ask = bid, ask
			d.emit(&d.event)
		}
	}
}

// pass passes on an event that needs no more than the engine's.
func (d *deriver) pass(ev *matcher.Event, kind Kind, security, account uint32) {
	if d.begin(ev, kind, security, account) {
		d.emit(&d.event)
	}
}

// begin gives the next event its number. It reports whether the event is wanted; only then does the
// caller fill in the rest and emit it. The event is one place that is used again.
func (d *deriver) begin(ev *matcher.Event, kind Kind, security, account uint32) bool {
	d.n++
	d.event = Event{Position: Position{InputSeq: ev.InputSeq, N: d.n}, Kind: kind,
		SecurityID: security, AccountID: account, Engine: ev, Views: d.views}
	if d.wants != nil && !d.wants(&d.event) {
		return false
	}
	if security != 0 {
		d.event.Ticker = d.ticker(security)
	}
	return true
}

// ticker is the ticker of a security, which never changes. An order that was refused because there
// is no such security has none: its number may be any.
func (d *deriver) ticker(id uint32) string {
	if id > d.views.SecurityCount() {
		return ""
	}
	for n := uint32(len(d.tickers)); n < id; n++ {
		security, _ := d.views.Security(n + 1)
		d.tickers = append(d.tickers, security.Ticker)
	}
	return d.tickers[id-1]
}

// snapshot passes on the books of a set as they are between two commands.
func (d *deriver) snapshot(books *Securities, emit func(e *Event)) {
	for id := range books.among(d.views.SecurityCount()) {
		emit(d.book(id))
	}
}

// book is the snapshot of a book between two commands, with all levels. Its position is that behind
// the whole command.
func (d *deriver) book(id uint32) *Event {
	depth := d.views.WholeDepth(id)
	return &Event{Position: After(d.views.Applied()), Kind: Snapshot, SecurityID: id,
		Ticker: d.ticker(id), Depth: &depth, Views: d.views}
}
