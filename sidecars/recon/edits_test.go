package recon

import (
	"context"
	"fmt"
	"testing"
	"time"

	"posttrade/matcher"
	"posttrade/sidecars/store"
	"posttrade/sidecars/store/storetest"
)

// handEdits are the ways in which randomEdit changes a row; $1 is its trade_seq.
var handEdits = [...]struct {
	sql   string
	class Class
	field string // that must be named
}{
	{"delete from trades where trade_seq = $1", MissingInProjection, ""},
	{"update trades set account_id = account_id + 1 where trade_seq = $1", FieldMismatch, "account"},
	{"update trades set security = security || 'X' where trade_seq = $1", FieldMismatch, "security"},
	{"update trades set side = case side when 'Buy' then 'Sell' else 'Buy' end where trade_seq = $1",
		FieldMismatch, "side"},
	{"update trades set quantity = -quantity where trade_seq = $1", FieldMismatch, "quantity"},
	{"update trades set price = price - 1 where trade_seq = $1", FieldMismatch, "price"},
	{"update trades set executed_at = executed_at + 1 where trade_seq = $1", FieldMismatch,
		"timestamp"},
	{"update trades set id = 'x' || id where trade_seq = $1", OrphanInProjection, ""},
	{"update trades set trade_seq = trade_seq + 1000000 where trade_seq = $1", OrphanInProjection, ""},
	{"", OrphanInProjection, ""}, // insert
}

// edit is one of them, made.
type edit struct {
	seq   uint64 // the entry
	id    string // of the row that remains, if one does
	class Class
	field string
}

// randomEdit changes the row of entry seq, or inserts a row that belongs to no entry.
func (g *rig) randomEdit(seq uint64, run func(sql string, args ...any)) edit {
	e := handEdits[g.rng.IntN(len(handEdits))]
	out := edit{seq, matcher.TradeID(seq), e.class, e.field}
	switch {
	case e.sql == "":
		free := 2_000_000 + g.rng.Uint64N(1_000_000)
		if out.id = matcher.TradeID(free); g.rng.IntN(2) == 0 {
			out.id = fmt.Sprintf("booked-by-hand-%d", free)
		}
		run("insert into trades (id, trade_seq, account_id, security, side, quantity, price, status, "+
			"settlement_date, "+
			"executed_at, booked_at, updated_at) values ($1, $2, 1, 'T1', 'Buy', 5, 5, 'Processing', $3,"+
			" 1, 1, 1)",
			out.id, free, store.Date(20000))
	case e.class == OrphanInProjection && e.sql == handEdits[7].sql:
		out.id = "x" + out.id
		run(e.sql, seq)
	default:
		run(e.sql, seq)
	}
	return out
}

// A hundred random edits by hand. Each is found, classified and named, and then repaired.
func TestHundredHandEditsAreFoundAndNamed(t *testing.T) {
	n := size(2000, 500)
	all := uint64(n)
	for _, seed := range []uint64{40, 41} {
		each(t, 500, seed, func(t *testing.T, g *rig) {
			g.bounds = bounds{page: 64, rows: 200, findings: 10, rechecks: 1000, orphans: 1000, near: 4}
			g.journal.add(g.rng, n)
			g.project(1, all)
			g.sweep()
			g.want(tallies{cursor: all, matched: all})
			var edits []edit
			for _, at := range g.rng.Perm(n)[:100] {
				edits = append(edits, g.randomEdit(uint64(at+1), func(sql string, args ...any) {
					storetest.Edit(t, g.db, sql, args...)
				}))
			}
			g.pass(time.Minute)
			// the orphan sweep finds everything; the verification finds all but orphans
			if g.rng.IntN(2) == 0 {
				g.verifyAll()
			}
			result := g.sweepOrphans()
			got := g.breaks("")
			for _, e := range edits {
				if !named(got, e) {
					t.Errorf("edit %+v is not among the breaks", e)
				}
			}
			want, matched := g.full()
			sameBreaks(t, got, want)
			s := g.tallies()
			if s.cursor != all || s.matched != matched || s.matched+s.missing+s.mismatch != all ||
				result.OrphanCount != s.orphans {
				t.Errorf("tallies %+v, want %d matched; result %+v", s, matched, result)
			}
			if m := g.Metrics(); m.MissingInProjectionTotal != s.missing ||
				m.FieldMismatchTotal != s.mismatch ||
				m.OrphanTotal != s.orphans || m.MatchedTotal != all || m.OpenBreaks != uint64(len(want)) {
				t.Errorf("metrics %+v, tallies %+v", m, s)
			}
			g.check()
			g.restart()
			storetest.Edit(t, g.db, "delete from trades")
			g.project(1, all)
			g.sweep()
			g.want(tallies{cursor: all, matched: all})
			if m := g.Metrics(); m.OpenBreaks != 0 || m.MatchedTotal != s.missing+s.mismatch {
				t.Errorf("metrics %+v after healing", m)
			}
		})
	}
}

// named reports whether the breaks name the edit e.
func named(breaks []Break, e edit) bool {
	missing, found := false, false
	for _, b := range breaks {
		missing = missing || b.Class == MissingInProjection && b.TradeSeq == e.seq
		switch {
		case b.Class != e.class:
		case e.class == FieldMismatch:
			found = found || b.TradeSeq == e.seq && len(b.Fields) == 1 && b.Fields[0] == e.field
		default:
			found = found || b.TradeID == e.id
		}
	}
	if e.id == "x"+matcher.TradeID(e.seq) { // the id of the row was edited, so the entry is missing
		return found && missing
	}
	return found
}

// rowsNow reads all rows by trade sequence.
func (g *rig) rowsNow() map[uint64]store.Trade {
	g.t.Helper()
	rows := map[uint64]store.Trade{}
	g.must(g.db.Read(context.Background(), func(tx *store.Tx) error {
		return tx.Trades(store.TradeFilter{}, func(t *store.Trade) error {
			rows[t.Seq] = *t
			return nil
		})
	}))
	return rows
}
