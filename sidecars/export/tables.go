package export

import (
	"encoding/binary"
	"io"

	"posttrade/blotter"
	"posttrade/matcher"
	"posttrade/sidecars/store"
)

// decimal is a number of millionths as DECIMAL(19,6), which holds every int64: nine bytes of two's
// complement, the highest first.
type decimal [9]byte

func decimalOf(millionths int64) (d decimal) {
	d[0] = byte(millionths >> 63)
	binary.BigEndian.PutUint64(d[1:], uint64(millionths))
	return d
}

// sideOf is the word of a side.
func sideOf(s matcher.Side) string {
	if s == matcher.Sell {
		return "Sell"
	}
	return "Buy"
}

// tradeRow is a trade in Parquet.
//
// A pointer is an optional column. Pointing into the row itself costs no allocation a value.
type tradeRow struct {
	ID             string  `parquet:"id"`
	TradeSeq       *int64  `parquet:"tradeSeq"`
	AccountID      int64   `parquet:"accountId"`
	Security       string  `parquet:"security,dict"`
	Side           string  `parquet:"side,dict"`
	Quantity       int64   `parquet:"quantity"`
	Price          decimal `parquet:"price,decimal(6:19)"`
	Status         string  `parquet:"status,dict"`
	SettlementDate *int32  `parquet:"settlementDate,date"`
	Timestamp      int64   `parquet:"timestamp,timestamp(millisecond)"`
	OrderID        string  `parquet:"orderId,optional"`
	UpdatedAt      int64   `parquet:"updatedAt,timestamp(millisecond)"`

	seq int64 // what TradeSeq and SettlementDate point to
	day int32
}

// Trades begins a table of trades.
//
// tradeSeq is empty for a booking from outside, whose number is of this database only;
// settlementDate is empty when the column was edited to hold none.
func Trades(f Format, to io.Writer) *Writer[store.Trade] {
	return open(f, to, table[store.Trade, tradeRow]{
		header: "id,tradeSeq,accountId,security,side,quantity,price,status,settlementDate,timestamp," +
			"orderId,updatedAt\n",
		line: func(c *cells, t *store.Trade) {
			c.words(t.ID)
			if t.External() {
				c.null()
			} else {
				c.number(int64(t.Seq))
			}
			c.number(int64(t.AccountID))
			c.words(t.Security)
			c.words(sideOf(t.Side))
			c.number(t.Quantity)
			c.decimal(t.Price)
			c.words(t.Status.String())
			if t.SettlementDate == store.NoDate {
				c.null()
			} else {
				c.date(t.SettlementDate)
			}
			c.moment(t.ExecutedAt)
			c.words(t.OrderID)
			c.moment(t.UpdatedAt)
		},
		parquet: func(p *tradeRow, t *store.Trade) {
			*p = tradeRow{ID: t.ID, AccountID: int64(t.AccountID), Security: t.Security,
				Side: sideOf(t.Side), Quantity: t.Quantity, Price: decimalOf(t.Price),
				Status: t.Status.String(), Timestamp: t.ExecutedAt, OrderID: t.OrderID, UpdatedAt: t.UpdatedAt,
				seq: int64(t.Seq), day: int32(t.SettlementDate)}
			if !t.External() {
				p.TradeSeq = &p.seq
			}
			if t.SettlementDate != store.NoDate {
				p.SettlementDate = &p.day
			}
		},
	})
}

// fillRow is an entry of the blotter in Parquet.
type fillRow struct {
	ID             string  `parquet:"id"`
	TradeSeq       int64   `parquet:"tradeSeq"`
	AccountID      int64   `parquet:"accountId"`
	Security       string  `parquet:"security,dict"`
	Side           string  `parquet:"side,dict"`
	Quantity       int64   `parquet:"quantity"`
	Price          decimal `parquet:"price,decimal(6:19)"`
	ExecTimeMillis int64   `parquet:"execTimeMillis"`
	OrderID        string  `parquet:"orderId,optional"`
	Sequence       int64   `parquet:"sequence"`
}

// orderID is the id of a fill's order, "" for a trade without one.
func orderID(f *matcher.Fill) string {
	if f.Order() == 0 {
		return ""
	}
	return matcher.OrderID(f.Order())
}

// Fills begins a table of the blotter's entries. ticker names a security.
//
// execTimeMillis is a number, as it is in the JSON of the blotter. ticker is called once for each
// row, on the goroutine of Write.
func Fills(f Format, to io.Writer, ticker func(securityID uint32) string) *Writer[matcher.Fill] {
	return open(f, to, table[matcher.Fill, fillRow]{
		header: "id,tradeSeq,accountId,security,side,quantity,price,execTimeMillis,orderId,sequence\n",
		line: func(c *cells, e *matcher.Fill) {
			c.words(matcher.TradeID(e.TradeSeq))
			c.number(int64(e.TradeSeq))
			c.number(int64(e.AccountID))
			c.words(ticker(e.SecurityID))
			c.words(sideOf(e.Side))
			c.number(int64(e.Qty))
			c.decimal(e.Px)
			c.number(e.TimeMillis)
			c.words(orderID(e))
			c.number(int64(e.InputSeq))
		},
		parquet: func(p *fillRow, e *matcher.Fill) {
			*p = fillRow{ID: matcher.TradeID(e.TradeSeq), TradeSeq: int64(e.TradeSeq),
				AccountID: int64(e.AccountID), Security: ticker(e.SecurityID), Side: sideOf(e.Side),
				Quantity: int64(e.Qty), Price: decimalOf(e.Px), ExecTimeMillis: e.TimeMillis,
				OrderID: orderID(e), Sequence: int64(e.InputSeq)}
		},
	})
}

// positionRow is a position in Parquet.
//
// Quantity is signed: below 0 for a short position.
type positionRow struct {
	AccountID   int64   `parquet:"accountId"`
	Security    string  `parquet:"security,dict"`
	Quantity    int64   `parquet:"quantity"`
	AverageCost decimal `parquet:"averageCost,decimal(6:19)"`
}

// Positions begins a table of positions. ticker names a security.
func Positions(f Format, to io.Writer,
	ticker func(securityID uint32) string) *Writer[blotter.Position] {
	return open(f, to, table[blotter.Position, positionRow]{
		header: "accountId,security,quantity,averageCost\n",
		line: func(c *cells, p *blotter.Position) {
			c.number(int64(p.AccountID))
			c.words(ticker(p.SecurityID))
			c.number(p.Qty)
			c.decimal(p.AverageCost)
		},
		parquet: func(row *positionRow, p *blotter.Position) {
			*row = positionRow{AccountID: int64(p.AccountID), Security: ticker(p.SecurityID),
				Quantity: p.Qty, AverageCost: decimalOf(p.AverageCost)}
		},
	})
}
