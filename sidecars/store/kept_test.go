package store_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"posttrade/ring/must"
	"posttrade/sidecars/store"
	"posttrade/sidecars/store/storetest"
)

// keep returns the rows of a database that are kept.
func keep(t *testing.T, db *store.DB) string {
	t.Helper()
	var out bytes.Buffer
	err := db.Read(t.Context(), func(tx *store.Tx) error {
		out.Reset()
		return tx.WriteKept(&out)
	})
	must.OK(t, err)
	return out.String()
}

// load puts kept rows into a database. loaded: they are there now.
func load(t *testing.T, db *store.DB, text string, lastTrade uint64) (loaded bool, err error) {
	t.Helper()
	err = db.Write(t.Context(), func(tx *store.Tx) error {
		found, err := tx.ReadKept(strings.NewReader(text), lastTrade)
		loaded = found != store.KeptRefused
		return err
	})
	return loaded, err
}

func fillKept(t *testing.T, db *store.DB) {
	t.Helper()
	err := db.Write(t.Context(), func(tx *store.Tx) error {
		for sql, args := range map[string][]any{
			"insert into accounts values ($1, $2, $3, $4, $5)": {7, "Näme <\"'\n\\>", false, 3, 2},
			"insert into stocks values ($1, $2, $3, $4, $5, $6, $7)": {"b/B", "", true, true, 9, 1,
				1},
			insertTrade: {"ext-a\"<", store.FirstExternal, 7, "b/B", "Sell", 3, 1, "Settled",
				store.DateOf(2026, 11, 23), 5, 6, 7, nil, nil},
			insertTrade + " ": {"ext-b", store.FirstExternal + 1, 7, "A", "Buy", 1 << 40, 1, "Processing",
				store.DateOf(2026, 11, 24), 5, 6, 6, "x", nil},
			insertTrade + "  ": {"trd-4", 4, 7, "A", "Buy", 1, 1, "Processing",
				store.DateOf(2026, 11, 24), 5, 6, 6, "ord-1", 9},
			insertTrade + "   ": {"void-4", store.FirstVoid, 7, "A", "Buy", 1, 1, "Processing",
				store.DateOf(2026, 11, 24), 5, 6, 6, "ord-1", 9},
			"insert into recon_statement values ($1, 7, 'A', 'Buy', 1, 2, 3, 4)":         {"ext-b"},
			"insert into recon_repairs values (1, 3, 9, 's', 'a', $1, 5, 6, 7, 2)":       {"wh\ny"},
			"insert into recon_repairs values (2, $1, 20, 's', 'a', 'r', 5, null, 0, 0)": {9},
			"insert into recon_repaired_rows (repair, trade_seq, n, fields) values " +
				"(1, 3, 0, $1), (1, 9, 0, 'missing')": {"missing"},
			"insert into recon_repaired_rows values (1, 4, 0, $1, 'x', 4, 7, 'A', 'Buy', 1, 2, " +
				"'Settled', '2026-99-99', 5, 6, 7, 'ord-1', 8)": {"price,side"},
			"insert into trades_by_message values ($1)":       {4},
			"insert into cursors values ('recon.repair', $1)": {2},
			"insert into cursors values ('projection', $1)":   {2},
		} {
			if _, err := tx.Exec(sql, args...); err != nil {
				return err
			}
		}
		for _, s := range []store.SettlementRules{{Rules: "T+2"}, {Rules: "T+1", FirstSeq: 4},
			{Rules: "T+3", FirstSeq: 9, BookedFrom: 5, ForcesFrom: 6}} {
			if err := tx.AddSettlementRules(s); err != nil {
				return err
			}
		}
		_, key := tx.DrawKey("account", "k")
		_, _, version := tx.NextVersion("account", 5)
		act := store.Act{Kind: "epoch", Subject: "s", Object: "{}", New: "1", MadeAt: 5}
		return errors.Join(tx.PutAct(&act), key, version, tx.NoteForce(4, 11), tx.NoteForce(9, 12),
			tx.NoteForce(store.FirstExternal, 13), tx.NoteForce(store.FirstVoid, 14),
			tx.PutMarks(store.DateOf(2026, 11, 20), 1, []store.Mark{{Security: "A", Price: 1, Quality: "F"},
				{Security: "B", Price: 1<<63 - 1}}, marksNow))
	})
	must.OK(t, err)
}

