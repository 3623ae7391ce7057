package httpapi

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"sync/atomic"

	"posttrade/blotter"
	"posttrade/journal/audit"
	"posttrade/matcher"
)

// reportSeed is the genesis record of a fakeReporter.
const reportSeed = `{"format":1,"accounts":[{"id":1}]}`

// recordLine is the record of one sequence.
func recordLine(sequence uint64) string {
	return fmt.Sprintf(
		`{"kind":"accept","sequence":%d,"orderId":"ord-1","tradeId":null,"accountId":1,"security":"AAA",`+
			`"side":"Buy","quantity":10,"price":100.5,"timestampMillis":%d,"riskReason":null}`+"\n",
		sequence, testStart)
}

// fakeReporter reports one record for every sequence up to its head, a few to a chunk.
type fakeReporter struct {
	head  uint64
	early error                                  // instead of a report
	each  func(ctx context.Context, n int) error // before chunk n, from 0; an error ends the report
	calls atomic.Int64
	ended chan error // what Write returned
}

func newFakeReporter(head uint64) *fakeReporter {
	return &fakeReporter{head: head, ended: make(chan error, 64)}
}

// Clip implements Reporter, as audit.Reporter does.
func (f *fakeReporter) Clip(from, to uint64) (first, last uint64, err error) {
	if to != 0 && from > to {
		return 0, 0, fmt.Errorf("audit: %w", audit.ErrRange)
	}
	if to == 0 || to > f.head {
		to = f.head
	}
	if from > to {
		return 0, 0, fmt.Errorf("audit: %w", audit.ErrRange)
	}
	return max(from, 1), to, nil
}

// Genesis implements Reporter.
func (f *fakeReporter) Genesis() []byte { return []byte(reportSeed + "\n") }

// Write implements Reporter.
func (f *fakeReporter) Write(ctx context.Context, from, to uint64,
	chunk func([]byte, int) error) (t audit.Total, err error) {
	f.calls.Add(1)
	defer func() {
		select {
		case f.ended <- err:
		default:
		}
	}()
	if f.early != nil {
		return t, f.early
	}
	sum := sha256.New()
	for n := 0; from <= to; n++ {
		if f.each != nil {
			if err := f.each(ctx, n); err != nil {
				return t, err
			}
		}
		var b []byte
		count := 0
		for ; from <= to && count < 2; from++ {
			b = append(b, recordLine(from)...)
			count++
		}
		sum.Write(b)
		t.Count += uint64(count)
		if err := chunk(b, count); err != nil {
			return t, err
		}
	}
	sum.Sum(t.SHA256[:0])
	return t, nil
}

// wantLines is the report of a range as lines.
func wantLines(from, to uint64) string {
	var b strings.Builder
	for n := from; n <= to; n++ {
		b.WriteString(recordLine(n))
	}
	return b.String()
}

// wantReport is the report of a range as one object.
func wantReport(from, to uint64) string {
	lines, count := wantLines(from, to), uint64(0)
	if from <= to {
		count = to - from + 1
	}
	return fmt.Sprintf(`{"fromSeq":%d,"toSeq":%d,"seed":%s,"records":[%s],"count":%d,"sha256":"%x"}`,
		from, to, reportSeed,
		strings.ReplaceAll(strings.TrimSuffix(lines, "\n"), "\n",
			","), count, sha256.Sum256([]byte(lines)))
}

// fakeHistory has three fills.
type fakeHistory struct {
	err     error         // of Reindex
	missing bool          // there is no index
	indexed atomic.Uint64 // LastSequence
	calls   atomic.Int64
	life    atomic.Bool // Reindex was given a deadline
}

// Reindex implements History.
func (f *fakeHistory) Reindex(ctx context.Context) (blotter.HistoryInfo, error) {
	f.calls.Add(1)
	_, ok := ctx.Deadline()
	f.life.Store(ok)
	if f.err != nil {
		return blotter.HistoryInfo{}, f.err
	}
	return blotter.HistoryInfo{IndexedTrades: 3, LastSequence: 9, LastTradeSeq: 3, DurationMillis: 12},
		nil
}

// LastSequence implements History.
func (f *fakeHistory) LastSequence() (inputSeq uint64, ok bool) {
	if f.missing {
		return 0, false
	}
	return f.indexed.Load(), true
}

// Page implements History.
func (f *fakeHistory) Page(sinceSeq uint64, limit int, dst []matcher.Fill) (items []matcher.Fill,
	next uint64, ok bool) {
	f.calls.Add(1)
	if f.missing {
		return dst, sinceSeq, false
	}
	next = sinceSeq
	for seq := sinceSeq + 1; seq <= 3 && len(dst) < limit; seq++ {
		dst = append(dst, matcher.Fill{TradeSeq: seq, InputSeq: 4 + seq, TimeMillis: testStart,
			Px:        100_250_000,
			AccountID: 1, SecurityID: 1, OrderRef: uint32(seq), Qty: 5, Side: matcher.Sell})
		next = seq
	}
	return dst, next, true
}
