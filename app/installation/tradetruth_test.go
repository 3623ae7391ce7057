package installation

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"posttrade/app/engine"
	"posttrade/httpapi/client"
	"posttrade/journal"
	"posttrade/matcher"
	"posttrade/ring/must"
	"posttrade/sidecars/store"
)

// truth is what a new engine decides from the journal's commands, from the first one on, without
// any other input.
type truth struct {
	commands []matcher.Command
	events   []matcher.Event
	fills    []matcher.Fill
	at       map[uint64]int             // index of a trade's fill in events
	came     map[uint32]int             // index of an order's acceptance in events
	samples  map[uint32][]int           // indexes of a security's prices in events
	tickers  map[uint32]string          // by security id
	sides    map[matcher.Side]string    // the contract's words
	kinds    map[matcher.EventKind]bool // that occurred
}

// replayJournal replays the whole journal of an engine.
func replayJournal(t *testing.T, k *engine.Engine) *truth {
	t.Helper()
	engine, err := matcher.New(k.Genesis)
	must.OK(t, err)
	defer engine.Close()
	tr := &truth{
		at: map[uint64]int{}, came: map[uint32]int{}, samples: map[uint32][]int{},
		tickers: map[uint32]string{},
		sides:   map[matcher.Side]string{matcher.Buy: "Buy", matcher.Sell: "Sell"},
		kinds:   map[matcher.EventKind]bool{},
	}
	out := matcher.NewOutlet(1<<12,
		func(events []matcher.Event) { tr.events = append(tr.events, events...) })
	err = k.Journal.Replay(t.Context(), 1, func(cmds []matcher.Command, _ journal.ClientIDs) error {
		tr.commands = append(tr.commands, cmds...)
		_, err := engine.ReplayBatch(cmds, out)
		out.Flush()
		return err
	})
	must.OK(t, err)
	engine.EachSecurity(func(s matcher.SecurityInfo) bool {
		tr.tickers[s.ID] = s.Ticker
		return true
	})
	for i := range tr.events {
		ev := &tr.events[i]
		tr.kinds[ev.Kind] = true
		switch ev.Kind {
		case matcher.EventFilled:
			tr.at[ev.TradeSeq] = i
			tr.fills = append(tr.fills, ev.Fill())
			tr.samples[ev.SecurityID] = append(tr.samples[ev.SecurityID], i)
		case matcher.EventAccepted:
			tr.came[ev.OrderRef] = i
		case matcher.EventApplied:
			if ev.Cmd().Type == matcher.PriceTick {
				tr.samples[ev.SecurityID] = append(tr.samples[ev.SecurityID], i)
			}
		}
	}
	return tr
}

// row is the projection of a fill, with the columns that the fill determines.
func (tr *truth) row(f *matcher.Fill) store.Trade {
	row := store.Trade{
		ID: fmt.Sprintf("trd-%d", f.TradeSeq), Seq: f.TradeSeq, AccountID: f.AccountID,
		Security: tr.tickers[f.SecurityID],
		Side:     f.Side, Quantity: int64(f.Qty), Price: f.Px, ExecutedAt: f.TimeMillis,
		Sequence: f.InputSeq,
	}
	if f.OrderRef != 0 {
		row.OrderID = fmt.Sprintf("ord-%d", f.OrderRef)
	}
	return row
}

// checkRows compares the table with the replay, row for row.
func (tr *truth) checkRows(t *testing.T, rows []store.Trade) {
	t.Helper()
	if len(rows) != len(tr.fills) {
		t.Errorf("%d rows, %d fills", len(rows), len(tr.fills))
	}
	ignored := cmpopts.IgnoreFields(store.Trade{}, "Status", "SettlementDate", "BookedAt", "UpdatedAt")
	wrong := 0
	for i := range min(len(rows), len(tr.fills)) {
		want := tr.row(&tr.fills[i])
		got := rows[i]
		got.Status, got.SettlementDate, got.BookedAt, got.UpdatedAt = 0, 0, 0, 0
		if got != want && wrong < 5 {
			wrong++
			t.Errorf("row %d: %s", i+1, cmp.Diff(want, got, ignored))
		}
	}
}

// checkFills compares the journal's own fill blocks with the replay.
func (tr *truth) checkFills(t *testing.T, k *engine.Engine) {
	t.Helper()
	n := 0
	err := k.Journal.Fills(1, func(fills []matcher.Fill) error {
		for i := range fills {
			if n >= len(tr.fills) || fills[i] != tr.fills[n] {
				return fmt.Errorf("fill %d of the journal is %+v", n+1, fills[i])
			}
			n++
		}
		return nil
	})
	if err != nil || n != len(tr.fills) {
		t.Errorf("the journal has %d fills, its replay %d: %v", n, len(tr.fills), err)
	}
}

