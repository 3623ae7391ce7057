package recon

import (
	"context"
	"fmt"
	"testing"
	"time"

	"posttrade/matcher"
	"posttrade/sidecars/store"
)

// model is an obviously right recon: it keeps every entry separately, and every walk is a loop.
type model struct {
	entries  []entryModel // by tradeSeq; [0] is not used
	swept    uint64
	verified uint64
	orphans  map[string]int64 // first seen, by id
	totals   Metrics          // since the last restart
}

// compare compares the entries that open selects.
func (m *model) compare(g *rig, rows map[uint64]store.Trade, lo, hi uint64,
	open func(e *entryModel) bool) {
	c := clock{g.millis, g.o.Grace.Milliseconds()}
	for seq := lo; seq <= hi; seq++ {
		e := &m.entries[seq]
		if !open(e) {
			continue
		}
		row, found := rows[seq]
		absent := !found || row.ID != matcher.TradeID(seq)
		fill := &g.journal.fills[seq-1]
		differs := !absent && tradeOf(&row) != tradeOfFill(fill, tickerOf(fill.SecurityID))
		was := *e
		e.look(absent, differs, tradeOf(&row), c)
		if was.state == e.state {
			continue
		}
		switch e.state {
		case 'm':
			m.totals.MatchedTotal++
		case 'x':
			m.totals.MissingInProjectionTotal++
		case 'f':
			m.totals.FieldMismatchTotal++
		}
	}
}

func always(*entryModel) bool { return true }

func (m *model) sweep(g *rig) {
	rows := g.rowsNow()
	m.compare(g, rows, 1, m.swept, func(e *entryModel) bool { return e.state != 'm' })
	for uint64(len(m.entries)) <= g.journal.durable {
		m.entries = append(m.entries, entryModel{})
	}
	m.compare(g, rows, m.swept+1, g.journal.durable, always)
	m.swept = max(m.swept, g.journal.durable)
	now := orphansAmong(rows, g.journal.durable)
	for id := range m.orphans {
		if !now[id] {
			delete(m.orphans, id)
		}
	}
}

func (m *model) verify(g *rig) {
	from := m.verified + 1
	if from > m.swept {
		from = 1
	}
	m.verified = min(m.swept, from+g.bounds.page-1)
	m.compare(g, g.rowsNow(), from, m.verified, always)
	if m.verified == m.swept {
		m.verified = 0
	}
}

func (m *model) sweepOrphans(g *rig) {
	rows := g.rowsNow()
	m.compare(g, rows, 1, m.swept, always)
	now := orphansAmong(rows, g.journal.durable)
	for id := range m.orphans {
		if !now[id] {
			delete(m.orphans, id)
		}
	}
	for id := range now {
		if _, known := m.orphans[id]; !known {
			m.orphans[id] = g.millis
			m.totals.OrphanTotal++
		}
	}
}

func orphansAmong(rows map[uint64]store.Trade, head uint64) map[string]bool {
	out := map[string]bool{}
	for seq, row := range rows {
		if seq > head || row.ID != matcher.TradeID(seq) {
			out[row.ID] = true
		}
	}
	return out
}

