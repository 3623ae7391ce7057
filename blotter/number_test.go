package blotter

import (
	"bytes"
	"encoding/binary"
	"testing"

	"posttrade/matcher"
	"posttrade/ring/must"
)

// numberedFrom sets the number of a source's next order: it edits the header of a snapshot.
func (s *source) numberedFrom(t *testing.T, g *matcher.Genesis, next uint64) {
	t.Helper()
	var image bytes.Buffer
	must.OK(t, s.engine.WriteSnapshot(&image))
	binary.LittleEndian.PutUint64(image.Bytes()[8:], next)
	binary.LittleEndian.PutUint64(image.Bytes()[16:], next-1)
	engine := must.Get(matcher.ReadSnapshot(g, &image))(t)
	t.Cleanup(func() { engine.Close() })
	s.engine = engine
}

// TestViewsFollowNumbersBeyond32Bits crosses the end of an era with every kind of command. After
// each command views and engine agree, also views that were restored on the way.
func TestViewsFollowNumbersBeyond32Bits(t *testing.T) {
	const first = 1<<32 - 300
	g := smallGenesis()
	s := newSource(t, g, 94)
	s.numberedFrom(t, g, first)
	order := matcher.NewCommand(matcher.OrderNew)
	order.AccountID, order.SecurityID, order.Qty, order.LimitPx = 7, 1, 1, 9_000_000
	v, beyond := newTestViews(t, g), 0
	see := func(events []matcher.Event) {
		for i := range events {
			v.Observe(&events[i], clientID(events[i].InputSeq))
		}
		if err := v.check(); err != nil {
			t.Fatalf("inputSeq %d: %v", v.Applied(), err)
		}
		must.OK(t, v.Check(s.engine))
	}
	see(s.apply(order))
	for step := range 3000 {
		see(s.step())
		if step%100 != 0 {
			continue
		}
		image := imageOf(t, v)
		restored := must.Get(ReadImage(g, bytes.NewReader(image)))(t)
		t.Cleanup(func() { restored.Close() })
		if !bytes.Equal(imageOf(t, restored), image) {
			t.Fatalf("inputSeq %d: the image of the image is another", v.Applied())
		}
		v = restored
		rows, next := v.Orders(OrderFilter{}, 0, 1<<20, nil)
		var last uint64
		for i := range rows {
			number := rows[i].Number()
			if number <= last {
				t.Fatalf("order %d is listed behind %d", number, last)
			}
			last = number
			if number > 1<<32 {
				beyond++
			}
			if row, ok := v.Numbered(number); !ok || row != rows[i] {
				t.Fatalf("order %d: %v %+v, want %+v", number, ok, row, rows[i])
			}
			for _, other := range []uint64{number ^ 1<<32, number ^ 1<<40, number + 1<<48} {
				if row, ok := v.Numbered(other); ok {
					t.Fatalf("order %d is shown as %d: %+v", number, other, row)
				}
			}
			if page, _ := v.Orders(OrderFilter{}, number-1, 1, nil); len(page) != 1 || page[0] != rows[i] {
				t.Fatalf("behind %d comes %+v, want %+v", number-1, page, rows[i])
			}
		}
		if next != 0 {
			t.Fatalf("a page behind %d", next)
		}
	}
	if beyond == 0 || s.number < 1<<32+300 {
		t.Errorf("%d rows beyond 32 bits, the last order is %d: the flow is too tame", beyond, s.number)
	}
}
