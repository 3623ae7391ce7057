package tca

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"

	"posttrade/matcher"
	"posttrade/matcher/int128"
	"posttrade/matcher/strictjson"
	"posttrade/matcher/timetext"
	"posttrade/sidecars/store"
)

// Report is the transaction-cost analysis of one trade. doc.go defines each number. Prices are x
// 1e6, times epoch milliseconds.
//
// It depends on the row and on the journal up to the trade alone, so it is the same whenever it is
// asked for.
type Report struct {
	TradeID        string
	AccountID      uint32
	Security       string
	Side           matcher.Side
	Quantity       int64
	ExecutionPrice int64

	Arrived      bool  // the trade is a fill of the journal: ArrivalAt is valid
	ArrivalPrice int64 // 0: none was in force
	ArrivalAt    int64

	Twap            int64 // rounded half up; 0: none, nothing had weight
	TwapWindowStart int64
	TwapWindowEnd   int64
	TwapSampleCount uint64 // the samples that had weight

	SlippageBps        Bps // against the exact TWAP
	ArrivalSlippageBps Bps
}

// Bps is a number of basis points with two decimals, or the absence of one. The
// zero Bps is absent.
type Bps struct {
	known      bool
	hundredths int128.Int
}

// Hundredths is the number in hundredths of a basis point. ok is false when it is absent, or does
// not fit an int64, which is possible only with a benchmark close to zero.
//
// It tests that the 128 bits are the sign extension of the lower 64.
func (p Bps) Hundredths() (n int64, ok bool) {
	n = int64(p.hundredths.Lo)
	return n, p.known && p.hundredths.Hi == n>>63
}

// String is the JSON text: a decimal without trailing zeros, or null.
func (p Bps) String() string { return string(p.AppendJSON(nil)) }

// AppendJSON appends String to b.
//
// It allocates only for a number that an int64 in millionths cannot hold.
func (p Bps) AppendJSON(b []byte) []byte {
	if !p.known {
		return append(b, "null"...)
	}
	if n, ok := p.Hundredths(); ok && n > math.MinInt64/10_000 && n < math.MaxInt64/10_000 {
		return strictjson.FormatDecimal(b, n*10_000)
	}
	digits := p.hundredths.Big().Append(nil, 10) // at least three digits
	whole, cents := digits[:len(digits)-2], digits[len(digits)-2:]
	b = append(b, whole...)
	if cents[1] != '0' {
		return append(append(b, '.'), cents...)
	}
	if cents[0] != '0' {
		return append(b, '.', cents[0])
	}
	return b
}

// Report analyses one row of the table trades. When the index has not reached the trade, Report
// waits for it up to Options.Patience.
//
// Errors: ErrBehind when that was not enough; ErrDamaged when a block is damaged, and then the
// index is being built again. Any goroutine may call it. Cost: a few binary searches; for a row
// that was not asked for lately also reads of a few blocks of 4 KiB.
func (t *TCA) Report(ctx context.Context, trade store.Trade) (Report, error) {
	r, reached, err := t.report(&trade, never)
	if reached || err != nil {
		return r, err
	}
	durable, err := t.await(ctx)
	if err != nil {
		return Report{}, err
	}
	r, reached, err = t.report(&trade, durable)
	if !reached && err == nil {
		err = fmt.Errorf("tca: report trade=%q: %w", trade.ID, ErrBehind)
	}
	return r, err
}

// never is an inputSeq that no command reaches.
const never = math.MaxUint64

// report is Report without waiting. complete is an inputSeq that was durable after the row was
// read. When the index has everything up to complete and does not have the row's tradeSeq, the row
// is none of the journal's fills. Until then the trade counts as not reached.
//
// A security that the engine does not know has neither an arrival nor an average, which is a
// complete answer. It holds the read lock while it reads blocks.
func (t *TCA) report(trade *store.Trade, complete uint64) (r Report, reached bool, err error) {
	r = Report{
		TradeID: trade.ID, AccountID: trade.AccountID, Security: trade.Security, Side: trade.Side,
		Quantity: trade.Quantity, ExecutionPrice: trade.Price,
		TwapWindowStart: windowStart(trade.ExecutedAt, t.windowMillis), TwapWindowEnd: trade.ExecutedAt,
	}
	security, known := t.o.SecurityID(trade.Security)

	t.mu.RLock()
	defer t.mu.RUnlock()
	if t.torn || t.damaged.Load() || trade.Seq > t.index.executions.count() &&
		t.index.applied < complete {
		return Report{}, false, nil
	}
	if !known {
		return r, true, nil
	}
	if err := t.arrival(&r, trade, security); err != nil {
		return Report{}, false, t.met(err)
	}
	if err := t.twap(&r, security); err != nil {
		return Report{}, false, t.met(err)
	}
	return r, true, nil
}