// compareTo checks that recon's books, breaks and counters equal the model's.
func (m *model) compareTo(g *rig, step string) {
	g.t.Helper()
	want := tallies{orphans: uint64(len(m.orphans))}
	firstSeen := map[string]int64{}
	for id, at := range m.orphans {
		firstSeen[string(OrphanInProjection)+id] = at
	}
	for seq, e := range m.entries {
		switch e.state {
		case 'm':
			want.matched++
		case 'x':
			want.missing++
			firstSeen[string(MissingInProjection)+matcher.TradeID(uint64(seq))] = e.firstSeen
		case 'f':
			want.mismatch++
			firstSeen[string(FieldMismatch)+matcher.TradeID(uint64(seq))] = e.firstSeen
		}
	}
	want.cursor = want.matched + want.missing + want.mismatch
	want.lag = g.journal.durable - want.cursor
	if got := g.tallies(); got != want {
		g.t.Fatalf("%s: tallies %+v, want %+v", step, got, want)
	}
	g.check()
	breaks := g.breaks("")
	if len(breaks) != len(firstSeen) {
		g.t.Fatalf("%s: %d breaks, want %d", step, len(breaks), len(firstSeen))
	}
	for _, b := range breaks {
		if at, found := firstSeen[string(b.Class)+b.TradeID]; !found || at != b.FirstSeenMillis ||
			b.LastSeenMillis < at {
			g.t.Fatalf("%s: break %+v, want it first seen at %d (%v)", step, b, at, found)
		}
		if b.Class == FieldMismatch && *b.Projection != m.entries[b.TradeSeq].row {
			g.t.Fatalf("%s: break %+v shows another row than %+v", step, b, m.entries[b.TradeSeq].row)
		}
	}
	got := g.Metrics()
	got.Lag, got.OpenBreaks = 0, 0
	if got != m.totals {
		g.t.Fatalf("%s: counters %+v, want %+v", step, got, m.totals)
	}
}

// Random interleavings of fills, rows, edits, time, walks and restarts: after each
// step the books are those of the model, and at the end those of a full comparison.
func TestRandomInterleavingsMatchTheModel(t *testing.T) {
	for seed := range uint64(size(6, 3)) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { each(t, 25, 100+seed, interleave) })
	}
}

func interleave(t *testing.T, g *rig) {
	m := &model{entries: make([]entryModel, 1), orphans: map[string]int64{}}
	projected := uint64(0)
	for step := range size(150, 75) {
		what := ""
		switch k := g.rng.IntN(20); {
		case k < 3:
			n := 1 + g.rng.IntN(15)
			g.journal.add(g.rng, n)
			what = fmt.Sprintf("%d fills", n)
		case k < 6:
			to := projected + g.rng.Uint64N(g.journal.durable-projected+1)
			g.project(projected+1, to)
			what, projected = fmt.Sprintf("projected %d", to), to
		case k < 8:
			lo := 1 + g.rng.Uint64N(g.journal.durable+1)
			hi := min(lo+g.rng.Uint64N(8), g.journal.durable)
			g.edit("delete from trades where trade_seq between $1 and $2", lo, hi)
			if g.rng.IntN(2) == 0 {
				g.project(lo, hi) // repaired
			}
			what = fmt.Sprintf("rows %d..%d", lo, hi)
		case k < 11 && g.journal.durable > 0:
			e := g.randomEdit(1+g.rng.Uint64N(g.journal.durable), func(sql string, args ...any) {
				_ = g.db.Write(context.Background(), func(tx *store.Tx) error { // may hit a row that is there
					_, err := tx.Exec(sql, args...)
					return err
				})
			})
			what = fmt.Sprintf("edit %+v", e)
		case k < 12:
			g.pass(time.Duration(g.rng.IntN(4000)) * time.Millisecond)
		case k < 16:
			what = "sweep"
			g.sweep()
			m.sweep(g)
		case k < 18:
			what = "verify"
			g.must(g.VerifyStep(context.Background()))
			if m.swept > 0 {
				m.verify(g)
			}
		case k < 19:
			what = "orphan sweep"
			g.sweepOrphans()
			m.sweepOrphans(g)
		default:
			what = "restart"
			g.restart()
			m.totals = Metrics{}
		}
		m.compareTo(g, fmt.Sprintf("step %d: %s", step, what))
	}
	g.pass(DefaultGrace)
	g.sweep()
	g.pass(DefaultGrace)
	g.sweep() // the grace is over for what the step before saw for the first time
	g.verifyAll()
	g.sweepOrphans()
	want, matched := g.full()
	sameBreaks(t, g.breaks(""), want)
	if got := g.tallies(); got.matched != matched || got.cursor != g.journal.durable {
		t.Fatalf("tallies %+v at the end, want %d matched of %d", got, matched, g.journal.durable)
	}
	g.edit("delete from trades")
	if g.journal.durable > 0 {
		g.project(1, g.journal.durable)
	}
	g.sweep()
	g.want(tallies{cursor: g.journal.durable, matched: g.journal.durable})
}
