package feed

import (
	"bytes"
	"context"
	"runtime"
	"testing"
	"time"
	"weak"
)

// TestABookIsFormattedOnceForAllThatAskForIt: requests for overlapping sets share the texts, and
// one whose caller has gone costs nothing.
func TestABookIsFormattedOnceForAllThatAskForIt(t *testing.T) {
	r := newRig(t)
	r.write(500)
	formatted := map[uint32]int{}
	h := New(Options{Render: func(b []byte, e *Event) []byte {
		formatted[e.SecurityID]++
		return render(b, e)
	}})
	defer h.Close()
	gone, leave := context.WithCancel(t.Context())
	leave()
	for _, q := range []*bookRequest{
		{ctx: t.Context(), books: &Securities{IDs: []uint32{1, 2}}},
		{ctx: gone, books: &Securities{All: true}},
		{ctx: t.Context(), books: &Securities{IDs: []uint32{2, testSecurities + 1}}},
		{ctx: t.Context(), books: &Securities{IDs: []uint32{1, 2}}},
	} {
		q.done = make(chan struct{})
		h.asked = append(h.asked, q)
	}
	asked := h.asked
	f := &follower{h: h, d: r.d, at: After(r.engine.AppliedSeq())}
	f.answer()
	for i, want := range []int{2, 0, 1, 2} {
		q := asked[i]
		<-q.done
		if q.ok != (want > 0) || len(q.texts) != want || want > 0 && q.at != f.at {
			t.Errorf("request %d: %v, %d books as of %v", i, q.ok, len(q.texts), q.at)
		}
	}
	if len(formatted) != 2 || formatted[1] != 1 || formatted[2] != 1 {
		t.Errorf("formatted, by security: %v", formatted)
	}
	if &asked[0].texts[1][0] != &asked[2].texts[0][0] {
		t.Error("two requests have texts of their own")
	}
	var want []byte
	r.d.snapshot(asked[0].books, func(e *Event) { want = appendFrame(want, e, render) })
	if got := bytes.Join(asked[0].texts, nil); !bytes.Equal(got, want) {
		t.Errorf("the books are\n%s\nwant\n%s", got, want)
	}
}

// TestLongBooksComeInPieces: the client has time for each of them, and gets whole events.
func TestLongBooksComeInPieces(t *testing.T) {
	h := New(Options{})
	defer h.Close()
	text := bytes.Repeat([]byte{'x'}, pieceBytes/2+1)
	r := &Reader{h: h}
	for range 5 {
		r.first = append(r.first, text)
	}
	over := make(chan time.Time)
	close(over)
	for i, want := range []int{2, 2, 1, 0} {
		piece, err := r.Next(t.Context(), over)
		if err != nil || len(piece) != want {
			t.Errorf("piece %d has %d books, want %d: %v", i, len(piece), want, err)
		}
	}
	if got := collected(h)["svc_feed_bytes_total"]; got != float64(5*len(text)) || len(r.first) > 0 {
		t.Errorf("%v bytes are counted, %d books are left", got, len(r.first))
	}
}

// TestAReaderKeepsNothingOfPassedPieces while it waits for the next one: neither books that were
// made for it, nor a text of batches that are not held any more.
func TestAReaderKeepsNothingOfPassedPieces(t *testing.T) {
	h := New(Options{})
	defer h.Close()
	h.ready = true
	r := &Reader{h: h, s: Selection{Topics: Prices}}
	over := make(chan time.Time)
	close(over)
	var passed []weak.Pointer[byte]
	read := func(what string, want int) {
		t.Helper()
		piece, err := r.Next(t.Context(), over)
		if err != nil || len(piece) != want {
			t.Fatalf("%s: %d parts, want %d: %v", what, len(piece), want, err)
		}
		for _, part := range piece {
			passed = append(passed, weak.Make(&part[0]))
		}
	}
	for range 3 {
		r.first = append(r.first, bytes.Repeat([]byte{'x'}, pieceBytes))
	}
	for range 3 {
		read("books", 1)
	}
	for seq := range uint64(4) {
		b := &batch{first: seq + 1, last: seq + 1, end: 1}
		b.add(&Event{Kind: Price, Position: Position{seq + 1, 1}}, func(b []byte, _ *Event) []byte {
			return append(b, bytes.Repeat([]byte{'x'}, 1000)...)
		})
		h.hold(b)
	}
	read("batches", 4)
	h.batches = nil
	read("waiting", 0)
	runtime.GC()
	for i, text := range passed {
		if text.Value() != nil {
			t.Errorf("text %d of %d is still there", i, len(passed))
		}
	}
	runtime.KeepAlive(r)
}
