package recon

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"posttrade/sidecars/store"
	"posttrade/sidecars/store/storetest"
)

const dayMillis = 86_400_000

// plus are rules that are easy to check: a number of days after the UTC date.
type plus int

func (p plus) SettlementDate(millis int64) store.Date {
	return store.Date(millis/dayMillis) + store.Date(p)
}
func (p plus) LocalDate(millis int64) store.Date { return store.Date(millis / dayMillis) }

// plusRules knows the rules T+1 and T+2.
func plusRules(name string) (Rules, bool) {
	n := slices.Index([]string{"T+1", "T+2"}, name)
	return plus(n + 1), n >= 0
}

// settlementRig is a rig with rows that a projection wrote by these rules.
func settlementRig(t *testing.T, db *store.DB, n int) *rig {
	g := newRig(t, db, n, 7)
	g.Recon.o.Rules = plusRules
	g.journal.add(g.rng, n)
	for i := range g.journal.fills {
		g.journal.fills[i].OrderRef = uint32(i + 1)
	}
	return g
}

// book writes the rows of the fills from..to as a projection with T+days does.
func (g *rig) book(from, to uint64, days plus) {
	g.t.Helper()
	var rows []store.Trade
	for seq := from; seq <= to; seq++ {
		f := &g.journal.fills[seq-1]
		row := rowOf(f)
		row.OrderID = "ord-" + row.ID[len("trd-"):]
		row.SettlementDate = days.SettlementDate(f.TimeMillis)
		row.BookedAt, row.UpdatedAt = g.millis, g.millis
		rows = append(rows, row)
	}
	g.must(g.db.Write(context.Background(), func(tx *store.Tx) error {
		_, err := tx.InsertTrades(rows)
		return err
	}))
}

func (g *rig) rule(name string, firstSeq uint64, booked, forces int64) {
	g.t.Helper()
	g.must(g.db.Write(context.Background(), func(tx *store.Tx) error {
		return tx.AddSettlementRules(store.SettlementRules{
			Rules: name, FirstSeq: firstSeq, BookedFrom: booked, ForcesFrom: forces,
		})
	}))
}

// Every walk compares and names every column that the projection wrote.
func TestEveryColumnIsComparedAndNamed(t *testing.T) {
	edits := []struct {
		set  string
		want string
	}{
		{"settlement_date = '2023-11-20'", "settlementDate"},
		{"settlement_date = '9999-12-31'", "settlementDate"},
		{"status = 'Settled'", "status"},
		{"order_id = 'ord-999'", "orderId"},
		{"order_id = null", "orderId"},
		{"order_id = 'ord-07'", "orderId"},
		{"order_id = 'nonsense'", "orderId"},
		{"sequence = 999999", "sequence"},
		{"booked_at = booked_at - 1", "bookedAt updatedAt"},
		{"updated_at = updated_at + 1", "bookedAt updatedAt"},
		{"executed_at = executed_at + 1", "timestamp"},
		{"status = 'Settled', updated_at = booked_at - 1", "bookedAt updatedAt"},
	}
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		n := uint64(len(edits))
		walks := map[string]func(g *rig){
			"sweep":        func(g *rig) { g.sweep() },
			"verification": func(g *rig) { g.verifyAll() },
			"orphan sweep": func(g *rig) { g.sweepOrphans() },
		}
		g := settlementRig(t, db, int(n))
		g.millis = g.journal.fills[0].TimeMillis + 1000
		g.rule("T+1", 1, 0, 0)
		g.book(1, n, 1)
		g.sweep()
		g.want(tallies{cursor: n, matched: n})
		for name, walk := range walks {
			for i, e := range edits {
				g.edit("update trades set "+e.set+" where trade_seq = $1", i+1)
			}
			if name == "sweep" { // new entries: from the beginning
				g.edit("delete from cursors where name = 'recon'")
			}
			walk(g)
			for i, b := range g.breaks(FieldMismatch) {
				if got := strings.Join(b.Fields, " "); got != edits[b.TradeSeq-1].want ||
					b.TradeSeq != uint64(i+1) {
					t.Errorf("%s: %s: named %q, want %q", name, edits[b.TradeSeq-1].set, got,
						edits[b.TradeSeq-1].want)
				}
			}
			if got := g.tallies(); got != (tallies{cursor: n, mismatch: n}) {
				t.Errorf("%s: %+v", name, got)
			}
			g.edit("delete from trades")
			g.book(1, n, 1)
			g.sweep()
			g.want(tallies{cursor: n, matched: n})
		}
	})
}

