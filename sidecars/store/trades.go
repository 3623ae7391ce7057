package store

import (
	"fmt"
	"math"
	"strings"

	"posttrade/matcher"
)

// TradeFilter selects trades. Its zero value selects all of them.
//
// The conditions are joined by "and".
type TradeFilter struct {
	Accounts             []uint32 // nil = all; empty, not nil = none
	Security             string   // "" = all
	Status               *Status
	SettlementDate       *Date
	FromMillis, ToMillis int64  // executed_at in [From, To); 0 = open
	AfterSeq             uint64 // trade_seq above it
	BeforeSeq            uint64 // trade_seq below it; 0 = open
	Newest               bool   // the newest first, as Trades says
	Behind               uint64 // of the newest first: those behind this trade_seq; 0 = open
	Limit                int    // 0 = no limit
}

// GoOn narrows the filter to what comes behind a trade sequence in its order.
func (f *TradeFilter) GoOn(seq uint64) {
	if f.Newest {
		f.Behind = seq
	} else {
		f.AfterSeq = seq
	}
}

// tradeColumns are the columns of a Trade, in the order that all code here uses.
const tradeColumns = "id, trade_seq, account_id, security, side, quantity, price, status, " +
	"settlement_date, " +
	"executed_at, booked_at, updated_at, order_id, sequence"

const selectTrades = "select " + tradeColumns + " from trades"

// InsertTrades adds rows and returns how many it added. A row changes nothing when its id or trade
// sequence exists already, in the table or earlier in rows. When a row is invalid (no id, a number
// no column can hold), nothing is added. Cost: one statement per row on SQLite, one COPY on
// PostgreSQL.
//
// Order and gaps of the sequences do not matter. A database error dooms the transaction, an invalid
// row does not. rows is not kept after the return.
func (t *Tx) InsertTrades(rows []Trade) (inserted int, err error) {
	if err := t.insertable(rows); err != nil || len(rows) == 0 {
		return 0, err
	}
	inserted, err = t.conn.insertTrades(t.ctx, rows)
	return inserted, t.failInsert(rows, err)
}

// InsertSome is InsertTrades of the first rows: all of them, or fewer when another caller of this
// DB waits for SQLite's write lock meanwhile. The caller then ends the transaction, so that the
// other one has its turn. done is the number of rows that were looked at, at least one when there
// is any; inserted is how many of them were new.
func (t *Tx) InsertSome(rows []Trade) (done, inserted int, err error) {
	if err := t.insertable(rows); err != nil || len(rows) == 0 {
		return 0, 0, err
	}
	done, inserted, err = t.conn.insertSome(t.ctx, rows)
	return done, inserted, t.failInsert(rows, err)
}

// insertable refuses rows that no table takes, and a transaction that cannot go on.
func (t *Tx) insertable(rows []Trade) error {
	if err := t.usable("insert trades"); err != nil {
		return err
	}
	for i := range rows {
		if err := rows[i].check(); err != nil {
			return err
		}
	}
	return nil
}

func (t *Tx) failInsert(rows []Trade, err error) error {
	return t.fail("insert trades", "trade_seq="+matcher.TradeID(rows[0].Seq), err)
}

// Trade returns the trade with this id; false when there is none.
func (t *Tx) Trade(id string) (trade Trade, found bool, err error) {
	err = t.walk(selectTrades+" where id = $1", func(row *Trade) error {
		trade, found = *row, true
		return nil
	}, id)
	return trade, found, err
}

// TradesBySeq calls each for the trades with lo <= trade_seq <= hi, ascending. The Trade is reused
// for the next call; its strings may be kept.
//
// Bounds above MaxInt64 are allowed and select nothing there: no row can have such a number.
func (t *Tx) TradesBySeq(lo, hi uint64, each func(*Trade) error) error {
	if lo > hi || lo > math.MaxInt64 {
		return nil
	}
	return t.walk(selectTrades+" where trade_seq between $1 and $2 order by trade_seq", each,
		lo, min(hi, math.MaxInt64))
}

// Trades calls each for the trades that f selects, by ascending trade_seq. The newest first, they
// are by descending trade_seq: those of the journal, and then the bookings from outside, so that
// what the journal has last is first. The Trade is reused for the next call; its strings may be
// kept.
//
// A period with both ends costs a look into the index by time, and then a walk over the trade
// sequences between the first and the last trade of the period. A period with one open end is a
// walk by trade_seq with a condition. An error of each ends it and is returned as it is.
func (t *Tx) Trades(f TradeFilter, each func(*Trade) error) error {
	if f.Accounts != nil && len(f.Accounts) == 0 || f.AfterSeq >= math.MaxInt64 {
		return nil
	}
	if !f.Newest && !f.period() {
		return t.trades(f, each)
	}
	// The journal's trades of a period lie close together, and so do bookings from outside; between
	// the two lie all later trades of the journal.
	limit := f.Limit
	for _, band := range [][2]uint64{{0, FirstExternal - 1}, {FirstExternal, math.MaxInt64 - 1}} {
		part, lo, hi := f, band[0], band[1]
		if f.Behind > hi {
			continue
		}
		if f.Behind > 0 && f.Behind >= lo {
			hi = f.Behind - 1
		}
		found, err := t.narrow(&part, lo, hi)
		if err != nil {
			return err
		}
		if part.Limit = limit; !found {
			continue
		}
		if err := t.trades(part, func(row *Trade) error { limit--; return each(row) }); err != nil {
			return err
		}
		if f.Limit > 0 && limit == 0 {
			return nil
		}
	}
	return nil
}

// unsorted is executed_at in a condition that no index answers: pages are read in the order of
// trade_seq, and a plan by time would sort what is left of the period for each of them.
const unsorted = "executed_at + 0"