// met marks the index for a rebuild when err reports a damaged block.
func (t *TCA) met(err error) error {
	if errors.Is(err, ErrDamaged) {
		t.damaged.Store(true)
	}
	return err
}

// windowStart is the beginning of a window, limited to the range of times.
func windowStart(end, millis int64) int64 {
	if end < math.MinInt64+millis {
		return math.MinInt64
	}
	return end - millis
}

// arrival sets the order's arrival, when the row is the journal's fill.
//
// The fingerprint decides: a row that was edited by hand has no arrival.
func (t *TCA) arrival(r *Report, trade *store.Trade, security uint32) error {
	e, found, err := t.index.executions.at(trade.Seq)
	if err != nil || !found {
		return err
	}
	print := fingerprint(trade.AccountID, security, uint8(trade.Side), trade.Quantity, trade.Price,
		trade.ExecutedAt)
	if e.print != print {
		return nil
	}
	r.Arrived, r.ArrivalPrice, r.ArrivalAt = true, e.px, e.millis
	if e.px > 0 {
		r.ArrivalSlippageBps = Bps{true, slippage(r.ExecutionPrice, int128.Of(e.px), 1,
			r.Side == matcher.Sell)}
	}
	return nil
}

// twap sets the average over the window. The area under the price up to any moment follows from the
// last sample before it, so the window's area is a difference.
//
// The window is half open for samples: one that takes force at its end has no weight.
func (t *TCA) twap(r *Report, security uint32) error {
	start, end := r.TwapWindowStart, r.TwapWindowEnd
	if start >= end {
		return nil
	}
	last, lastOrdinal, found, err := t.index.samples.at(security, end-1)
	if err != nil || !found {
		return err
	}
	first, firstOrdinal, found, err := t.index.samples.at(security, start)
	if err != nil {
		return err
	}
	var before int128.Int
	if found {
		before = first.until(start)
	} else {
		start = t.index.samples.of[security].firstMillis
	}
	area, millis := last.until(end).Sub(before), span(start, end)
	r.Twap = mean(area, millis)
	r.TwapSampleCount = lastOrdinal - firstOrdinal + 1
	r.SlippageBps = Bps{true, slippage(r.ExecutionPrice, area, millis, r.Side == matcher.Sell)}
	return nil
}

// AppendJSON appends the report as a JSON object, null where there is no
// benchmark or no arrival.
//
// The members are those of the HTTP interface, in its order. It allocates nothing for a plain row
// when b has room.
func (r *Report) AppendJSON(b []byte) []byte {
	b = strictjson.AppendString(append(b, `{"tradeId":`...), r.TradeID)
	b = strconv.AppendUint(append(b, `,"accountId":`...), uint64(r.AccountID), 10)
	b = strictjson.AppendString(append(b, `,"security":`...), r.Security)
	b = strictjson.AppendString(append(b, `,"side":`...), sideWord(r.Side))
	b = strconv.AppendInt(append(b, `,"quantity":`...), r.Quantity, 10)
	b = strictjson.FormatDecimal(append(b, `,"executionPrice":`...), r.ExecutionPrice)
	b = appendPrice(append(b, `,"arrivalPrice":`...), r.ArrivalPrice)
	b = append(b, `,"arrivalAt":`...)
	if r.Arrived {
		b = appendTime(b, r.ArrivalAt)
	} else {
		b = append(b, "null"...)
	}
	b = appendPrice(append(b, `,"twap":`...), r.Twap)
	b = appendTime(append(b, `,"twapWindowStart":`...), r.TwapWindowStart)
	b = appendTime(append(b, `,"twapWindowEnd":`...), r.TwapWindowEnd)
	b = strconv.AppendUint(append(b, `,"twapSampleCount":`...), r.TwapSampleCount, 10)
	b = r.SlippageBps.AppendJSON(append(b, `,"slippageBps":`...))
	b = r.ArrivalSlippageBps.AppendJSON(append(b, `,"arrivalSlippageBps":`...))
	return append(b, '}')
}

// appendPrice appends a benchmark's price; 0 means none.
func appendPrice(b []byte, px int64) []byte {
	if px == 0 {
		return append(b, "null"...)
	}
	return strictjson.FormatDecimal(b, px)
}

// appendTime appends epoch milliseconds as a JSON string.
func appendTime(b []byte, millis int64) []byte {
	return append(timetext.Append(append(b, '"'), millis), '"')
}

func sideWord(s matcher.Side) string {
	if s == matcher.Sell {
		return "Sell"
	}
	return "Buy"
}
