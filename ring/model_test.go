package ring

import (
	"errors"
	"testing"

	"posttrade/ring/must"
)

// model is the expected state of a ring: which positions are claimed, which are published, and the
// consumer's position.
type model struct {
	capacity  int64
	claimed   int64
	published map[int64]bool
	consumed  int64
}

func newModel(capacity int) *model {
	return &model{capacity: int64(capacity), published: map[int64]bool{}}
}

func (m *model) claim(n int64) (lo int64, ok bool) {
	if m.claimed+n > m.consumed+m.capacity {
		return 0, false
	}
	m.claimed += n
	return m.claimed - n, true
}

func (m *model) publish(lo, hi int64) {
	for ; lo < hi; lo++ {
		m.published[lo] = true
	}
}

// ready is the end of the contiguous published slots, at most limit of them.
func (m *model) ready(from, limit int64) int64 {
	hi := from
	for hi < from+limit && m.published[hi] {
		hi++
	}
	return hi
}

func TestSPSCMatchesModel(t *testing.T) {
	rng := seeded(t)
	for _, capacity := range []int{2, 8, 64} {
		r, m := newTestSPSC(t, capacity), newModel(capacity)
		var sent, shown int64 // published up to, shown to the consumer up to
		for step := range 20_000 {
			switch rng.IntN(7) {
			case 0:
				slot := r.Claim()
				lo, ok := m.claim(1)
				if (slot != nil) != ok {
					t.Fatalf("step %d: claim gave %p, want a slot: %v", step, slot, ok)
				}
				if ok {
					slot.fill(uint64(lo))
				}
			case 1:
				n := 1 + rng.Int64N(int64(capacity)+1)
				lo, hi := r.ClaimSome(int(n))
				full := m.claimed == m.consumed+m.capacity
				if want, ok := m.claim(hi - lo); !ok || lo != want || hi-lo > n || (lo == hi) != full {
					t.Fatalf("step %d: claim %d gave [%d, %d), want some from %d, full %v", step, n, lo, hi, want,
						full)
				}
				for pos := lo; pos < hi; pos++ {
					r.At(pos).fill(uint64(pos))
				}
			case 2:
				r.Publish()
				m.publish(sent, m.claimed)
				sent = m.claimed
			case 3:
				if sent < m.claimed {
					to := sent + rng.Int64N(m.claimed-sent+1)
					r.PublishTo(to)
					m.publish(sent, to)
					sent = to
				}
			case 4, 5:
				// The ring may show fewer slots than are ready, never more, and at least one if one is ready.
				limit := 1 + rng.Int64N(int64(capacity))
				lo, hi := r.Ready(int(limit))
				want := m.ready(m.consumed, limit)
				if lo != m.consumed || hi > want || (hi == lo) != (want == lo) {
					t.Fatalf("step %d: ready [%d, %d), want within [%d, %d)", step, lo, hi, m.consumed, want)
				}
				shown = max(shown, hi)
				if !r.Empty() && m.ready(r.seen, 1) == r.seen {
					t.Fatalf("step %d: not empty, but nothing is published at %d", step, r.seen)
				}
				for pos := lo; pos < shown; pos++ {
					if !r.At(pos).ok(uint64(pos)) {
						t.Fatalf("step %d: slot %d holds %v", step, pos, *r.At(pos))
					}
				}
			case 6:
				if shown > m.consumed {
					m.consumed += rng.Int64N(shown - m.consumed + 1)
					r.Release(m.consumed)
				}
			}
			if got, want := r.Depth(), int(sent-m.consumed); got != want {
				t.Fatalf("step %d: depth %d, want %d", step, got, want)
			}
		}
		if m.consumed < 1000 {
			t.Errorf("capacity %d: only %d slots went through", capacity, m.consumed)
		}
	}
}

func TestMPSCMatchesModel(t *testing.T) {
	rng := seeded(t)
	type claim struct{ lo, n int64 }
	for _, capacity := range []int{2, 8, 64} {
		r, m := newTestMPSC(t, capacity), newModel(capacity)
		var open []claim // claimed and not published: published in any order
		var shown int64
		for step := range 20_000 {
			switch rng.IntN(5) {
			case 0, 1:
				n := 1 + rng.Int64N(int64(capacity)+1)
				got, gotOK := r.ClaimN(int(n))
				lo, ok := m.claim(n)
				if gotOK != ok || ok && got != lo {
					t.Fatalf("step %d: claim %d gave %d %v, want %d %v", step, n, got, gotOK, lo, ok)
				}
				if ok {
					open = append(open, claim{lo, n})
				}
			case 2:
				if len(open) == 0 {
					continue
				}
				i := rng.IntN(len(open))
				c := open[i]
				open[i] = open[len(open)-1]
				open = open[:len(open)-1]
				for pos := c.lo; pos < c.lo+c.n; pos++ {
					r.At(pos).fill(uint64(pos))
				}
				r.Publish(c.lo, int(c.n))
				m.publish(c.lo, c.lo+c.n)
			case 3:
				limit := 1 + rng.Int64N(int64(capacity))
				lo, hi := r.Ready(int(limit))
				if want := m.ready(m.consumed, limit); lo != m.consumed || hi != want {
					t.Fatalf("step %d: ready [%d, %d), want [%d, %d)", step, lo, hi, m.consumed, want)
				}
				shown = max(shown, hi)
				if got, want := r.Empty(), !m.published[r.seen]; got != want {
					t.Fatalf("step %d: empty %v, want %v", step, got, want)
				}
				for pos := m.consumed; pos < shown; pos++ {
					if !r.At(pos).ok(uint64(pos)) {
						t.Fatalf("step %d: slot %d holds %v", step, pos, *r.At(pos))
					}
				}
			case 4:
				if shown > m.consumed {
					m.consumed += rng.Int64N(shown - m.consumed + 1)
					r.Release(m.consumed)
				}
			}
			if got, want := r.Depth(), int(m.claimed-m.consumed); got != want {
				t.Fatalf("step %d: depth %d, want %d", step, got, want)
			}
		}
		if m.consumed < 1000 {
			t.Errorf("capacity %d: only %d slots went through", capacity, m.consumed)
		}
	}
}

