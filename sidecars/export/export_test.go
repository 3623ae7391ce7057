package export

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"runtime"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"posttrade/blotter"
	"posttrade/matcher"
	"posttrade/ring/must"
	"posttrade/sidecars/store"
)

// someTrades are n trades; of each ten the last is a booking from outside with awkward texts.
func someTrades(from, n int) []store.Trade {
	rows := make([]store.Trade, n)
	for i := range rows {
		seq := uint64(from + i)
		rows[i] = store.Trade{ID: matcher.TradeID(seq), Seq: seq, AccountID: uint32(seq % 7),
			Security: "AAA", Side: matcher.Side(seq % 2), Quantity: int64(seq),
			Price:  100_000_001 * int64(seq),
			Status: store.Status(seq % 2), SettlementDate: store.DateOf(2026, 3, 3),
			ExecutedAt: 1772445600001 + int64(seq), UpdatedAt: 1772445600002, OrderID: "ord-1"}
		if seq%10 == 0 {
			rows[i].ID, rows[i].Seq = "ext-1", store.FirstExternal+seq
			rows[i].OrderID, rows[i].SettlementDate = "", store.NoDate
		}
	}
	return rows
}

// written is a table as a file.
func written[R any](t *testing.T, w *Writer[R], to *bytes.Buffer, rows []R) string {
	t.Helper()
	must.OK(t, errors.Join(w.Write(rows), w.Close()))
	if w.Rows() != uint64(len(rows)) {
		t.Errorf("%d rows, want %d", w.Rows(), len(rows))
	}
	return to.String()
}

// TestCSVIsExact compares whole tables.
func TestCSVIsExact(t *testing.T) {
	var to bytes.Buffer
	trades := someTrades(9, 2)
	trades[0].Price, trades[0].ExecutedAt = -1, 0
	trades[1].Price = 9_223_372_036_854_775_807
	got := written(t, Trades(CSV, &to), &to, trades)
	want := "id,tradeSeq,accountId,security,side,quantity,price,status,settlementDate,timestamp," +
		"orderId,updatedAt\n" +
		"trd-9,9,2,AAA,Sell,9,-0.000001,Settled,2026-03-03,1970-01-01T00:00:00.000Z," +
		"ord-1,2026-03-02T10:00:00.002Z\n" +
		"ext-1,,3,AAA,Buy,10,9223372036854.775807,Processing,,2026-03-02T10:00:00.011Z," +
		",2026-03-02T10:00:00.002Z\n"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	ticker := func(id uint32) string { return fmt.Sprintf("T%d", id) }
	to.Reset()
	fill := matcher.Fill{TradeSeq: 3, InputSeq: 8, AccountID: 4_294_967_295, SecurityID: 2,
		Side: matcher.Sell, Qty: 5, Px: 1_500_000, TimeMillis: 7}
	got = written(t, Fills(CSV, &to, ticker), &to, []matcher.Fill{fill})
	if got != "id,tradeSeq,accountId,security,side,quantity,price,execTimeMillis,orderId,sequence\n"+
		"trd-3,3,4294967295,T2,Sell,5,1.5,7,,8\n" {
		t.Error(got)
	}
	to.Reset()
	got = written(t, Positions(CSV, &to, ticker), &to,
		[]blotter.Position{{AccountID: 1, SecurityID: 2, Qty: -5, AverageCost: 2_000_001}})
	if got != "accountId,security,quantity,averageCost\n1,T2,-5,2.000001\n" {
		t.Error(got)
	}
	to.Reset()
	if got = written(t, Positions(CSV, &to, ticker), &to, nil); got !=
		"accountId,security,quantity,averageCost\n" {
		t.Errorf("no position: %q", got)
	}
}

