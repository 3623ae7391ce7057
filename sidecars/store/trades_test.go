package store_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"posttrade/matcher"
	"posttrade/ring/must"
	"posttrade/sidecars/store"
	"posttrade/sidecars/store/storetest"
)

func TestTradesComeBackAsTheyWentIn(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		want := someTrades(1, 300)
		want[0].AccountID, want[1].Quantity, want[2].Price = math.MaxUint32, math.MaxInt64, math.MinInt64
		want[3].SettlementDate, want[4].SettlementDate = -719162, 2932896
		want[5].Security, want[6].OrderID, want[7].ID = `O'Neil "\`, "null", "other id"
		want[8].ExecutedAt, want[9].Sequence = -1, math.MaxInt64
		want[299].Seq, want[299].ID = math.MaxInt64, matcher.TradeID(math.MaxInt64)
		// On PostgreSQL this covers both ways to insert.
		if n := insert(t, db, want[:40]) + insert(t, db, want[40:]); n != 300 {
			t.Fatalf("%d inserted, want 300", n)
		}
		mustBe(t, allTrades(t, db), want)
		err := db.Read(t.Context(), func(tx *store.Tx) error {
			for _, w := range want {
				if got, found, err := tx.Trade(w.ID); err != nil || !found || got != w {
					t.Fatalf("trade %s: got %+v, %v, %v", w.ID, got, found, err)
				}
			}
			if _, found, err := tx.Trade("trd-999"); err != nil || found {
				t.Errorf("a trade that is not there: %v, %v", found, err)
			}
			n, err := tx.CountTrades()
			if n != 300 {
				t.Errorf("%d counted, want 300", n)
			}
			return err
		})
		must.OK(t, err)
	})
}

// TestInsertTradesKeepsWhatIsThere compares InsertTrades with a model: a row is added when neither
// its id nor its trade sequence exists.
func TestInsertTradesKeepsWhatIsThere(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		r := rand.New(rand.NewPCG(seed, 1))
		var model []store.Trade
		for round := range 60 {
			size := 1 + r.IntN(150) // below and above the size that PostgreSQL copies
			batch := make([]store.Trade, size)
			at := uint64(1 + r.IntN(4000))
			for i := range batch {
				switch seq := at + uint64(i); r.IntN(40) {
				case 0: // another row with a number nearby, in the batch or before it
					batch[i] = someTrades(at+uint64(r.IntN(size)), 1)[0]
				case 1: // an id that belongs to another number
					batch[i] = someTrades(seq, 1)[0]
					batch[i].ID = matcher.TradeID(at + uint64(r.IntN(size)))
				default:
					batch[i] = someTrades(seq, 1)[0]
				}
				batch[i].BookedAt += int64(round) // so that an overwrite would show
			}
			want := 0
			for _, row := range batch {
				if !slices.ContainsFunc(model, func(m store.Trade) bool {
					return m.ID == row.ID || m.Seq == row.Seq
				}) {
					model = append(model, row)
					want++
				}
			}
			if got := insert(t, db, batch); got != want {
				t.Fatalf("round %d, %d rows from %d: %d inserted, want %d", round, size, at, got, want)
			}
		}
		mustBe(t, allTrades(t, db), sorted(model))
	})
}

// TestConflictsThatOnlyTheInsertFinds has conflicts that a query of the range of trade sequences
// does not show, so that PostgreSQL's copy fails and the batch is merged.
func TestConflictsThatOnlyTheInsertFinds(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		there := someTrades(1000, 1)
		insert(t, db, there)
		elsewhere, twice, doubled := someTrades(1, 100), someTrades(101, 100), someTrades(201, 100)
		elsewhere[99].ID = there[0].ID
		twice[99].ID = twice[0].ID
		doubled[99].Seq = doubled[0].Seq
		var want []store.Trade
		for _, batch := range [][]store.Trade{elsewhere, twice, doubled} {
			if n := insert(t, db, batch); n != 99 {
				t.Errorf("%d inserted, want 99", n)
			}
			want = append(want, batch[:99]...)
		}
		mustBe(t, allTrades(t, db), append(want, there...))
	})
}

// TestConflictsAreSkippedOneByOne has one conflict of each kind in a batch that PostgreSQL copies.
func TestConflictsAreSkippedOneByOne(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		there := someTrades(1000, 3)
		insert(t, db, there)
		batch := someTrades(1, 200)
		// The id exists under another number, outside of the batch's range.
		batch[10].ID = there[0].ID
		batch[20].ID = batch[19].ID     // the id comes twice in the batch
		batch[30].Seq = batch[29].Seq   // the number comes twice in the batch
		batch[40] = there[1]            // the whole row exists
		batch[50].Seq = there[2].Seq    // the number exists under another id
		batch[199].ID = "trd-something" // nothing wrong: an id is any text
		if n := insert(t, db, batch); n != 195 {
			t.Errorf("%d inserted, want 195", n)
		}
		if n := insert(t, db, batch); n != 0 {
			t.Errorf("%d inserted the second time, want 0", n)
		}
		want := slices.Clone(batch)
		for _, i := range []int{50, 40, 30, 20, 10} {
			want = slices.Delete(want, i, i+1)
		}
		mustBe(t, allTrades(t, db), append(want, there...))
	})
}

func TestNothingOfABatchWithoutARowIsWritten(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		batch := someTrades(1, 100)
		batch[99].ID = ""
		err := db.Write(t.Context(), func(tx *store.Tx) error {
			if n, err := tx.InsertTrades(batch); err == nil || n != 0 {
				t.Errorf("%d inserted, %v", n, err)
			}
			n, err := tx.InsertTrades(nil)
			if n != 0 || err != nil {
				t.Errorf("no rows: %d inserted, %v", n, err)
			}
			return err
		})
		must.OK(t, err)
		mustBe(t, allTrades(t, db), nil)
	})
}

// TestFilterSelectsAsAModelDoes tries random filters and compares all trades that they select.
func TestFilterSelectsAsAModelDoes(t *testing.T) {
	trades, filters := 3000, 80
	if testing.Short() {
		trades, filters = 800, 50
	}
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		rows := someTrades(1, trades)
		insert(t, db, rows)
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		r := rand.New(rand.NewPCG(seed, 2))
		for range filters {
			f := randomFilter(r, rows)
			var want []store.Trade
			for _, row := range rows {
				if selects(f, row) && (f.Limit == 0 || len(want) < f.Limit) {
					want = append(want, row)
				}
			}
			t.Logf("%+v: %d", f, len(want))
			mustBe(t, selected(t, db, f), want)
		}
		mustBe(t, selected(t, db, store.TradeFilter{Accounts: []uint32{}}), nil)
		mustBe(t, selected(t, db, store.TradeFilter{AfterSeq: math.MaxUint64}), nil)
		mustBe(t, selected(t, db, store.TradeFilter{AfterSeq: math.MaxInt64 - 1}), nil)
	})
}

func randomFilter(r *rand.Rand, rows []store.Trade) (f store.TradeFilter) {
	like := rows[r.IntN(len(rows))]
	if n := r.IntN(4); n > 0 && r.IntN(2) == 0 {
		for range n {
			f.Accounts = append(f.Accounts, uint32(r.IntN(9)))
		}
	}
	if r.IntN(2) == 0 {
		f.Security = like.Security
	}
	if r.IntN(2) == 0 {
		f.Status = &like.Status
	}
	if r.IntN(3) == 0 {
		f.SettlementDate = &like.SettlementDate
	}
	if r.IntN(3) == 0 {
		f.FromMillis = like.ExecutedAt
	}
	if r.IntN(3) == 0 {
		f.ToMillis = like.ExecutedAt + int64(r.IntN(1000))
	}
	if r.IntN(2) == 0 {
		f.AfterSeq = uint64(r.IntN(len(rows)))
	}
	if r.IntN(2) == 0 {
		f.Limit = 1 + r.IntN(100)
	}
	return f
}

func selects(f store.TradeFilter, row store.Trade) bool {
	return (f.Accounts == nil || slices.Contains(f.Accounts, row.AccountID)) &&
		(f.Security == "" || f.Security == row.Security) &&
		(f.Status == nil || *f.Status == row.Status) &&
		(f.SettlementDate == nil || *f.SettlementDate == row.SettlementDate) &&
		(f.FromMillis == 0 || row.ExecutedAt >= f.FromMillis) &&
		(f.ToMillis == 0 || row.ExecutedAt < f.ToMillis) &&
		row.Seq > f.AfterSeq
}

func TestTradesBySeqIsInclusive(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		rows := someTrades(10, 50)
		insert(t, db, rows)
		tests := []struct {
			lo, hi uint64
			want   []store.Trade
		}{
			{10, 59, rows}, {0, math.MaxUint64, rows}, {20, 20, rows[10:11]}, {12, 14, rows[2:5]},
			{60, 70, nil}, {1, 9, nil}, {20, 19, nil}, {math.MaxUint64, math.MaxUint64, nil},
		}
		for _, tt := range tests {
			var got []store.Trade
			err := db.Read(t.Context(), func(tx *store.Tx) error {
				return tx.TradesBySeq(tt.lo, tt.hi, func(row *store.Trade) error {
					got = append(got, *row)
					return nil
				})
			})
			must.OK(t, err)
			mustBe(t, got, tt.want)
		}
	})
}

func TestACursorMovesWithItsTransaction(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		for _, value := range []uint64{7, 3, math.MaxInt64} { // it may also go back
			err := db.Write(t.Context(), func(tx *store.Tx) error {
				return tx.SetCursor("projection", value)
			})
			must.OK(t, err)
			if got := cursor(t, db, "projection"); got != value {
				t.Errorf("the cursor is %d, want %d", got, value)
			}
		}
		if got := cursor(t, db, "another"); got != 0 {
			t.Errorf("a cursor that never moved is %d", got)
		}
		err := db.Write(t.Context(), func(tx *store.Tx) error {
			return tx.SetCursor("projection", 1<<63)
		})
		if err == nil || cursor(t, db, "projection") != math.MaxInt64 {
			t.Errorf("a value that no column can hold: %v", err)
		}
	})
}

func cursor(t testing.TB, db *store.DB, name string) (value uint64) {
	t.Helper()
	err := db.Read(t.Context(), func(tx *store.Tx) (err error) {
		value, err = tx.Cursor(name)
		return err
	})
	must.OK(t, err)
	return value
}

// TestAnEditedRowCanStillBeRead stores values that an edit by hand can write past the checks.
func TestAnEditedRowCanStillBeRead(t *testing.T) {
	db := storetest.Open(t, store.SQLite)
	insert(t, db, someTrades(1, 3))
	storetest.Edit(t, db, "update trades set settlement_date = '2026-02-31' where id = 'trd-2'")
	got := allTrades(t, db)
	if len(got) != 3 || got[1].SettlementDate == someTrades(2, 1)[0].SettlementDate {
		t.Errorf("got %+v", got)
	}
}

// TestInsertTradesDoesNotAllocatePerRow counts the allocations of a batch of a thousand rows.
func TestInsertTradesDoesNotAllocatePerRow(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		const rows, runs = 1000, 5
		batches := make([][]store.Trade, runs+2) // AllocsPerRun runs once more, to warm up
		for i := range batches {
			batches[i] = someTrades(uint64(1+i*rows), rows)
		}
		insert(t, db, batches[0])
		at := 0
		n := testing.AllocsPerRun(runs, func() {
			at++
			insert(t, db, batches[at])
		})
		if n > rows/4 {
			t.Errorf("%v allocations for %d rows", n, rows)
		}
	})
}