// checkBlotter compares the blotter as the order-matcher pages it with the replay.
func (tr *truth) checkBlotter(t *testing.T, in *installed) {
	t.Helper()
	n := 0
	for since := uint64(0); ; {
		page := must.Get(in.orders.Blotter(t.Context(), since, 0))(t)
		if len(page.Items) == 0 {
			break
		}
		for i := range page.Items {
			if n == len(tr.fills) {
				t.Fatalf("the blotter has more than %d entries", n)
			}
			row := tr.row(&tr.fills[n])
			want := client.BlotterEntry{
				ID: row.ID, TradeSeq: row.Seq, AccountID: row.AccountID, Security: row.Security,
				Side:     client.Side(tr.sides[row.Side]),
				Quantity: int32(row.Quantity), Price: client.Price(row.Price), ExecTimeMillis: row.ExecutedAt,
				OrderID: row.OrderID, Sequence: row.Sequence,
			}
			if page.Items[i] != want {
				t.Fatalf("blotter: %s", cmp.Diff(want, page.Items[i]))
			}
			n++
		}
		since = page.NextSinceSeq
	}
	if n != len(tr.fills) {
		t.Errorf("the blotter has %d entries, the replay %d", n, len(tr.fills))
	}
}

// auditLine is one record of the regulatory report.
type auditLine struct {
	Kind            string        `json:"kind"`
	Sequence        uint64        `json:"sequence"`
	OrderID         *string       `json:"orderId"`
	TradeID         *string       `json:"tradeId"`
	AccountID       uint32        `json:"accountId"`
	Security        *string       `json:"security"`
	Side            *string       `json:"side"`
	Quantity        *int64        `json:"quantity"`
	Price           *client.Price `json:"price"`
	TimestampMillis int64         `json:"timestampMillis"`
	RiskReason      *string       `json:"riskReason"`
}

// lines are the records that an event must give. For a refusal it states only the fields that every
// refusal has.
func (tr *truth) lines(ev *matcher.Event) []auditLine {
	id := func(prefix string, n uint64) *string {
		if n == 0 {
			return nil
		}
		s := fmt.Sprintf("%s-%d", prefix, n)
		return &s
	}
	reason := func(r matcher.RiskReason) *string {
		if r == matcher.Accepted {
			return nil
		}
		s := r.String()
		return &s
	}
	ticker, side, quantity, px := tr.tickers[ev.SecurityID], tr.sides[ev.Side], int64(ev.Qty),
		client.Price(ev.Px)
	line := auditLine{
		Sequence: ev.InputSeq, OrderID: id("ord", uint64(ev.OrderRef)), TradeID: id("trd", ev.TradeSeq),
		AccountID: ev.AccountID,
		Security:  &ticker, Side: &side, Quantity: &quantity, Price: &px, TimestampMillis: ev.TimeMillis,
	}
	if px <= 0 {
		line.Price = nil
	}
	as := func(kind string) auditLine {
		l := line
		l.Kind = kind
		return l
	}
	switch ev.Kind {
	case matcher.EventAccepted, matcher.EventReplaced:
		return []auditLine{as("accept")}
	case matcher.EventCanceled:
		line.RiskReason = reason(ev.Reason)
		return []auditLine{as("cancel")}
	case matcher.EventFilled:
		switch {
		case ev.OrderRef == 0:
			return []auditLine{as("trade-booked")}
		case ev.Status == matcher.StatusFilled:
			return []auditLine{as("fill"), as("trade-booked")}
		}
		return []auditLine{as("partial-fill"), as("trade-booked")}
	case matcher.EventRejected:
		if !audited(ev.Cmd().Type) {
			return nil
		}
		return []auditLine{{
			Kind: "reject", Sequence: ev.InputSeq, AccountID: ev.Cmd().AccountID,
			TimestampMillis: ev.TimeMillis,
			RiskReason:      reason(ev.Reason),
		}}
	}
	return nil
}

// audited reports whether the report must account for a type of command.
func audited(t matcher.CommandType) bool {
	switch t {
	case matcher.OrderNew, matcher.OrderCancel, matcher.OrderReplace, matcher.TradeNew,
		matcher.ForceFill:
		return true
	}
	return false
}

// checkReport compares the regulatory report up to a sequence with the replay, record for record.
// It checks that no order or trade command is missing, and returns the report's hash.
func (tr *truth) checkReport(t *testing.T, in *installed, to uint64) string {
	t.Helper()
	report := must.Get(in.orders.RegulatoryReport(context.Background(), 1, to))(t)
	defer report.Close()
	accounted := map[uint64]bool{}
	lines := bufio.NewReaderSize(report, 1<<20)
	for i := range tr.events {
		if tr.events[i].InputSeq > to {
			break
		}
		for _, want := range tr.lines(&tr.events[i]) {
			text, err := lines.ReadBytes('\n')
			if err != nil {
				t.Fatalf("the report ends before %+v: %v", want, err)
			}
			var got auditLine
			must.OK(t, json.Unmarshal(text, &got))
			accounted[got.Sequence] = true
			if want.Kind == "reject" {
				got.OrderID, got.Security, got.Side, got.Quantity, got.Price = nil, nil, nil, nil, nil
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("%s%s", text, diff)
			}
		}
	}
	if rest, err := lines.ReadString('\n'); err != io.EOF {
		t.Fatalf("the report goes on with %q, %v", rest, err)
	}
	for i := range tr.commands {
		c := &tr.commands[i]
		if c.TemplateID == matcher.TemplateCommand && audited(c.Type) && c.InputSeq <= to &&
			!accounted[c.InputSeq] {
			t.Fatalf("the report has nothing of sequence %d", c.InputSeq)
		}
	}
	return report.SHA256()
}

