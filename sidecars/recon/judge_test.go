package recon

import (
	"math/rand/v2"
	"reflect"
	"testing"
)

// entryModel is one entry of the naive model: every entry is kept separately.
type entryModel struct {
	state     byte // 0 not swept, m matched, p pending, x missing, f mismatch
	firstSeen int64
	row       Trade
}

// look is the effect of one comparison on an entry.
func (e *entryModel) look(absent, differs bool, row Trade, c clock) {
	was := *e
	switch {
	case absent:
		*e = entryModel{state: 'x', firstSeen: c.now}
		if was.state == 0 && c.grace > 0 {
			e.state = 'p'
		}
		if was.state == 'p' || was.state == 'x' {
			e.firstSeen = min(was.firstSeen, c.now)
			if was.state == 'p' && c.now-was.firstSeen < c.grace {
				e.state = 'p'
			}
		}
	case differs:
		*e = entryModel{state: 'f', firstSeen: c.now, row: row}
		if was.state == 'f' {
			e.firstSeen = min(was.firstSeen, c.now)
		}
	default:
		*e = entryModel{state: 'm'}
	}
}

// entriesOf turns exceptions into single entries.
func entriesOf(t *testing.T, gaps []gap, mismatches []mismatch, swept uint64, n int) []entryModel {
	out := make([]entryModel, n+1)
	for seq := uint64(1); seq <= swept; seq++ {
		out[seq].state = 'm'
	}
	last := uint64(0)
	for _, g := range gaps {
		if g.lo <= last || g.hi < g.lo {
			t.Fatalf("gaps %+v overlap or are out of order", gaps)
		}
		for seq := g.lo; seq <= g.hi; seq++ {
			out[seq] = entryModel{state: 'p', firstSeen: g.firstSeen}
			if g.counted {
				out[seq].state = 'x'
			}
		}
		last = g.hi
	}
	for _, m := range mismatches {
		if out[m.seq].state != 'm' {
			t.Fatalf("entry %d is absent and differs", m.seq)
		}
		out[m.seq] = entryModel{state: 'f', firstSeen: m.firstSeen, row: m.row}
	}
	return out
}

// Random judgements over random ranges leave each entry as in the model, and the tallies and
// counters move with the entries.
func TestJudgeMatchesEntryByEntry(t *testing.T) {
	const n = 40
	for seed := range uint64(size(400, 60)) {
		rng := rand.New(rand.NewPCG(seed, 4))
		var (
			gaps       []gap
			mismatches []mismatch
			swept      uint64
			model      = make([]entryModel, n+1)
			c          = clock{now: 1000, grace: rng.Int64N(3) * 50}
		)
		for step := range 60 {
			if c.now += rng.Int64N(40); rng.IntN(8) == 0 {
				c.now -= rng.Int64N(200) // the clock is set back
			}
			f := findings{}
			switch fast := rng.IntN(3) == 0; {
			case fast && swept < n:
				f.span = span{swept + 1, swept + 1 + rng.Uint64N(n-swept)}
			case swept > 0:
				lo := 1 + rng.Uint64N(swept)
				f.span = span{lo, lo + rng.Uint64N(swept-lo+1)}
			default:
				continue
			}
			before := append([]entryModel{}, model...)
			density := rng.IntN(4)
			for seq := f.lo; seq <= f.hi; seq++ {
				absent := rng.IntN(4) < density
				differs := !absent && rng.IntN(4) == 0
				row := Trade{Quantity: rng.Int64N(2)}
				if absent {
					f.noteAbsent(span{seq, seq})
				} else if differs {
					f.differs = append(f.differs, mismatch{seq: seq, fields: fieldQuantity, row: row})
				}
				model[seq].look(absent, differs, row, c)
			}
			old, restGaps, restOnes := within(gaps, mismatches, f.span)
			is, change := judge(old, &f, swept, c)
			gaps, mismatches = splice(restGaps, is.gaps), spliceOnes(restOnes, is.mismatches)
			swept = max(swept, f.hi)
			if got := entriesOf(t, gaps, mismatches, swept, n); !reflect.DeepEqual(got, model) {
				t.Fatalf("seed %d step %d span %v:\n%v, want\n%v", seed, step, f.span, got, model)
			}
			if want := changeOf(before, model); change != want {
				t.Fatalf("seed %d step %d: change %+v, want %+v", seed, step, change, want)
			}
		}
	}
}

// within returns what judge must receive for s: overlapping or touching gaps, mismatches inside.
func within(gaps []gap, ones []mismatch, s span) (e exceptions, restGaps []gap,
	restOnes []mismatch) {
	for _, g := range gaps {
		if g.hi+1 >= s.lo && g.lo <= s.hi+1 {
			e.gaps = append(e.gaps, g)
		} else {
			restGaps = append(restGaps, g)
		}
	}
	for _, m := range ones {
		if m.seq >= s.lo && m.seq <= s.hi {
			e.mismatches = append(e.mismatches, m)
		} else {
			restOnes = append(restOnes, m)
		}
	}
	return e, restGaps, restOnes
}

func splice(rest, gaps []gap) (out []gap) {
	for len(rest) > 0 && len(gaps) > 0 {
		if rest[0].lo < gaps[0].lo {
			out, rest = append(out, rest[0]), rest[1:]
		} else {
			out, gaps = append(out, gaps[0]), gaps[1:]
		}
	}
	return append(append(out, rest...), gaps...)
}

func spliceOnes(rest, ones []mismatch) (out []mismatch) {
	for len(rest) > 0 && len(ones) > 0 {
		if rest[0].seq < ones[0].seq {
			out, rest = append(out, rest[0]), rest[1:]
		} else {
			out, ones = append(out, ones[0]), ones[1:]
		}
	}
	return append(append(out, rest...), ones...)
}

// changeOf counts the changes entry by entry.
func changeOf(before, after []entryModel) (c change) {
	for i := range after {
		was, is := before[i].state, after[i].state
		tally := func(state byte) int64 {
			switch {
			case is == state && was != state:
				return 1
			case is != state && was == state:
				return -1
			}
			return 0
		}
		c.missing += tally('x')
		c.pending += tally('p')
		c.mismatches += tally('f')
		if was != is {
			switch is {
			case 'm':
				c.nowMatched++
			case 'x':
				c.nowMissing++
			case 'f':
				c.nowDiffers++
			}
		}
	}
	return c
}

func TestOverlapCountsCommonNumbers(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 5))
		var lists [2][]span
		var sets [2]map[uint64]bool
		for i := range lists {
			sets[i] = map[uint64]bool{}
			for next := rng.Uint64N(5); next < 60; {
				s := span{next, next + rng.Uint64N(6)}
				lists[i] = append(lists[i], s)
				for seq := s.lo; seq <= s.hi; seq++ {
					sets[i][seq] = true
				}
				next = s.hi + 1 + rng.Uint64N(6)
			}
		}
		want := uint64(0)
		for seq := range sets[0] {
			if sets[1][seq] {
				want++
			}
		}
		if got := overlap(lists[0], lists[1]); got != want {
			t.Fatalf("seed %d: overlap %d, want %d", seed, got, want)
		}
	}
}
