package feed

import (
	"context"
	"errors"
	"strings"
	"testing"

	"posttrade/ring/must"
)

// TestSlowReaderIsEnded lets a live reader fall behind while another one reads.
func TestSlowReaderIsEnded(t *testing.T) {
	r := newRig(t)
	h := r.hub(Options{})
	r.write(10)
	slow, fast := r.open(h, everything, Start{}), r.open(h, everything, Start{})
	defer slow.Close()
	defer fast.Close()
	r.until(slow, 10)
	written := 0
	for before := fast.At(); written <= MaxPending+(64<<10); before = fast.At() {
		r.write(500)
		got := r.until(fast, r.engine.AppliedSeq())
		if want := r.want(&everything, before, r.engine.AppliedSeq()); !strings.HasSuffix(got, want) {
			t.Fatal(difference(got, want))
		}
		written += len(got)
	}
	if _, err := slow.Next(t.Context(), nil); !errors.Is(err, ErrSlow) {
		t.Errorf("the slow reader got %v, want ErrSlow", err)
	}
	if got := collected(h); got["svc_feed_slow_total"] != 1 || got["svc_feed_clients live"] != 2 ||
		got["svc_feed_events_total"] == 0 || got["svc_feed_bytes_total"] < float64(written) {
		t.Errorf("two clients, one of them too slow, the other got %d bytes: %v", written, got)
	}
	again := r.open(h, everything, Start{At: slow.At(), Given: true})
	defer again.Close()
	to := r.engine.AppliedSeq()
	if got, want := r.until(again, to), r.want(&everything, slow.At(), to); got != want {
		t.Error("resumed behind the end: " + difference(got, want))
	}
}

// collected are the metrics of a hub, by name and label.
func collected(h *Hub) map[string]float64 {
	values := map[string]float64{}
	h.Collect(func(name, _ string, _ bool, value float64, labels ...string) {
		values[strings.Join(append([]string{name}, labels[len(labels)/2:]...), " ")] = value
	})
	return values
}

// TestSelectionsAreBoundedInMemory reads every batch with many selections that differ: what is held
// stays within Retain and the newest batch, and every text is right. Readers of the first selection
// share its text.
func TestSelectionsAreBoundedInMemory(t *testing.T) {
	const retain = 2 << 20
	h := New(Options{Retain: retain})
	defer h.Close()
	line := strings.Repeat("x", 100)
	all := make([]Selection, 64)
	for i := range all { // every second event, and nothing of an account that is not there
		all[i] = Selection{Topics: Orders, Accounts: []uint32{1, 3, uint32(1000 + i)}}
	}
	for n := range uint64(30) {
		b := &batch{first: n + 1, last: n + 1}
		want := 0
		for len(b.text) < batchBytes {
			account := uint32(1 + len(b.items)%4)
			from := len(b.text)
			b.add(&Event{Kind: Order, AccountID: account, Position: Position{n + 1, uint32(len(b.items))}},
				func(b []byte, _ *Event) []byte { return append(b, line...) })
			if account%2 == 1 {
				want += len(b.text) - from
			}
		}
		h.hold(b)
		for i := range all {
			if got := len(b.of(&all[i])); got != want {
				t.Fatalf("batch %d: a selection has %d bytes, want %d", n, got, want)
			}
		}
		if one, same := b.of(&all[0]), b.of(&all[0]); &one[0] != &same[0] {
			t.Fatalf("batch %d: the text of one selection is there twice", n)
		}
		held := 0
		for _, b := range h.batches {
			held += len(b.text)
			for _, text := range b.cut {
				held += len(text)
			}
		}
		if held > retain+batchBytes {
			t.Fatalf("batch %d: %d bytes are held", n, held)
		}
	}
	if n := len(h.batches); n < 6 || n > 16 {
		t.Errorf("%d batches are held", n)
	}
}

// TestAPositionAheadHoldsNoPlace while it is waited for: the only place is taken, and what is
// refused is the position.
func TestAPositionAheadHoldsNoPlace(t *testing.T) {
	r := newRig(t)
	h := r.hub(Options{MaxReaders: 1})
	r.write(10)
	defer r.open(h, everything, Start{}).Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	ahead := Start{At: After(1 << 40), Given: true}
	if _, err := h.Open(ctx, everything, ahead); !errors.Is(err, ErrBeyond) {
		t.Errorf("a position ahead: %v, want ErrBeyond", err)
	}
}

// TestGuestsLeaveHalfOfThePlaces to the others, of the live stream and of older history. They get
// back what they gave up; the others may have all.
func TestGuestsLeaveHalfOfThePlaces(t *testing.T) {
	r := newRig(t)
	h := r.hub(Options{MaxReaders: 2*maxHistoryReaders + 1, Retain: 1, Behind: 10})
	r.write(300)
	older := Start{At: After(5), Given: true}
	fill := func(start Start) (open []*Reader) {
		for {
			reader, err := h.Open(t.Context(), everything, start)
			if errors.Is(err, ErrBusy) {
				return open
			}
			must.OK(t, err)
			open = append(open, reader)
		}
	}
	want := func(what string, open []*Reader, n int) {
		t.Helper()
		if len(open) != n {
			t.Errorf("%s: %d, want %d", what, len(open), n)
		}
		for _, reader := range open {
			reader.Close()
		}
	}
	guest, olderGuest := Start{Guest: true}, older
	olderGuest.Guest = true
	for range 2 {
		past := fill(olderGuest)
		live := fill(guest)
		want("others of older history, beside guests", fill(older), maxHistoryReaders-len(past))
		want("others, beside guests", fill(Start{}), maxHistoryReaders)
		want("guests of the live stream", live, maxHistoryReaders+1-len(past))
		want("guests of older history", past, maxHistoryReaders/2)
	}
	past := fill(older)
	want("others with all of older history taken", fill(Start{}), maxHistoryReaders+1)
	want("others of older history", past, maxHistoryReaders)
}

// TestReadersAreBounded: as many as may be, and 8 of older history.
func TestReadersAreBounded(t *testing.T) {
	r := newRig(t)
	h := r.hub(Options{MaxReaders: maxHistoryReaders + 2, Retain: 1, Behind: 10})
	r.write(300)
	var open []*Reader
	for range maxHistoryReaders {
		open = append(open, r.open(h, everything, Start{At: After(5), Given: true}))
	}
	if _, err := h.Open(t.Context(), everything, Start{At: After(5), Given: true}); !errors.Is(err,
		ErrBusy) {
		t.Errorf("one more of older history: %v, want ErrBusy", err)
	}
	open = append(open, r.open(h, everything, Start{}), r.open(h, everything, Start{}))
	if _, err := h.Open(t.Context(), everything, Start{}); !errors.Is(err, ErrBusy) {
		t.Errorf("one more: %v, want ErrBusy", err)
	}
	if got := collected(h); got["svc_feed_refused_total"] != 2 || got["svc_feed_slow_total"] != 0 ||
		got["svc_feed_clients live"] != 2 || got["svc_feed_clients history"] != maxHistoryReaders {
		t.Errorf("all places are taken, and two readers were refused: %v", got)
	}
	for _, reader := range open {
		reader.Close()
	}
	if all, history := h.Readers(); all != 0 || history != 0 {
		t.Errorf("%d readers are left, %d of older history", all, history)
	}
	r.open(h, everything, Start{At: After(5), Given: true}).Close()
}
