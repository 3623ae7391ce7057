package store_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"posttrade/ring/must"
	"posttrade/sidecars/store"
	"posttrade/sidecars/store/storetest"
)

// errMine is an error of the caller's own.
var errMine = errors.New("mine")

// write runs a write that must succeed.
func write(t testing.TB, db *store.DB, fn func(*store.Tx) error) {
	t.Helper()
	must.OK(t, db.Write(t.Context(), fn))
}

// query calls each for the rows of a query that must succeed.
func query(t testing.TB, db *store.DB, sql string, each func(*store.Row), args ...any) {
	t.Helper()
	err := db.Read(t.Context(), func(tx *store.Tx) error {
		return tx.Query(sql, func(r *store.Row) error { each(r); return nil }, args...)
	})
	must.OK(t, err)
}

// number returns the one number that a query selects.
func number(t testing.TB, db *store.DB, sql string, args ...any) (n int64) {
	t.Helper()
	query(t, db, sql, func(r *store.Row) { n = r.Int64(0) }, args...)
	return n
}

// kinds makes a table with a column of every kind.
func kinds(t testing.TB, db *store.DB) {
	t.Helper()
	types := map[store.Dialect]string{
		store.SQLite:   "n integer, s text, b integer, x blob, d text",
		store.Postgres: "n bigint, s text, b boolean, x bytea, d date",
	}
	write(t, db, func(tx *store.Tx) error {
		_, err := tx.Exec("create table kinds (k bigint primary key not null, " +
			types[tx.Dialect()] + ")")
		return err
	})
}

func TestEveryKindOfArgumentComesBack(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		kinds(t, db)
		day := store.DateOf(2026, time.November, 23)
		write(t, db, func(tx *store.Tx) error {
			insert := "insert into kinds (k, n, s, b, x, d) values ($1, $2, $3, $4, $5, $6)"
			for _, args := range [][]any{
				{1, int64(math.MinInt64), "O'Neil $1 \"ü\"", true, []byte{0, 1, 255}, day},
				{uint32(math.MaxUint32), uint64(math.MaxInt64), "", false, []byte{}, store.Date(-719162)},
				{int64(3), nil, nil, nil, nil, nil},
				{uint64(4), nil, nil, nil, []byte(nil), nil},
			} {
				if n, err := tx.Exec(insert, args...); err != nil || n != 1 {
					return fmt.Errorf("%d rows: %w", n, err)
				}
			}
			return nil
		})
		var got []string
		query(t, db, "select k, n, s, b, x, d from kinds order by k", func(r *store.Row) {
			nulls := 0
			for i := range 6 {
				if r.Null(i) {
					nulls++
				}
			}
			day, _ := r.Day(5)
			got = append(got, fmt.Sprintf("%d %d %q %v %v %v %d", r.Int64(0), r.Int64(1),
				r.Text(2), r.Bool(3), r.Bytes(4), day, nulls))
		})
		want := []string{
			`1 -9223372036854775808 "O'Neil $1 \"ü\"" true [0 1 255] 2026-11-23 0`,
			`3 0 "" false [] 1970-01-01 5`,
			`4 0 "" false [] 1970-01-01 5`,
			`4294967295 9223372036854775807 "" false [] 0001-01-01 0`,
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		// A sum of bigint, a count, a literal and an alias in another order are read like columns.
		query(t, db, "select sum(k), count(*), max(s), 'lit' from kinds where k < $1",
			func(r *store.Row) {
				if r.Int64(0) != 8 || r.Int64(1) != 3 || r.Text(3) != "lit" {
					t.Errorf("got %d %d %q", r.Int64(0), r.Int64(1), r.Text(3))
				}
				if day, ok := r.Day(3); ok {
					t.Errorf("the text lit is the date %s", day)
				}
			}, 5)
	})
}

func TestPlaceholdersGoByTheirNumbers(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		kinds(t, db)
		write(t, db, func(tx *store.Tx) error {
			_, err := tx.Exec("insert into kinds (n, k, s) values ($2, $1, $3)", 1, 20, "a $9 text")
			return err
		})
		n := number(t, db, "select n from kinds where k = $1 and n = $2 and s = $3 and k = $1", 1,
			20, "a $9 text")
		if n != 20 {
			t.Errorf("got %d, want 20", n)
		}
		write(t, db, func(tx *store.Tx) error {
			for want, sql := range []string{"update kinds set n = 0 where k = 2",
				"update kinds set n = 0 where k = 1"} {
				if n, err := tx.Exec(sql); err != nil || n != int64(want) {
					t.Errorf("%s: %d rows, %v", sql, n, err)
				}
			}
			return nil
		})
	})
}

