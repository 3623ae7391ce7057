package bundle

import (
	"crypto/sha256"
	"hash"
	"io"
	"strconv"

	"posttrade/journal/audit/lines"
	"posttrade/matcher"
	"posttrade/matcher/strictjson"
)

// Tally counts and hashes what the decisions on a range give: fills, blotter rows and the report.
//
// Before Begin and after Stop it passes events over. One goroutine uses it, the engine's.
type Tally struct {
	// from is the first command of the range: the owner calls Begin before it.
	from  uint64
	names lines.Names
	// report gets the lines of the report as well; nil: only the digest is made.
	report io.Writer
	// printer is nil before Begin
	printer *lines.Printer

	// fills is over the 64-byte fills, rows over the blotter rows; count is of both.
	fills, rows hash.Hash
	count       uint64
	done        bool // what comes is behind the range
	// row is reused for the text of each row.
	row []byte
}

// NewTally returns a Tally of the range from a sequence on. names is the engine; report gets the
// lines of the report, nil: nothing does.
func NewTally(from uint64, names lines.Names, report io.Writer) *Tally {
	return &Tally{from: from, names: names, report: report, fills: sha256.New(), rows: sha256.New()}
}

// Observe takes events in order; they may end within a command. Its error is that of report's
// Write.
func (t *Tally) Observe(events []matcher.Event) error {
	if t.printer == nil || t.done {
		return nil
	}
	for i := range events {
		if events[i].Kind != matcher.EventFilled {
			continue
		}
		f := events[i].Fill()
		t.count++
		t.fills.Write(f.Bytes()[:])
		t.row = appendRow(t.row[:0], &f, t.names.Ticker(f.SecurityID))
		t.rows.Write(t.row)
	}
	return t.printer.Print(events)
}

// Begin is called when the engine stands before the range: the names of securities are read then.
func (t *Tally) Begin() {
	t.printer = lines.NewPrinter(func(text []byte, _ int) error {
		if t.report == nil {
			return nil
		}
		_, err := t.report.Write(text)
		return err
	})
	t.printer.Know(t.names)
}

// End returns the digests. The Tally is of no use afterwards.
func (t *Tally) End() (fills, blotter, report Digest, err error) {
	if t.printer == nil {
		t.Begin() // an empty range
	}
	err = t.printer.Flush()
	total := t.printer.Total()
	fills = Digest{t.count, Sum([32]byte(t.fills.Sum(nil)))}
	blotter = Digest{t.count, Sum([32]byte(t.rows.Sum(nil)))}
	return fills, blotter, Digest{total.Count, Sum(total.SHA256)}, err
}

// appendRow appends a blotter row as GET /recon/trades/blotter shows it, and a newline.
//
// The rows are hashed, so their text is part of the format of bundles. For example:
//
//	{"id":"trd-1","tradeSeq":1,"accountId":1,"security":"AAPL","side":"Buy","quantity":5,
//	"price":101.5,"execTimeMillis":1700000000000,"orderId":"ord-3","sequence":12}
func appendRow(b []byte, f *matcher.Fill, ticker string) []byte {
	b = matcher.AppendTradeID(append(b, `{"id":"`...), f.TradeSeq)
	b = strconv.AppendUint(append(b, `","tradeSeq":`...), f.TradeSeq, 10)
	b = strconv.AppendUint(append(b, `,"accountId":`...), uint64(f.AccountID), 10)
	b = strconv.AppendQuote(append(b, `,"security":`...), ticker)
	side := `,"side":"Buy"`
	if f.Side == matcher.Sell {
		side = `,"side":"Sell"`
	}
	b = strconv.AppendInt(append(append(b, side...), `,"quantity":`...), int64(f.Qty), 10)
	b = strictjson.FormatDecimal(append(b, `,"price":`...), f.Px)
	b = strconv.AppendInt(append(b, `,"execTimeMillis":`...), f.TimeMillis, 10)
	b = append(b, `,"orderId":`...)
	if f.Order() == 0 {
		b = append(b, "null"...)
	} else {
		b = append(matcher.AppendOrderID(append(b, '"'), f.Order()), '"')
	}
	b = strconv.AppendUint(append(b, `,"sequence":`...), f.InputSeq, 10)
	return append(b, "}\n"...)
}

// Stop ends the range: what comes is behind it.
func (t *Tally) Stop() { t.done = true }
