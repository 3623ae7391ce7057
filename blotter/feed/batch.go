package feed

import (
	"sync"
	"sync/atomic"
)

// batch is the events of some whole commands, formatted. It does not change once it is published,
// except for the texts of selections, which mu guards. Many readers share its text.
type batch struct {
	first, last uint64 // commands; first is last+1 of the batch before
	end         uint32 // events of the command last
	items       []item
	text        []byte

	mu   sync.Mutex
	cut  map[string][]byte // the text of a selection, by its key
	kept atomic.Int64      // what cut takes, in bytes; mu guards its changes
	old  bool              // cut is not kept any more
}

// cost is about how many bytes of memory the batch takes, without the texts of selections.
func (b *batch) cost() int { return len(b.text) + len(b.items)*itemCost + batchCost }

// dropSelections drops the texts of selections, and keeps none from then on: the live readers have
// passed, or the batch itself is dropped. It returns what they took.
func (b *batch) dropSelections() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.cut, b.old = nil, true
	return int(b.kept.Swap(0))
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
// makes it, and the others wait for that one: it is made once, unless the texts of other selections
// have taken the room for them, which is the batch's own text or batchBytes.
func (b *batch) of(s *Selection) []byte {
	key := s.Key()
	b.mu.Lock()
	defer b.mu.Unlock()
	if text, made := b.cut[key]; made {
		return text
	}
	text, copied := b.selected(s, Position{})
	cost := int64(cutCost + len(key))
	if copied {
		cost += int64(len(text))
	}
	if b.old || b.kept.Load()+cost > int64(max(batchBytes, len(b.text))) {
		return text
	}
	if b.cut == nil {
		b.cut = map[string][]byte{}
	}
	b.cut[key] = text
	b.kept.Add(cost)
	return text
}

// selected returns the text of the events of a selection behind a position. Where these stand side
// by side it is a part of the batch's own, else a copy.
func (b *batch) selected(s *Selection, after Position) (text []byte, copied bool) {
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
		return b.text[from:to:to], false
	}
	return append(text, b.text[from:to]...), true
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