func TestAStatementThatCannotRunIsAnError(t *testing.T) {
	tests := []struct {
		name, sql string
		args      []any
	}{
		{"bad SQL", "selekt 1", nil},
		{"unknown table", "select 1 from nowhere", nil},
		{"too few arguments", "select k from kinds where k = $1 and n = $2", []any{1}},
		{"too many arguments", "select k from kinds where k = $1", []any{1, 2}},
		{"argument above int64", "select k from kinds where k = $1", []any{uint64(1 << 63)}},
		{"argument of another type", "select k from kinds where k = $1", []any{1.5}},
		{"another form of placeholder", "select k from kinds where k = ?", []any{1}},
	}
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		kinds(t, db)
		for _, tt := range tests {
			err := db.Read(t.Context(), func(tx *store.Tx) error {
				return tx.Query(tt.sql, func(*store.Row) error { return nil }, tt.args...)
			})
			again := db.Write(t.Context(), func(tx *store.Tx) error {
				_, err := tx.Exec(tt.sql, tt.args...)
				return err
			})
			if err == nil || again == nil || errors.Is(err, store.ErrUnavailable) ||
				errors.Is(again, store.ErrUnavailable) {
				t.Errorf("%s: got %v and %v", tt.name, err, again)
			}
		}
		if ready, detail := db.State(); !ready {
			t.Errorf("not ready after mistakes of callers: %s", detail)
		}
	})
}

func TestAColumnOfAnotherKindIsAnError(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		kinds(t, db)
		write(t, db, func(tx *store.Tx) error {
			_, err := tx.Exec("insert into kinds (k, s, x) values (7, 'text', $1)", []byte("x"))
			return err
		})
		for name, read := range map[string]func(*store.Row){
			"text as number": func(r *store.Row) { r.Int64(1) }, "number as text": func(r *store.Row) {
				r.Text(0)
			},
			"text as boolean": func(r *store.Row) { r.Bool(1) },
			"bytes as text":   func(r *store.Row) { r.Text(2) }, "text as bytes": func(r *store.Row) {
				r.Bytes(1)
			},
			"number as boolean": func(r *store.Row) { r.Bool(0) }, "no such column": func(r *store.Row) {
				r.Int64(3)
			},
			"negative column": func(r *store.Row) { r.Null(-1); r.Text(-1) },
		} {
			rows := 0
			err := db.Read(t.Context(), func(tx *store.Tx) error {
				return tx.Query("select k, s, x from kinds", func(r *store.Row) error {
					rows++
					read(r)
					return nil
				})
			})
			if err == nil || !strings.Contains(err.Error(), "column") || rows != 1 {
				t.Errorf("%s: %d rows, %v", name, rows, err)
			}
		}
	})
}

func TestAFailedStatementDoomsItsTransaction(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		insert(t, db, someTrades(1, 1))
		var first error
		err := db.Write(t.Context(), func(tx *store.Tx) error {
			if err := tx.SetCursor("c", 1); err != nil {
				return err
			}
			_, first = tx.Exec("insert into trades (id) values ('trd-1')")
			_, second := tx.InsertTrades(someTrades(2, 1))
			third := tx.Query("select 1", func(*store.Row) error { return nil })
			if first == nil || !errors.Is(second, first) || !errors.Is(third, first) {
				t.Errorf("got %v, then %v and %v", first, second, third)
			}
			return nil // the function ignores the error
		})
		if !errors.Is(err, first) || errors.Is(err, store.ErrUnavailable) {
			t.Errorf("write: got %v, want %v", err, first)
		}
		if c := cursor(t, db, "c"); c != 0 {
			t.Errorf("the cursor moved to %d", c)
		}
		mustBe(t, allTrades(t, db), someTrades(1, 1))
	})
}

func TestTheErrorOfTheFunctionRollsBack(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		if err := db.Write(t.Context(), func(tx *store.Tx) error {
			if _, err := tx.InsertTrades(someTrades(1, 100)); err != nil {
				return err
			}
			return errMine
		}); err != errMine {
			t.Errorf("got %v", err)
		}
		func() {
			defer func() {
				if p := recover(); p != "a bug" {
					t.Errorf("recovered %v", p)
				}
			}()
			err := db.Write(t.Context(), func(tx *store.Tx) error {
				if _, err := tx.InsertTrades(someTrades(1, 100)); err != nil {
					return err
				}
				return tx.Query("select id from trades", func(*store.Row) error { panic("a bug") })
			})
			t.Errorf("a panic became %v", err)
		}()
		mustBe(t, allTrades(t, db), nil)
		insert(t, db, someTrades(1, 100))
		mustBe(t, allTrades(t, db), someTrades(1, 100))
	})
}

func TestTheErrorOfEachEndsTheQuery(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		insert(t, db, someTrades(1, 3000))
		write(t, db, func(tx *store.Tx) error {
			rows := 0
			err := tx.Query("select id from trades order by trade_seq", func(*store.Row) error {
				if rows++; rows == 2 {
					return errMine
				}
				return nil
			})
			if err != errMine || rows != 2 {
				t.Errorf("got %v after %d rows", err, rows)
			}
			n, err := tx.CountTrades() // the transaction continues
			if n != 3000 {
				t.Errorf("%d counted", n)
			}
			return err
		})
	})
}