// A column without a valid date ends no walk, and is named.
func TestDateThatIsNoneIsNamedAndWalkedOver(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		values := []string{"-infinity", "infinity", "12345-01-01", "0044-03-15 BC"}
		if db.Dialect() == store.SQLite {
			values = []string{"9999-99-99", "2026-02-31", "0000-00-00"}
		}
		n := uint64(len(values))
		g := settlementRig(t, db, int(n)+2)
		g.rule("T+1", 1, 0, 0)
		g.book(1, n+2, 1)
		if db.Dialect() == store.Postgres {
			g.edit("alter table trades drop constraint trades_settlement_date_check")
		}
		for i, v := range values {
			g.edit("update trades set settlement_date = '"+v+"' where trade_seq = $1", i+1)
		}
		g.sweep()
		g.verifyAll()
		g.sweepOrphans()
		g.want(tallies{cursor: n + 2, matched: 2, mismatch: n})
		for _, b := range g.breaks(FieldMismatch) {
			if !slices.Equal(b.Fields, []string{"settlementDate"}) {
				t.Errorf("%s: %v", values[b.TradeSeq-1], b.Fields)
			}
		}
		g.must(g.db.Read(context.Background(), func(tx *store.Tx) error {
			return tx.TradesBySeq(1, n, func(row *store.Trade) error {
				if row.SettlementDate != store.NoDate || row.SettlementDate.String() != "no date" {
					t.Errorf("%s is read as %s", values[row.Seq-1], row.SettlementDate)
				}
				return nil
			})
		}))
	})
}

// A date is judged by the rules that were in force when its row was booked.
func TestDatesAreJudgedByTheRulesOfTheirTime(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		g := settlementRig(t, db, 40)
		g.rule("T+1", 0, 0, 0)
		g.book(1, 10, 1)
		g.pass(time.Hour)
		g.rule("T+2", 11, g.millis, 0)
		g.book(11, 20, 2)
		g.sweep()
		g.want(tallies{cursor: 40, matched: 20, lag: 0}.pendingOf(20))
		// Booked again, under the present rules.
		g.edit("delete from trades where trade_seq <= 5")
		g.book(1, 5, 2)
		g.verifyAll()
		g.sweep()
		if b := g.breaks(FieldMismatch); len(b) != 0 {
			t.Errorf("%d breaks, the first %+v", len(b), b[0])
		}
		// The date of the other rules is wrong on either side.
		g.edit("update trades set settlement_date = '2023-11-17' where trade_seq = 8")
		g.edit("update trades set settlement_date = '2023-11-15' where trade_seq = 18")
		// Rules that this build does not know: every date that some rules can give is accepted.
		g.pass(time.Hour)
		g.rule("of a later build", 21, g.millis, 0)
		g.book(21, 40, 9)
		g.edit("update trades set settlement_date = '2033-11-15' where trade_seq = 28")
		g.verifyAll()
		g.sweep()
		var seqs []uint64
		for _, b := range g.breaks(FieldMismatch) {
			seqs = append(seqs, b.TradeSeq)
		}
		if !slices.Equal(seqs, []uint64{8, 18, 28}) {
			t.Errorf("breaks of %v", seqs)
		}
	})
}

// pendingOf is the rest of a status while that many entries are pending.
func (s tallies) pendingOf(n uint64) tallies {
	s.cursor -= n
	s.lag += n
	return s
}

// A trade is settled when its date has come or by hand, and that is final.
func TestStatusIsJudgedByTheSettlementRules(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		g := settlementRig(t, db, 6)
		at := g.journal.fills[0].TimeMillis
		g.millis = at + 1000
		g.rule("T+1", 1, 0, 0)
		g.book(1, 6, 1)
		settle := "update trades set status = 'Settled', updated_at = $1 where trade_seq = $2"
		g.edit(settle, at+dayMillis+1, 1) // on its date
		g.edit(settle, at+2000, 2)        // before it, by hand
		g.edit(settle, at+2000, 3)        // before it, with no known settlement by hand
		// Settled by hand, and the status set back alone.
		g.edit("update trades set updated_at = $1 where trade_seq = $2", at+2000, 6)
		g.must(g.db.Write(context.Background(), func(tx *store.Tx) error {
			for _, seq := range []uint64{2, 4, 5, 6} {
				if err := tx.NoteForce(seq, at+2000); err != nil {
					return err
				}
			}
			return nil
		}))
		g.edit("delete from trades where trade_seq = 5") // 4 was undone, 5 is booked again
		g.millis = at + 3000
		g.book(5, 5, 1)
		g.sweep()
		var seqs []uint64
		for _, b := range g.breaks(FieldMismatch) {
			if seqs = append(seqs, b.TradeSeq); !slices.Equal(b.Fields, []string{"status"}) {
				t.Errorf("%d: %v", b.TradeSeq, b.Fields)
			}
		}
		if !slices.Equal(seqs, []uint64{3, 4, 6}) {
			t.Errorf("breaks of %v", seqs)
		}
	})
}

// Settlements by hand from before they were recorded are accepted.
func TestForcesOfAnOlderBuildAreBelieved(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		g := settlementRig(t, db, 2)
		at := g.journal.fills[0].TimeMillis
		g.millis = at + 1000
		g.rule("T+1", 0, 0, at+10_000)
		g.book(1, 2, 1)
		settle := "update trades set status = 'Settled', updated_at = $1 where trade_seq = $2"
		g.edit(settle, at+9_999, 1)
		g.edit(settle, at+10_000, 2)
		g.sweep()
		if b := g.breaks(FieldMismatch); len(b) != 1 || b[0].TradeSeq != 2 {
			t.Errorf("breaks %+v", b)
		}
	})
}
