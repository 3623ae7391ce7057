package session

import (
	"maps"
	"math/rand/v2"
	"testing"

	"posttrade/blotter"
	"posttrade/matcher"
	"posttrade/matcher/session/wire"
	"posttrade/ring/must"
)

// recorded is a flow as a recorder sees it, with the best levels after each command.
type recorded struct {
	events []matcher.Event
	bests  []map[uint32]wire.Best
}

func record(t *testing.T, random *rand.Rand, n int) recorded {
	t.Helper()
	e := must.Get(matcher.New(testGenesis()))(t)
	defer e.Close()
	rec := recorded{bests: []map[uint32]wire.Best{{}}}
	out := matcher.NewOutlet(1<<12,
		func(events []matcher.Event) { rec.events = append(rec.events, events...) })
	f := &flow{random: random}
	for seq := range n {
		c := f.next()
		c.InputSeq, c.EventTimeMillis = uint64(seq+1), testTime
		if o, ok := e.Order(c.OrderRef); ok {
			c.AccountID, c.SecurityID, c.Side = o.AccountID, o.SecurityID, o.Side
		}
		must.OK(t, e.Replay(&c, out))
		out.Flush()
		rec.bests = append(rec.bests, bestOf(e))
	}
	return rec
}

// The feeder may begin best levels anywhere in the stream, also between the events of one command,
// with views that are ahead of the stream and continue meanwhile. It shows them only when they
// match its position in the stream.
func TestTopsBeginAnywhere(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 2))
	rec := record(t, random, 300)
	shown := 0
	for begin := 0; begin < len(rec.events); begin += 1 + random.IntN(3) {
		shown += rec.follow(t, begin, random)
	}
	if shown < 1000 {
		t.Errorf("compared %d times", shown)
	}
}

// follow loads when the views have observed begin events; the stream is some events behind.
func (rec *recorded) follow(t *testing.T, begin int, random *rand.Rand) (shown int) {
	t.Helper()
	views := must.Get(blotter.NewViews(testGenesis()))(t)
	defer views.Close()
	ahead := 0
	advance := func(to int) {
		for ; ahead < min(to, len(rec.events)); ahead++ {
			views.Observe(&rec.events[ahead], nil)
		}
	}
	advance(begin)
	shows := func() uint64 {
		if ahead == 0 {
			return 0
		}
		return rec.events[ahead-1].InputSeq
	}
	s := newTops(views, shows)
	for at := max(0, begin-random.IntN(40)); at < len(rec.events); at++ {
		advance(max(begin, at+random.IntN(12)))
		advance(at + 1)
		ev := &rec.events[at]
		s.take(ev)
		if s.within {
			continue
		}
		s.settle(ev.InputSeq, int64(at+1), int64(at+1))
		if !s.exact {
			continue
		}
		shown++
		if err := s.check(); err != nil {
			t.Fatalf("begun at %d, event %d: %v", begin, at, err)
		}
		if got, want := s.bests(), rec.bests[ev.InputSeq]; !maps.Equal(got, want) {
			t.Fatalf("begun at %d, sequence %d: %+v, want %+v", begin, ev.InputSeq, got, want)
		}
	}
	return shown
}

// bests are all best levels that are not empty.
func (t *tops) bests() map[uint32]wire.Best {
	m := map[uint32]wire.Best{}
	for i := range t.books {
		if b := t.books[i].best(); b != (wire.Best{}) {
			m[uint32(i)] = b
		}
	}
	return m
}

// No best level is shown before every decision that a row may show is durable and processed.
func TestTopsWait(t *testing.T) {
	views := must.Get(blotter.NewViews(testGenesis()))(t)
	defer views.Close()
	for _, tt := range []struct {
		name             string
		durable          uint64
		published, taken int64
		within           bool
		want             bool
	}{
		{"not durable", 9, 5, 5, false, false},
		{"tapped and not taken in", 10, 5, 4, false, false},
		{"in the middle of a command", 10, 5, 5, true, false},
		{"all taken in", 10, 5, 5, false, true},
	} {
		s := newTops(views, func() uint64 { return 10 })
		s.within = tt.within
		if got := s.settle(tt.durable, tt.published, tt.taken); got != tt.want || s.exact != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}