func TestFanoutMatchesModel(t *testing.T) {
	rng := seeded(t)
	for _, capacity := range []int{2, 8, 64} {
		r := newTestFanout(t, capacity)
		free, lazy := r.Reader(), r.Reader()
		size, half := int64(capacity), int64(capacity/2)
		var published, consumed, shown, lapped int64
		// next checks one call of a free reader against the model: the reader gets the slots from its
		// position on, or ErrLapped when the oldest whole slot lies beyond it.
		next := func(step int, rd *Reader[msg], dst []msg) {
			pos, missed := rd.Position(), rd.Missed()
			n, err := rd.Next(dst)
			oldest := max(0, published-half)
			if pos < oldest {
				lapped++
				if !errors.Is(err, ErrLapped) || n != 0 || rd.Position() != oldest ||
					rd.Missed() != missed+oldest-pos {
					t.Fatalf("step %d: reader at %d of %d: got %d %v, now at %d, missed %d",
						step, pos, published, n, err, rd.Position(), rd.Missed())
				}
				return
			}
			if want := min(published-pos, int64(len(dst))); err != nil || int64(n) != want {
				t.Fatalf("step %d: reader at %d of %d: got %d %v, want %d", step, pos, published, n, err, want)
			}
			for i := range n {
				if !dst[i].ok(uint64(pos) + uint64(i)) {
					t.Fatalf("step %d: reader copied %v at %d", step, dst[i], pos+int64(i))
				}
			}
			if got, want := rd.Empty(), rd.Position() == published; got != want {
				t.Fatalf("step %d: reader empty %v, want %v", step, got, want)
			}
		}
		for step := range 20_000 {
			switch rng.IntN(6) {
			case 0, 1:
				limit := r.Limit()
				if want := min(consumed+size, published+half); limit != want {
					t.Fatalf("step %d: limit %d, want %d", step, limit, want)
				}
				hi := published + rng.Int64N(limit-published+1)
				for pos := published; pos < hi; pos++ {
					r.Slots()[pos&r.Mask()].fill(uint64(pos))
				}
				r.PublishTo(hi)
				published = hi
			case 2:
				limit := 1 + rng.Int64N(size)
				lo, hi := r.Ready(int(limit))
				if lo != consumed || hi > min(published, lo+limit) || hi == lo && published > lo {
					t.Fatalf("step %d: ready [%d, %d), want within [%d, %d)", step, lo, hi, consumed, published)
				}
				shown = max(shown, hi)
				for pos := lo; pos < hi; pos++ {
					if !r.At(pos).ok(uint64(pos)) {
						t.Fatalf("step %d: slot %d holds %v", step, pos, *r.At(pos))
					}
				}
			case 3:
				if shown > consumed {
					consumed += rng.Int64N(shown - consumed + 1)
					r.Release(consumed)
				}
			case 4:
				next(step, free, make([]msg, 1+rng.IntN(capacity+2)))
			case 5:
				if rng.IntN(20) == 0 {
					next(step, lazy, make([]msg, 1))
				}
			}
			if r.Published() != published || r.Depth() != int(published-consumed) {
				t.Fatalf("step %d: published %d, depth %d, want %d, %d",
					step, r.Published(), r.Depth(), published, published-consumed)
			}
		}
		if lapped == 0 || consumed < 1000 {
			t.Errorf("capacity %d: lapped %d times, %d slots went through", capacity, lapped, consumed)
		}
	}
}

func TestOpenedRingGoesOnWhereItWas(t *testing.T) {
	r := newTestSPSC(t, 8)
	for i := range uint64(5) {
		r.Claim().fill(i)
		r.Publish()
	}
	r.Ready(2)
	r.Release(2)
	again := must.Get(OpenSPSC[msg](r.region))(t)
	if lo, hi := again.Ready(8); lo != 2 || hi != 5 || again.Depth() != 3 || again.Cap() != 8 ||
		!again.At(4).ok(4) {
		t.Errorf("ready [%d, %d), depth %d, slot 4 %v", lo, hi, again.Depth(), *again.At(4))
	}
	if lo, hi := again.ClaimSome(8); lo != 5 || hi != 10 || again.Claim() != nil {
		t.Errorf("claimed [%d, %d), want [5, 10) and then full", lo, hi)
	}
}
