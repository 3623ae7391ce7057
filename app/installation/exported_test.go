package installation

import (
	"encoding/csv"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"posttrade/httpapi/client"
	"posttrade/matcher/strictjson"
	"posttrade/ring/must"
)

var withDuckDB = flag.Bool("duckdb", false,
	"TestFilesHaveTheTotalsOfSQL also reads Parquet by DuckDB, which NODE_PATH has")

// totals are sums over the rows of a file; all of them are exact.
type totals struct {
	rows, quantity, notional, millis int64 // notional x 1e6
	trades, orders                   map[string]bool
}

func (s *totals) String() string {
	return fmt.Sprintf("%d %d %d %d %d %d", s.rows, s.quantity, s.notional, s.millis, len(s.trades),
		len(s.orders))
}

// bySide are totals by side.
type bySide map[string]*totals

func (b bySide) add(side, trade, order string, quantity, price, millis int64) {
	s := b[side]
	if s == nil {
		s = &totals{trades: map[string]bool{}, orders: map[string]bool{}}
		b[side] = s
	}
	s.rows, s.quantity = s.rows+1, s.quantity+quantity
	s.notional, s.millis = s.notional+quantity*price, s.millis+millis
	s.trades[trade], s.orders[order] = true, true
}

func (b bySide) String() (text string) {
	for _, side := range slices.Sorted(maps.Keys(b)) {
		text += side + " " + b[side].String() + "\n"
	}
	return text
}

// queryOf is the query of a reader's totals of a Parquet file with a side and a time.
func queryOf(file, millis string) string {
	return `SELECT side, count(*), sum(quantity), CAST(sum(quantity*price)*1000000 AS HUGEINT),
		sum(` + millis + `), count(DISTINCT id), count(DISTINCT "orderId")
		FROM read_parquet('` + file + `') GROUP BY side ORDER BY side`
}

// TestFilesHaveTheTotalsOfSQL: CSV and Parquet of trades, blotter and positions have the same
// totals as the database. Parquet is read by a program of others.
func TestFilesHaveTheTotalsOfSQL(t *testing.T) {
	i := install(t, t.TempDir(), "risk.max-open-orders", "100000")
	i.tradeAll(500)
	i.awaitMatched()
	want, held := bySide{}, map[string]int64{}
	for _, row := range i.rows() {
		side, signed := "Buy", row.Quantity
		if row.Side != 0 {
			side, signed = "Sell", -row.Quantity
		}
		want.add(side, row.ID, row.OrderID, row.Quantity, row.Price, row.ExecutedAt)
		held[fmt.Sprintf("%d %s", row.AccountID, row.Security)] += signed
	}
	if want["Buy"].rows != 500 || want["Sell"].rows != 500 {
		t.Fatalf("traded %v", want)
	}
	folder := t.TempDir()
	file := func(table, format string) string { return filepath.Join(folder, table+"."+format) }
	for table, service := range map[string]*client.Client{client.TableTrades: i.processor,
		client.TableBlotter: i.orders, client.TablePositions: i.orders} {
		for _, format := range []string{"csv", "parquet"} {
			exportTo(t, service, table, format, file(table, format))
		}
	}
	for _, table := range []string{client.TableTrades, client.TableBlotter} {
		if got := totalsOfCSV(t, file(table, "csv")); got.String() != want.String() {
			t.Errorf("%s as CSV:\n%vwant\n%v", table, got, want)
		}
	}
	positions, cost := positionsOfCSV(t, file(client.TablePositions, "csv"))
	if !maps.Equal(positions, held) {
		t.Errorf("positions %v, want %v", positions, held)
	}
	if !*withDuckDB {
		return
	}
	got := duckDB(t, queryOf(file(client.TableTrades, "parquet"), `epoch_ms("timestamp")`),
		queryOf(file(client.TableBlotter, "parquet"), `"execTimeMillis"`),
		`SELECT "accountId" || ' ' || security, quantity FROM read_parquet('`+
			file(client.TablePositions, "parquet")+`') ORDER BY "accountId"`,
		`SELECT CAST(sum("averageCost")*1000000 AS HUGEINT) FROM read_parquet('`+
			file(client.TablePositions, "parquet")+`')`)
	all := want.String() + want.String()
	for _, key := range slices.Sorted(maps.Keys(held)) {
		all += fmt.Sprintf("%s %d\n", key, held[key])
	}
	if all += fmt.Sprintf("%d\n", cost); got != all {
		t.Errorf("DuckDB reads\n%swant\n%s", got, all)
	}
}

