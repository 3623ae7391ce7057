package session

import (
	"posttrade/matcher"
	"posttrade/matcher/session/wire"
)

// readsTops reports that the session reads best levels.
func (one *session) readsTops() bool { return one.role == wire.Market }

// owe notes that the session is to get the best levels of every security, because it has just
// joined or has lost some: one record for each, and one for their end.
func (one *session) owe(t *tops) { one.looked, one.owed = len(t.books), len(t.books)+1 }

// tellTops applies an event and, at the end of its command, writes the best levels that have
// changed. Within a command, and while the books are not exact, it writes nothing: a level in
// between was never the state after a command.
func (f *feeder) tellTops(ev *matcher.Event) {
	t := f.tops
	t.take(ev)
	if t.within || !t.exact {
		return
	}
	for _, security := range t.touched {
		b := &t.books[security]
		best := b.best()
		if best == b.told {
			continue
		}
		b.told = best
		r := t.record(security, 0)
		for _, one := range f.sessions {
			if one.readsTops() {
				f.server.counts.tops.Add(1)
				one.feed(&r)
			}
		}
	}
}

// settleTops checks whether best levels can be shown now, and to which sessions they are owed: to
// all that read them, once the books have become exact.
func (f *feeder) settleTops(durable uint64) {
	if f.tops == nil {
		return
	}
	published, taken := f.server.tap.events.Published(), f.reader.Position()-int64(f.n-f.at)
	if !f.tops.settle(durable, published, taken) {
		return
	}
	for _, one := range f.sessions {
		if one.readsTops() {
			one.owe(f.tops)
		}
	}
}

// payTops writes the best levels owed to the session, as far as there is room. It visits the
// securities in a cycle, so that a reader with a small ring, which loses some, still gets all of
// them. A security that has come since the last look makes the cycle longer.
func (one *session) payTops(t *tops) {
	if !t.exact || t.within {
		return
	}
	one.owed += len(t.books) - one.looked
	one.looked = len(t.books)
	for one.owed > 1 && one.out.Room() > 1 {
		if one.cursor >= len(t.books) {
			one.cursor = 0
		}
		if security := one.cursor; t.books[security].used {
			r := t.record(uint32(security), wire.FlagSnapshot)
			one.server.counts.tops.Add(1)
			one.out.Put(&r)
		}
		one.cursor++
		one.owed--
	}
	if one.owed == 1 && one.out.Room() > 1 {
		one.owed = 0
		one.out.Put(&wire.Record{Kind: wire.Top, Flags: wire.FlagSnapshot, InputSeq: t.sequence,
			TimeMillis: t.millis})
	}
}