func TestAStatementWhileRowsAreWalkedIsAnError(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		insert(t, db, someTrades(1, 2))
		err := db.Write(t.Context(), func(tx *store.Tx) error {
			return tx.Query("select id from trades", func(r *store.Row) error {
				_, err := tx.Exec("delete from trades where id = $1", r.Text(0))
				return err
			})
		})
		if err == nil || !strings.Contains(err.Error(), "being walked") {
			t.Errorf("got %v", err)
		}
		mustBe(t, allTrades(t, db), someTrades(1, 2))
	})
}

func TestReadIsOneSnapshotAndCannotWrite(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		insert(t, db, someTrades(1, 10))
		err := db.Read(t.Context(), func(tx *store.Tx) error {
			before, err := tx.CountTrades()
			if err != nil {
				return err
			}
			insert(t, db, someTrades(11, 90)) // commits while the snapshot is open
			storetest.Edit(t, db, "update trades set price = 1")
			var rows []store.Trade
			err = tx.Trades(store.TradeFilter{}, func(row *store.Trade) error {
				rows = append(rows, *row)
				return nil
			})
			if before != 10 {
				t.Errorf("%d before", before)
			}
			mustBe(t, rows, someTrades(1, 10))
			return err
		})
		must.OK(t, err)
		if n := len(allTrades(t, db)); n != 100 {
			t.Errorf("%d afterwards", n)
		}
		err = db.Read(t.Context(), func(tx *store.Tx) error { return tx.SetCursor("c", 1) })
		if err == nil || cursor(t, db, "c") != 0 {
			t.Errorf("a read that writes: %v", err)
		}
	})
}

// TestConcurrentWritersLeaveNoGap has sixteen writers draw numbers from a counter row in the
// transaction that uses them. Some transactions roll back.
func TestConcurrentWritersLeaveNoGap(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		const writers, each = 16, 25
		write(t, db, func(tx *store.Tx) error { return tx.SetCursor("counter", 0) })
		var all sync.WaitGroup
		for w := range writers {
			all.Go(func() {
				for i := range each {
					err := db.Write(t.Context(), func(tx *store.Tx) error {
						if _, err := tx.Exec("update cursors set value = value + 1 where name = 'counter'"); err !=
							nil {
							return err
						}
						next, err := tx.Cursor("counter")
						if err != nil {
							return err
						}
						if n, err := tx.InsertTrades(someTrades(next, 1)); err != nil || n != 1 {
							return fmt.Errorf("number %d: %d inserted: %w", next, n, err)
						}
						if (w+i)%7 == 0 {
							return errMine // as if its cause had gone away: the number must not be missed
						}
						return nil
					})
					if err != nil && err != errMine {
						t.Errorf("writer %d: %v", w, err)
					}
				}
			})
		}
		all.Wait()
		n := int(cursor(t, db, "counter"))
		if n < writers*each/2 || n > writers*each {
			t.Errorf("%d numbers were drawn", n)
		}
		mustBe(t, allTrades(t, db), someTrades(1, n))
	})
}

func TestTheEndOfTheContextEndsAStatement(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		endless :=
			"with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n"
		type call = func(context.Context, func(*store.Tx) error) error
		for name, run := range map[string]call{"read": db.Read, "write": db.Write} {
			ctx, cancel := context.WithCancel(t.Context())
			err := run(ctx, func(tx *store.Tx) error {
				if err := tx.Query("select 1", func(*store.Row) error { return nil }); err != nil {
					return err
				}
				time.AfterFunc(20*time.Millisecond, cancel)
				return tx.Query(endless, func(*store.Row) error { return nil })
			})
			if !errors.Is(err, context.Canceled) || errors.Is(err, store.ErrUnavailable) {
				t.Errorf("%s: got %v", name, err)
			}
			if err := run(ctx, func(*store.Tx) error {
				t.Error("ran")
				return nil
			}); !errors.Is(err, context.Canceled) {
				t.Errorf("%s with an ended context: %v", name, err)
			}
		}
		if ready, detail := db.State(); !ready {
			t.Errorf("not ready because callers went away: %s", detail)
		}
		insert(t, db, someTrades(1, 1))
	})
}

func TestAContextThatEndsBeforeTheCommitRollsBack(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx, cancel := context.WithCancel(t.Context())
		err := db.Write(ctx, func(tx *store.Tx) error {
			defer cancel()
			return tx.SetCursor("c", 1)
		})
		if !errors.Is(err, context.Canceled) || cursor(t, db, "c") != 0 {
			t.Errorf("got %v, cursor %d", err, cursor(t, db, "c"))
		}
	})
}