const insertTrade = "insert into trades (id, trade_seq, account_id, security, side, quantity, " +
	"price, status, settlement_date, executed_at, booked_at, updated_at, order_id, sequence) values " +
	"($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)"

// forcedOutside is a settlement by hand of a booking from outside.
const forcedOutside = "[2305843009213693953,13]"

func TestKeptRowsComeBack(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		fillKept(t, db)
		text := keep(t, db)
		if loaded, err := load(t, db, text, 100); err != nil || loaded {
			t.Errorf("loaded over the rows: %t %v", loaded, err)
		}
		empty := func() {
			t.Helper()
			err := db.Write(t.Context(), func(tx *store.Tx) (err error) {
				for _, table := range strings.Fields("eod_prices eod_price_sets settlement_forces " +
					"settlement_rules stocks accounts source_keys sources outbox trades " +
					"recon_statement recon_repairs recon_repaired_rows trades_by_message operator_acts " +
					"cursors") {
					_, e := tx.Exec("delete from " + table)
					err = errors.Join(err, e)
				}
				return err
			})
			must.OK(t, err)
		}
		empty()
		if loaded, err := load(t, db, text, 100); err != nil || !loaded {
			t.Fatalf("%t %v", loaded, err)
		}
		for lastTrade, want := range map[uint64]bool{100: true, 99: false} {
			if loaded, err := load(t, db, text, lastTrade); err != nil || loaded != want {
				t.Errorf("up to trade %d a second time: %t %v", lastTrade, loaded, err)
			}
		}
		other := strings.Replace(text, "Näme", "Name", 1)
		if loaded, err := load(t, db, other, 100); err != nil || loaded {
			t.Errorf("other rows up to the same trade: %t %v", loaded, err)
		}
		if got := keep(t, db); got != text {
			t.Errorf("loaded\n%s\nwant\n%s", got, text)
		}
		for _, line := range []string{`["ext-a\"<",2305843009213693953,7,"b/B","Sell",3,1,"Settled",` +
			`"2026-11-23",5,6,7,null,null]`, `[1,4,0,"price,side","x",4,7,"A","Buy",1,2,"Settled",` +
			`"2026-99-99",5,6,7,"ord-1",8]`, `["operator.acts",1]`, `["recon.repair",2]`,
			`[3,"T+3",9,5,6]`, forcedOutside} {
			if !strings.Contains(text, line+"\n") {
				t.Errorf("kept is\n%s\nwant %s", text, line)
			}
		}
		for _, not := range []string{"trd-4", "void-4", "projection", ",14]"} {
			if strings.Contains(text, not) {
				t.Errorf("%s is kept although the journal gives it", not)
			}
		}
		// A restore that was killed may load again, over what has come meanwhile.
		must.OK(t, db.Write(t.Context(), func(tx *store.Tx) (err error) {
			for _, sql := range []string{"delete from sources", "delete from source_keys",
				"delete from accounts", "delete from stocks", "delete from settlement_forces",
				"delete from settlement_rules",
				"delete from outbox",
				"update recon_statement set price = 77", "update cursors set value = 1"} {
				_, e := tx.Exec(sql)
				err = errors.Join(err, e)
			}
			return err
		}))
		if loaded, err := load(t, db, text, 100); err != nil || !loaded {
			t.Fatalf("again: %t %v", loaded, err)
		}
		if got := keep(t, db); got != strings.Replace(text, `["ext-b",7,"A","Buy",1,2,3,4]`,
			`["ext-b",7,"A","Buy",1,77,3,4]`, 1) {
			t.Errorf("loaded again\n%s\nwant\n%s", got, text)
		}
		empty()
		must.Get(load(t, db, text, 8))(t)
		if got := keep(t, db); strings.Contains(got, "[9,12]") || !strings.Contains(got, "[4,11]") ||
			strings.Contains(got, "T+3") || !strings.Contains(got, "T+1") {
			t.Errorf("the settlements by hand, and the rules, of later trades:\n%s", got)
		} else if strings.Contains(got, "[2,9,20,") || strings.Contains(got, "[1,9,0,") ||
			!strings.Contains(got, "[1,3,9,") || !strings.Contains(got, `"ext-b",2305`) ||
			!strings.Contains(got, forcedOutside) {
			t.Errorf("what is about later trades:\n%s", got)
		}
		// A backup of a build that kept fewer tables.
		empty()
		older, _, _ := strings.Cut(text, `{"table":"trades"`)
		older += fmt.Sprintf("{\"rows\":%d}\n", strings.Count(older, "\n["))
		if loaded, err := load(t, db, older, 100); err != nil || !loaded {
			t.Errorf("an older backup: %t %v", loaded, err)
		}
		if got := keep(t, db); !strings.Contains(got, "[9,12]") || strings.Contains(got, "ext-") {
			t.Errorf("of an older backup:\n%s", got)
		}
		empty()
		lines := strings.SplitAfter(text, "\n")
		for name, bad := range map[string]string{
			"cut":            text[:len(text)/2],
			"a line less":    strings.Join(append(lines[:3:3], lines[4:]...), ""),
			"no end":         strings.Join(lines[:len(lines)-2], ""),
			"behind the end": text + "{}\n",
			"another table":  strings.Replace(text, `"accounts"`, `"trades"`, 1),
			"another type":   strings.Replace(text, "false", `"x"`, 1),
			"null":           strings.Replace(text, "false", "null", 1),
			"empty":          "",
		} {
			if _, err := load(t, db, bad, 100); !errors.Is(err, store.ErrKept) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if got := keep(t, db); strings.Contains(got, "[") && strings.Contains(got, "[7,") {
			t.Errorf("a refused text has left\n%s", got)
		}
	})
}