// checkTCA compares the reports on random trades with the cost computed from the replay, and
// returns them as they were sent.
func (tr *truth) checkTCA(t *testing.T, in *installed, n int, seed uint64) map[string]string {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 2))
	sent := map[string]string{}
	benchmarks := 0
	for range n {
		f := &tr.fills[random.IntN(len(tr.fills))]
		id := fmt.Sprintf("trd-%d", f.TradeSeq)
		status, body := in.get("trade-processor", "/tca/report/"+id)
		var got client.TCAReport
		if err := json.Unmarshal(body, &got); err != nil || status != 200 {
			t.Fatalf("%s: %d %s", id, status, body)
		}
		want := tr.cost(f)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%s: %s", id, diff)
		}
		if want.SlippageBps != nil {
			benchmarks++
		}
		sent[id] = string(body)
	}
	if benchmarks < n/2 {
		t.Errorf("only %d of %d trades have a benchmark: the day is too short", benchmarks, n)
	}
	return sent
}

// cost is the analysis of a trade by the definition: every price of the security until the trade,
// each weighted by the time that it was in force inside the window.
func (tr *truth) cost(f *matcher.Fill) client.TCAReport {
	const window = 5 * 60 * 1000
	executed := tr.at[f.TradeSeq]
	accepted, booked := tr.came[f.OrderRef]
	if !booked { // a market trade: its booking is the event before its fill
		accepted = executed - 1
	}
	r := client.TCAReport{
		TradeID: fmt.Sprintf("trd-%d", f.TradeSeq), AccountID: f.AccountID,
		Security: tr.tickers[f.SecurityID],
		Side:     client.Side(tr.sides[f.Side]), Quantity: int64(f.Qty),
		ExecutionPrice:  client.Price(f.Px),
		ArrivalAt:       time.UnixMilli(tr.events[accepted].TimeMillis).UTC(),
		TwapWindowStart: time.UnixMilli(f.TimeMillis - window).UTC(),
		TwapWindowEnd:   time.UnixMilli(f.TimeMillis).UTC(),
	}
	area, weight := new(big.Int), int64(0)
	px, since := int64(0), int64(0)
	for _, i := range tr.samples[f.SecurityID] {
		ev := &tr.events[i]
		if i > executed {
			break
		}
		if ev.Flags&matcher.EventLate != 0 {
			continue // the market price stays
		}
		if i < accepted {
			r.ArrivalPrice = client.Price(samplePx(ev))
		}
		inForce := max(ev.TimeMillis, since)
		if from, to := max(since, f.TimeMillis-window), min(inForce, f.TimeMillis); px > 0 && from < to {
			area.Add(area, new(big.Int).Mul(big.NewInt(px), big.NewInt(to-from)))
			weight += to - from
			r.TwapSampleCount++
		}
		px, since = samplePx(ev), inForce
	}
	if weight > 0 {
		twap := new(big.Rat).SetFrac(area, big.NewInt(weight))
		r.Twap = client.Price(nearest(twap))
		r.SlippageBps = basisPoints(f, twap)
	}
	if r.ArrivalPrice > 0 {
		r.ArrivalSlippageBps = basisPoints(f, new(big.Rat).SetInt64(int64(r.ArrivalPrice)))
	}
	return r
}

// samplePx is the price that a tick or a fill states.
func samplePx(ev *matcher.Event) int64 {
	if ev.Kind == matcher.EventFilled {
		return ev.Px
	}
	return ev.Cmd().PriceTicks
}

// basisPoints is the signed slippage with two decimals, in the client's millionths.
func basisPoints(f *matcher.Fill, benchmark *big.Rat) *client.Price {
	x := new(big.Rat).Sub(new(big.Rat).SetInt64(f.Px), benchmark)
	x.Quo(x, benchmark)
	if f.Side == matcher.Sell {
		x.Neg(x)
	}
	p := client.Price(nearest(x.Mul(x, big.NewRat(10_000*100, 1))) * 10_000)
	return &p
}

// nearest rounds half up.
func nearest(x *big.Rat) int64 {
	twice := new(big.Rat).Add(new(big.Rat).Mul(x, big.NewRat(2, 1)), big.NewRat(1, 1))
	return new(big.Int).Div(twice.Num(), new(big.Int).Mul(twice.Denom(), big.NewInt(2))).Int64()
}
