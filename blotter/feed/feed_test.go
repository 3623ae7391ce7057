package feed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"posttrade/blotter"
	"posttrade/ring/must"
)

// selections are what the readers of these tests select.
func selections(random *rand.Rand) Selection {
	s := Selection{Topics: Topics(random.IntN(32))}
	for _, set := range []*Securities{&s.Books, &s.BBOs} {
		switch random.IntN(3) {
		case 0:
			set.All = true
		case 1:
			set.add(1 + uint32(random.IntN(testSecurities)))
		}
	}
	if random.IntN(2) == 0 {
		s.Accounts = []uint32{1 + uint32(random.IntN(4))}
	}
	return s
}

// everything selects every event.
var everything = Selection{Topics: Trades | Orders | Prices | Controls | Contracts,
	Books: Securities{All: true}, BBOs: Securities{All: true}}

// TestEveryPositionResumesTheOneStream opens readers at random positions, of old history and of
// what is held in memory, while the journal grows, and compares what each gets with the true
// stream.
func TestEveryPositionResumesTheOneStream(t *testing.T) {
	r := newRig(t)
	h := r.hub(Options{Retain: 96 << 10, Behind: 500})
	r.write(1500)
	r.snapshot(h)
	r.write(1500)
	random := rand.New(rand.NewPCG(3, 4))
	fromMemory, fromHistory := 0, 0
	for range 60 {
		s := selections(random)
		f := &r.truth[random.IntN(len(r.truth))]
		if random.IntN(2) == 0 {
			f = &r.truth[len(r.truth)-1-random.IntN(400)]
		}
		start := Start{At: f.position, Given: true}
		if random.IntN(4) == 0 {
			start.At.N = whole
		}
		reader := r.open(h, s, start)
		if reader.past != nil {
			fromHistory++
		} else {
			fromMemory++
		}
		r.write(random.IntN(60))
		to := r.engine.AppliedSeq()
		got, want := r.until(reader, to), r.want(&s, start.At, to)
		reader.Close()
		if got != want {
			t.Fatalf("selection %+v from %v to %d: %s", s, start.At, to, difference(got, want))
		}
	}
	if fromMemory < 8 || fromHistory < 8 {
		t.Errorf("%d readers began in memory, %d in older history: too few", fromMemory, fromHistory)
	}
	if all, history := h.Readers(); all != 0 || history != 0 {
		t.Errorf("%d readers are left, %d of older history", all, history)
	}
}

// difference says where two streams part.
func difference(got, want string) string {
	a, b := strings.Split(got, "\n\n"), strings.Split(want, "\n\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return "event " + a[i] + "\nwant " + b[i]
		}
	}
	return "lengths differ: " + strings.Join([]string{last(a), last(b)}, "\nwant ")
}

func last(all []string) string { return all[max(0, len(all)-2)] }

// TestLiveReadersMeetTheSameStream follows the head with several readers while the journal grows.
func TestLiveReadersMeetTheSameStream(t *testing.T) {
	r := newRig(t)
	h := r.hub(Options{})
	r.write(100)
	var readers sync.WaitGroup
	const to = 3000
	type result struct {
		s     Selection
		start Position
		text  string
	}
	results := make([]result, 6)
	random := rand.New(rand.NewPCG(5, 6))
	for i := range results {
		got := &results[i]
		got.s = selections(random)
		got.s.Books = Securities{} // no snapshots
		if i == 0 {
			got.s = everything
			got.s.Books = Securities{}
		}
		reader := r.open(h, got.s, Start{})
		got.start = reader.At()
		readers.Go(func() {
			defer reader.Close()
			var text strings.Builder
			for reader.At().InputSeq < to {
				piece, err := reader.Next(t.Context(), nil)
				if err != nil {
					t.Error(err)
					return
				}
				text.Write(bytes.Join(piece, nil))
			}
			got.text = text.String()
		})
	}
	for r.engine.AppliedSeq() < to {
		r.write(50)
	}
	readers.Wait()
	for i := range results {
		got := &results[i]
		_, text, _ := strings.Cut(got.text, "\n\n") // the id of the beginning
		if want := r.want(&got.s, got.start, r.engine.AppliedSeq()); text != want[:min(len(want),
			len(text))] || len(text) < len(r.want(&got.s, got.start, to)) {
			t.Errorf("reader %d from %v: %s", i, got.start, difference(text, want))
		}
	}
}

// TestBooksCanBeRebuilt rebuilds every book from a snapshot and what follows, from many sequences,
// and compares it after every command.
func TestBooksCanBeRebuilt(t *testing.T) {
	r := newRig(t)
	h := r.hub(Options{Retain: 64 << 10, Behind: 300})
	r.write(2000)
	for _, from := range []uint64{0, 1, 2, 77, 500, 1234, 1999, 2000} {
		s := Selection{Books: Securities{All: true}}
		reader := r.open(h, s, Start{At: After(from), Given: true, Snapshot: true})
		text := r.until(reader, 2000)
		reader.Close()
		r.checkBooks(text, from, 2000)
	}
}