// periodSQL finds where the trades of a period lie. The index by time answers it alone; one by
// trade_seq would walk to the period.
func (d Dialect) periodSQL() string {
	from := "trades"
	if d == SQLite {
		from += " indexed by trades_by_time" // without statistics it reads the whole table
	}
	return "select min(trade_seq + 0), max(trade_seq + 0) from " + from +
		" where executed_at >= $1 and executed_at < $2 and trade_seq + 0 between $3 and $4"
}

// period reports a filter with both ends of a period.
func (f *TradeFilter) period() bool { return f.FromMillis != 0 && f.ToMillis != 0 }

// narrow sets AfterSeq and BeforeSeq round the trades of f's period with lo <= trade_seq <= hi.
// found: there are some, in what f has left. Without both ends of a period there may be none.
func (t *Tx) narrow(f *TradeFilter, lo, hi uint64) (found bool, err error) {
	lo = max(lo, f.AfterSeq+1)
	if f.BeforeSeq != 0 {
		hi = min(hi, f.BeforeSeq-1)
	}
	if lo > hi {
		return false, nil
	}
	if !f.period() {
		f.AfterSeq, f.BeforeSeq = lo-1, hi+1
		return true, nil
	}
	err = t.Query(t.dialect.periodSQL(), func(r *Row) error {
		if found = !r.Null(0); found {
			f.AfterSeq, f.BeforeSeq = uint64(r.Int64(0))-1, uint64(r.Int64(1))+1
		}
		return nil
	}, f.FromMillis, f.ToMillis, lo, hi)
	return found, err
}

// trades is Trades by one statement.
func (t *Tx) trades(f TradeFilter, each func(*Trade) error) error {
	var sql strings.Builder
	var args []any
	sql.WriteString(selectTrades)
	// There is one text per set of conditions, so that a statement cache stays small: numbers are
	// arguments, and so is a list of accounts.
	where := func(condition string, arg any) {
		args = append(args, arg)
		word := " and "
		if len(args) == 1 {
			word = " where "
		}
		fmt.Fprintf(&sql, "%s%s", word, strings.Replace(condition, "$", fmt.Sprintf("$%d", len(args)), 1))
	}
	switch {
	case len(f.Accounts) == 1:
		where("account_id = $", f.Accounts[0])
	case f.Accounts != nil:
		where("account_id "+t.anyOf("$"), numbers(f.Accounts))
	}
	if f.Security != "" {
		where("security = $", f.Security)
	}
	if f.Status != nil {
		where("status = $", f.Status.String())
	}
	if f.SettlementDate != nil {
		where("settlement_date = $", *f.SettlementDate)
	}
	if f.FromMillis != 0 {
		where(unsorted+" >= $", f.FromMillis)
	}
	if f.ToMillis != 0 {
		where(unsorted+" < $", f.ToMillis)
	}
	where("trade_seq > $", f.AfterSeq)
	if f.BeforeSeq != 0 {
		where("trade_seq < $", min(f.BeforeSeq, math.MaxInt64))
	}
	sql.WriteString(" order by trade_seq")
	if f.Newest {
		sql.WriteString(" desc")
	}
	if f.Limit > 0 {
		args = append(args, f.Limit)
		fmt.Fprintf(&sql, " limit $%d", len(args))
	}
	return t.walk(sql.String(), each, args...)
}

// anyOf is the condition that a column has one of the numbers in a parameter.
func (t *Tx) anyOf(parameter string) string {
	if t.dialect == Postgres {
		return "= any(" + parameter + ")"
	}
	return "in (select value from json_each(" + parameter + "))"
}

// CountTrades returns how many trades there are. It reads the whole of an index.
//
// Rows of every trade sequence count, not only those of fills.
func (t *Tx) CountTrades() (n int64, err error) {
	err = t.Query("select count(*) from trades", func(r *Row) error { n = r.Int64(0); return nil })
	return n, err
}

// walk reads trades. There are few securities and they repeat, so each string is kept once.
//
// sql selects tradeColumns. It allocates the id and the order id of each row, and little else.
func (t *Tx) walk(sql string, each func(*Trade) error, args ...any) error {
	var trade Trade
	tickers := make(map[string]string)
	return t.Query(sql, func(r *Row) error {
		if err := r.trade(&trade, tickers); err != nil {
			return err
		}
		return each(&trade)
	}, args...)
}

// trade reads the columns of tradeColumns.
//
// Any side but Sell reads as Buy and any status but Settled as Processing: the checks of the table
// keep other words out. A settlement date that is none does not end the walk.
func (r *Row) trade(trade *Trade, tickers map[string]string) error {
	trade.ID = r.Text(0)
	trade.Seq = uint64(r.Int64(1))
	trade.AccountID = uint32(r.Int64(2))
	trade.Security = r.Word(3, tickers)
	trade.Side = 0
	if r.is(4, "Sell") {
		trade.Side = 1
	}
	trade.Quantity, trade.Price = r.Int64(5), r.Int64(6)
	trade.Status = Processing
	if r.is(7, "Settled") {
		trade.Status = Settled
	}
	date, ok := r.Day(8)
	if !ok {
		date = NoDate
	}
	trade.SettlementDate = date
	trade.ExecutedAt, trade.BookedAt, trade.UpdatedAt = r.Int64(9), r.Int64(10), r.Int64(11)
	trade.OrderID = r.Text(12)
	trade.Sequence = uint64(r.Int64(13))
	return r.err
}

// is compares a text column with word, without copying it.
func (r *Row) is(i int, word string) bool {
	b, err := r.cells.scratch(i)
	r.note(i, "text", err)
	return string(b) == word
}

// numbers is an argument that only this file uses: a list of whole numbers.
type numbers []uint32