// tradeAll makes n trades of two accounts, each at a price of its own.
func (i *installed) tradeAll(n int) {
	i.t.Helper()
	for _, side := range []client.Side{client.Sell, client.Buy} {
		batch := make([]client.OrderRequest, n)
		for at := range batch {
			batch[at] = client.OrderRequest{AccountID: 1, Security: "AAPL", Side: side,
				Quantity: int32(1 + at%7), LimitPrice: client.Price(12_000_000 + 10_000*int64(at))}
			if side == client.Buy {
				batch[at].AccountID = 2
			}
		}
		decided := must.Get(i.orders.CreateOrderBatch(i.t.Context(), batch))(i.t)
		for at := range decided {
			if decided[at].Status == "REJECTED" {
				i.t.Fatalf("%+v", decided[at])
			}
		}
	}
}

func exportTo(t *testing.T, service *client.Client, table, format, name string) {
	t.Helper()
	file := must.Get(service.Export(t.Context(), client.ExportQuery{Table: table, Format: format,
		Filter: url.Values{}}))(t)
	defer file.Close()
	text := must.Get(io.ReadAll(file))(t)
	must.OK(t, os.WriteFile(name, text, 0o600))
}

// readCSV reads a file whose first line names the columns.
func readCSV(t *testing.T, name string) (rows []map[string]string) {
	t.Helper()
	file := must.Get(os.Open(name))(t)
	defer file.Close()
	all := must.Get(csv.NewReader(file).ReadAll())(t)
	for _, line := range all[1:] {
		row := map[string]string{}
		for at, name := range all[0] {
			row[name] = line[at]
		}
		rows = append(rows, row)
	}
	return rows
}

func totalsOfCSV(t *testing.T, name string) bySide {
	t.Helper()
	sums := bySide{}
	for _, row := range readCSV(t, name) {
		quantity, err1 := strconv.ParseInt(row["quantity"], 10, 64)
		price, err2 := strictjson.ParseDecimal([]byte(row["price"]))
		millis, err3 := strconv.ParseInt(row["execTimeMillis"], 10, 64)
		if text, ok := row["timestamp"]; ok {
			at, err := time.Parse(time.RFC3339, text)
			millis, err3 = at.UnixMilli(), err
		}
		if err1 != nil || err2 != nil || err3 != nil {
			t.Fatal(row, err1, err2, err3)
		}
		sums.add(row["side"], row["id"], row["orderId"], quantity, price, millis)
	}
	return sums
}

// positionsOfCSV are the quantities by account and security, and the sum of the average costs.
func positionsOfCSV(t *testing.T, name string) (held map[string]int64, cost int64) {
	t.Helper()
	held = map[string]int64{}
	for _, row := range readCSV(t, name) {
		quantity, err1 := strconv.ParseInt(row["quantity"], 10, 64)
		average, err2 := strictjson.ParseDecimal([]byte(row["averageCost"]))
		if err1 != nil || err2 != nil {
			t.Fatal(row, err1, err2)
		}
		held[row["accountId"]+" "+row["security"]] = quantity
		cost += average
	}
	return held, cost
}

// duckDB runs queries.
func duckDB(t *testing.T, queries ...string) string {
	t.Helper()
	var stderr strings.Builder
	node := exec.Command("node", append([]string{"testdata/duckdb.cjs"}, queries...)...)
	node.Stderr = &stderr
	out, err := node.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	return string(out)
}