// TestAClosingPriceComesWithItsSet: a set of marks that is there already gets none of the backup's,
// which would not be what its digest is of. Another set comes whole.
func TestAClosingPriceComesWithItsSet(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		day, sets := store.DateOf(2026, 11, 20), map[uint32][]store.Mark{
			1: {{Security: "A", Price: 1}, {Security: "C", Price: 3}},
			2: {{Security: "B", Price: 2}},
		}
		put := func(version uint32, marks []store.Mark) {
			t.Helper()
			must.OK(t, db.Write(t.Context(), func(tx *store.Tx) error {
				return tx.PutMarks(day, version, marks, marksNow)
			}))
		}
		for version, marks := range sets {
			put(version, marks)
		}
		text := keep(t, db)
		must.OK(t, db.Write(t.Context(), func(tx *store.Tx) error {
			_, prices := tx.Exec("delete from eod_prices")
			_, set := tx.Exec("delete from eod_price_sets")
			return errors.Join(prices, set)
		}))
		sets[1] = []store.Mark{{Security: "A", Price: 7}, {Security: "B", Price: 8}}
		put(1, sets[1])
		if loaded, err := load(t, db, text, 100); err != nil || !loaded {
			t.Fatal(loaded, err)
		}
		must.OK(t, db.Read(t.Context(), func(tx *store.Tx) error {
			for version, want := range sets {
				if got, _, err := tx.Marks(day, version); err != nil || !slices.Equal(got, want) {
					t.Errorf("version %d: %v %v, want %v", version, got, err, want)
				}
			}
			return nil
		}))
	})
}

// The last settlement by hand is one of the journal's trades: the projection settles up to it.
func TestLastForceIsOfTheJournal(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		for _, want := range []uint64{0, 4, 9} {
			err := db.Write(t.Context(), func(tx *store.Tx) error {
				if want > 0 {
					must.OK(t, tx.NoteForce(want, 1))
				}
				if got := must.Get(tx.LastForce())(t); got != want {
					t.Errorf("%d, want %d", got, want)
				}
				return errors.Join(tx.NoteForce(store.FirstExternal, 2), tx.NoteForce(store.FirstVoid, 3))
			})
			must.OK(t, err)
		}
	})
}