// TestTextsStayText: no text breaks a line or is a formula, and a reader gets it back, behind the '
// that keeps a formula from being one.
func TestTextsStayText(t *testing.T) {
	for raw, want := range map[string]string{
		"AAA": "AAA", "BRK.B": "BRK.B", "": "", "a,b": "a,b", `say "x"`: `say "x"`,
		"two\nlines": "two\nlines",
		" blank ":    " blank ", "é": "é", "'quoted": "'quoted", "a=1": "a=1",
		"=1+1": "'=1+1", "+1": "'+1", "-1": "'-1", "@x": "'@x", "\tx": "'\tx",
		"=a,\"b\"\n": "'=a,\"b\"\n",
		"\rx":        "'\rx",
	} {
		rows := someTrades(1, 2)
		rows[0].OrderID, rows[1].ID = raw, raw
		var to bytes.Buffer
		text := strings.NewReader(written(t, Trades(CSV, &to), &to, rows))
		records, err := csv.NewReader(text).ReadAll()
		if err != nil || len(records) != 3 || records[1][10] != want || records[2][0] != want {
			t.Errorf("%q: %q, %v", raw, records, err)
		}
		to.Reset()
		file := written(t, Trades(Parquet, &to), &to, rows)
		back, err := parquet.Read[tradeRow](strings.NewReader(file), int64(len(file)))
		if err != nil || len(back) != 2 || back[0].OrderID != raw || back[1].ID != raw {
			t.Errorf("%q in Parquet: %+v, %v", raw, back, err)
		}
	}
}

// TestParquetIsExact reads a file of several row groups back.
func TestParquetIsExact(t *testing.T) {
	rows := someTrades(1, groupRows+1500)
	rows[0].Price, rows[1].Price, rows[2].Price = math.MaxInt64, math.MinInt64, -1
	var to bytes.Buffer
	file := written(t, Trades(Parquet, &to), &to, rows)
	f, err := parquet.OpenFile(strings.NewReader(file), int64(len(file)))
	must.OK(t, err)
	if n := len(f.RowGroups()); n != 2 {
		t.Errorf("%d row groups, want 2", n)
	}
	schema := f.Schema().String()
	for _, column := range []string{"required binary id (STRING)", "optional int64 tradeSeq",
		"required fixed_len_byte_array(9) price (DECIMAL(19,6))", "optional int32 settlementDate (DATE)",
		"required int64 timestamp (TIMESTAMP(isAdjustedToUTC=true,unit=MILLIS))"} {
		if !strings.Contains(schema, column) {
			t.Errorf("%q is not in %s", column, schema)
		}
	}
	back, err := parquet.Read[tradeRow](strings.NewReader(file), int64(len(file)))
	if err != nil || len(back) != len(rows) {
		t.Fatalf("%d rows, %v", len(back), err)
	}
	for i := range rows {
		r, b := &rows[i], &back[i]
		if b.ID != r.ID || (b.TradeSeq == nil) != r.External() ||
			b.TradeSeq != nil && *b.TradeSeq != int64(r.Seq) ||
			signed(b.Price).Cmp(big.NewInt(r.Price)) != 0 ||
			b.Timestamp != r.ExecutedAt || b.Quantity != r.Quantity ||
			b.Side != sideOf(r.Side) || b.Status != r.Status.String() || b.OrderID != r.OrderID ||
			(b.SettlementDate == nil) != (r.SettlementDate == store.NoDate) ||
			b.SettlementDate != nil && *b.SettlementDate != int32(r.SettlementDate) {
			t.Fatalf("row %d: %+v, want %+v", i, b, r)
		}
	}
}

// signed is a big-endian number in two's complement, as the format defines a decimal.
func signed(d decimal) *big.Int {
	n := new(big.Int).SetBytes(d[:])
	if d[0]>>7 == 1 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(d))))
	}
	return n
}

// TestMemoryDoesNotDependOnTheRows compares what lives after few rows with what lives after many.
func TestMemoryDoesNotDependOnTheRows(t *testing.T) {
	for _, f := range []Format{CSV, Parquet} {
		w := Trades(f, io.Discard)
		rows := someTrades(1, 4096)
		live := func(until uint64) uint64 {
			for w.Rows() < until {
				must.OK(t, w.Write(rows))
			}
			runtime.GC()
			runtime.GC() // a pool keeps what it holds through the first one
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return m.HeapAlloc
		}
		few := live(2 * groupRows)
		many := live(12 * groupRows)
		if many > few+4<<20 {
			t.Errorf("%v: %d bytes live after few rows, %d after many", f, few, many)
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestFormatsHaveOneWordEach(t *testing.T) {
	for _, f := range []Format{CSV, Parquet} {
		if got, ok := ParseFormat(f.String()); got != f || !ok || f.MediaType() == "" {
			t.Errorf("%v: %v %v", f, got, ok)
		}
	}
	for _, word := range []string{"", "CSV", "xlsx"} {
		if _, ok := ParseFormat(word); ok {
			t.Errorf("%q is a format", word)
		}
	}
}
