package feed

import "sync"

// batch is the events of some whole commands, formatted. It does not change once it is published,
// except for the texts of selections, which mu guards. Many readers share its text.
type batch struct {
	first, last uint64 // commands; first is last+1 of the batch before
	end         uint32 // events of the command last
	items       []item
	text        []byte

	mu  sync.Mutex
	cut map[string][]byte // the text of a selection, by its key
	old bool              // cut is not kept any more
}

// cost is about how many bytes of memory the batch takes, without the texts of selections.
func (b *batch) cost() int { return len(b.text) + len(b.items)*itemCost + batchCost }

// dropSelections drops the texts of selections, and keeps none from then on: the live readers have
// passed.
func (b *batch) dropSelections() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.cut, b.old = nil, true
}

// item is one event's place in the text, and what a selection looks at. So a selection cuts the
// text without reading it.
type item struct {
	position          Position
	from, to          uint32
	security, account uint32
	kind              Kind
}

// head is the position behind everything in the batch.
func (b *batch) head() Position { return Position{InputSeq: b.last, N: b.end} }

// add formats an event and notes its place. Only the follower calls it, before the batch is
// published.
func (b *batch) add(e *Event, render func(b []byte, e *Event) []byte) {
	from := len(b.text)
	b.text = appendFrame(b.text, e, render)
	b.items = append(b.items, item{position: e.Position, from: uint32(from),
		to: uint32(len(b.text)), security: e.SecurityID, account: e.AccountID, kind: e.Kind})
}

// of returns the text of a selection, all events of the batch. The first reader of a selection
// makes it, and the others wait for that one: it is made once.
func (b *batch) of(s *Selection) []byte {
	key := s.Key()
	b.mu.Lock()
	defer b.mu.Unlock()
	text, made := b.cut[key]
	if made {
		return text
	}
	text = b.selected(s, Position{})
	if b.cut == nil {
		b.cut = map[string][]byte{}
	}
	if !b.old {
		b.cut[key] = text
	}
	return text
}

// selected returns the text of the events of a selection behind a position. Where these are all, it
// is the batch's own.
func (b *batch) selected(s *Selection, after Position) []byte {
	var text []byte
	from, to := uint32(0), uint32(0) // a run of events that is not copied yet
	for i := range b.items {
		it := &b.items[i]
		if !after.before(it.position) || !s.has(it.kind, it.security, it.account) {
			continue
		}
		if it.from != to {
			text = append(text, b.text[from:to]...)
			from = it.from
		}
		to = it.to
	}
	if len(text) == 0 {
		return b.text[from:to:to]
	}
	return append(text, b.text[from:to]...)
}

// appendFrame appends an event as it goes over the wire: a message of a text/event-stream, with id,
// event and one line of data. render must append no line break.
func appendFrame(b []byte, e *Event, render func(b []byte, e *Event) []byte) []byte {
	b = append(b, "id: "...)
	b = AppendID(b, e.Position)
	b = append(b, "\nevent: "...)
	b = append(b, e.Kind.String()...)
	b = append(b, "\ndata: "...)
	b = render(b, e)
	return append(b, "\n\n"...)
}