// checkBooks rebuilds the books from a stream and compares them with the views' after each command.
func (r *rig) checkBooks(text string, from, to uint64) {
	r.t.Helper()
	books := map[string]map[string]string{} // by ticker: by side and price
	events := strings.Split(strings.TrimSuffix(text, "\n\n"), "\n\n")
	at := 0
	for seq := from; seq <= to; seq++ {
		for ; at < len(events); at++ {
			id, kind, data := fields(r.t, events[at])
			p, snapshot, ok := ParseID(id)
			if !ok || snapshot != (kind == "snapshot") {
				r.t.Fatalf("event %q", events[at])
			}
			if p.InputSeq > seq {
				break
			}
			r.put(books, kind, data)
		}
		for id, want := range r.books[seq] {
			ticker := "S" + string(rune('1'+id))
			if got, want := len(books[ticker]), len(want.bids)+len(want.asks); got != want {
				r.t.Fatalf("from %d at %d: %s has %d levels, want %d", from, seq, ticker, got, want)
			}
			for side, levels := range [][]blotter.Level{want.bids, want.asks} {
				for _, l := range levels {
					if got := books[ticker][levelKey(side, l.Px)]; got != levelText(&l) {
						r.t.Fatalf("from %d at %d: %s side %d price %d: got %q, want %q", from, seq, ticker, side,
							l.Px, got, levelText(&l))
					}
				}
			}
		}
	}
	if at != len(events) {
		r.t.Fatalf("events are left: %q", events[at])
	}
}

// fields splits an event into its lines.
func fields(t *testing.T, event string) (id, kind, data string) {
	t.Helper()
	lines := strings.Split(event, "\n")
	if len(lines) != 3 {
		t.Fatalf("event %q", event)
	}
	return strings.TrimPrefix(lines[0], "id: "), strings.TrimPrefix(lines[1], "event: "),
		strings.TrimPrefix(lines[2], "data: ")
}

func levelKey(side int, px int64) string { return fmt.Sprint(side, " ", px) }

func levelText(l *blotter.Level) string { return fmt.Sprint(l.Qty, " ", l.Orders) }

// put applies an event to rebuilt books.
func (r *rig) put(books map[string]map[string]string, kind, data string) {
	r.t.Helper()
	if kind == "snapshot" {
		ticker, rest, _ := strings.Cut(data, " ")
		books[ticker] = map[string]string{}
		for side, list := range strings.SplitN(rest, "] [", 2) {
			for level := range strings.SplitSeq(strings.Trim(list, "[]"), "} {") {
				var l blotter.Level
				if n, _ := fmt.Sscan(strings.Trim(level, "{}"), &l.Px, &l.Qty, &l.Orders); n == 3 {
					books[ticker][levelKey(side, l.Px)] = levelText(&l)
				}
			}
		}
		return
	}
	var ticker string
	var side int
	var l blotter.Level
	if _, err := fmt.Sscan(data, &ticker, &side, &l.Px, &l.Qty, &l.Orders); err != nil {
		r.t.Fatalf("%q: %v", data, err)
	}
	if key := levelKey(side, l.Px); l.Orders == 0 {
		delete(books[ticker], key)
	} else {
		books[ticker][key] = levelText(&l)
	}
}

// TestSnapshotAloneThenWhatFollows opens without a position: the books first, then the changes.
func TestSnapshotAloneThenWhatFollows(t *testing.T) {
	r := newRig(t)
	h := r.hub(Options{})
	r.write(400)
	s := Selection{Books: Securities{IDs: []uint32{2}}}
	reader := r.open(h, s, Start{})
	defer reader.Close()
	from := reader.At()
	r.write(200)
	text := r.until(reader, 600)
	if !strings.HasPrefix(text, "id: 400.s\nevent: snapshot\ndata: S2 ") ||
		strings.Count(text, "snapshot") != 1 {
		t.Errorf("begins with %.100q", text)
	}
	_, rest, _ := strings.Cut(text, "\n\n")
	if want := r.want(&s, from, 600); rest != want {
		t.Error(difference(rest, want))
	}
}

// TestPositionBeyondTheHeadWaits: it begins when the head comes, or says that it has not come.
func TestPositionBeyondTheHeadWaits(t *testing.T) {
	r := newRig(t)
	h := r.hub(Options{})
	r.write(10)
	must.OK(t, h.Begin(t.Context()))
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := h.Open(ctx, everything, Start{At: After(12), Given: true}); !errors.Is(err,
		ErrBeyond) {
		t.Errorf("got %v, want ErrBeyond", err)
	}
	opened := make(chan *Reader)
	go func() {
		reader, err := h.Open(t.Context(), everything, Start{At: After(12), Given: true})
		if err != nil {
			t.Error(err)
		}
		opened <- reader
	}()
	r.write(5)
	reader := <-opened
	defer reader.Close()
	if got, want := r.until(reader, 15), r.want(&everything, After(12), 15); got != want {
		t.Error(difference(got, want))
	}
}

// TestHubRestsWithoutReaders: the shadow goes some time after the last reader, and comes back. Its
// wait for the next command goes with it, also when no command comes.
func TestHubRestsWithoutReaders(t *testing.T) {
	r := newRig(t)
	h := r.hub(Options{Lingers: time.Nanosecond})
	r.write(100)
	reader := r.open(h, everything, Start{})
	at := reader.At()
	reader.Close()
	runs := func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.started
	}
	for until := time.Now().Add(time.Minute); runs(); runtime.Gosched() {
		if time.Now().After(until) {
			t.Fatal("the shadow stays")
		}
	}
	r.mu.Lock()
	waiting := r.waiting
	r.mu.Unlock()
	if waiting != 0 {
		t.Errorf("%d waits for a command outlive the shadow", waiting)
	}
	r.write(50)
	reader = r.open(h, everything, Start{At: at, Given: true})
	defer reader.Close()
	if got, want := r.until(reader, 150), r.want(&everything, at, 150); got != want {
		t.Error(difference(got, want))
	}
}

func TestCloseEndsReaders(t *testing.T) {
	r := newRig(t)
	h := r.hub(Options{})
	r.write(10)
	reader := r.open(h, Selection{Topics: Controls}, Start{At: After(10), Given: true})
	h.Close()
	if _, err := reader.Next(t.Context(), nil); !errors.Is(err, ErrClosed) {
		t.Errorf("got %v, want ErrClosed", err)
	}
	reader.Close()
	if err := h.Begin(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("begin after close: %v, want ErrClosed", err)
	}
}

// TestAFollowerThatHasRetiredIsStartedAgain: a caller that waits for the head may have begun while
// the follower was still ending.
func TestAFollowerThatHasRetiredIsStartedAgain(t *testing.T) {
	r := newRig(t)
	h := r.hub(Options{})
	r.write(10)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	must.OK(t, h.reached(ctx, Start{}))
	h.Close()
}

// TestAReaderWaitsForTheEndOfAFollowerThatRetires: that one answers no request for books any more.
func TestAReaderWaitsForTheEndOfAFollowerThatRetires(t *testing.T) {
	r := newRig(t)
	h := r.hub(Options{})
	r.write(10)
	reader := r.open(h, everything, Start{})
	if h.retire() {
		t.Error("a follower retires under its reader")
	}
	reader.Close()
	if !h.retire() {
		t.Error("a follower without readers stays")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := h.Open(ctx, everything, Start{}); !errors.Is(err, ErrBeyond) {
		t.Errorf("while the follower ends: %v, want ErrBeyond", err)
	}
}

func TestTopicsAreRead(t *testing.T) {
	security := func(ticker []byte) (uint32, bool) {
		at := slices.Index([]string{"AAA", "BRK.B"}, string(ticker))
		return uint32(at + 1), at >= 0
	}
	s, err := ParseTopics("book:BRK.B,book:AAA,book:AAA,bbo:*,trades,controls", security)
	if err != nil || !slices.Equal(s.Books.IDs, []uint32{1, 2}) || s.Books.All || !s.BBOs.All ||
		s.Topics != Trades|Controls {
		t.Errorf("got %+v, %v", s, err)
	}
	for _, list := range []string{"", "book", "book:", "trades:AAA", "trades,", "Trades", "book:*x",
		" trades", "mark"} {
		var wrong *TopicError
		if s, err := ParseTopics(list, security); !errors.As(err, &wrong) {
			t.Errorf("%q: got %+v, %v", list, s, err)
		}
	}
}

func TestIDsAreRead(t *testing.T) {
	tests := []struct {
		id       string
		want     Position
		snapshot bool
	}{
		{"184467.2", Position{184467, 2}, false}, {"0.s", After(0), true}, {"17.s", After(17), true},
		{"5.0", Position{5, 0}, false},
	}
	for _, tt := range tests {
		p, snapshot, ok := ParseID(tt.id)
		if !ok || p != tt.want || snapshot != tt.snapshot || string(AppendID(nil, p)) != tt.id {
			t.Errorf("%q: got %v, %v, %v", tt.id, p, snapshot, ok)
		}
	}
	for _, id := range []string{"", ".", "1", "1.", ".1", "1.S", "-1.2", "1.-2", "01.2", "1.02",
		"1.2.3",
		"1.2147483648", "9223372036854775808.1", "1. 2", "+1.2"} {
		if p, _, ok := ParseID(id); ok {
			t.Errorf("%q: got %v", id, p)
		}
	}
}
