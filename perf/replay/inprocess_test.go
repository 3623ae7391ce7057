package replay

import (
	"strconv"
	"strings"
	"testing"

	"posttrade/app/apptest"
	"posttrade/blotter"
	"posttrade/matcher"
	"posttrade/perf/orderflow"
	"posttrade/ring/must"
)

// TestInProcessReplaceKeepsItsTarget: a replace that the gate would refuse is refused for that
// reason, on the order that it names. There are orders with the numbers of all reasons, in another
// account.
func TestInProcessReplaceKeepsItsTarget(t *testing.T) {
	open, stop, err := InProcess(apptest.Settled(t, "risk.seed.accounts", "1,2,3",
		"risk.seed.securities", "AAPL,MSFT", "risk.max-order-quantity", "1000",
		"data.dir", t.TempDir()))
	must.OK(t, err)
	defer func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	}()
	one, err := open()
	must.OK(t, err)
	v := one.(*coreVenue)
	find := func(id string) (row blotter.OrderRow, ok bool) {
		number := must.Get(strconv.ParseUint(strings.TrimPrefix(id, "ord-"), 10, 64))(t)
		return v.core.Views.Numbered(number)
	}
	steps := make([]orderflow.Step, matcher.ReasonCount+1)
	for i := range steps {
		steps[i] = orderflow.Step{AccountID: 2, Security: "AAPL", Side: matcher.Buy,
			Type: orderflow.Limit, Quantity: 10, LimitPx: 1_000_000}
	}
	steps[len(steps)-1].AccountID = 1
	results := make([]outcomeOf, len(steps))
	must.OK(t, v.create(steps, results))
	last := results[len(results)-1].orderID
	if row, ok := find(last); !ok || row.AccountID != 1 || row.Ref <= uint32(matcher.ReasonCount) {
		t.Fatalf("the last order is %+v, %v", row, ok)
	}
	got, err := v.replace(last, &orderflow.Step{Quantity: 1001, LimitPx: 1_000_000})
	if want := (outcomeOf{verdict: refused, reason: matcher.OrderSize.String()}); err != nil ||
		got.verdict != want.verdict || got.reason != want.reason {
		t.Errorf("replace: %+v, %v; want %+v", got, err, want)
	}
	for _, r := range results {
		if row, ok := find(r.orderID); !ok || !row.Open() || row.Qty != 10 {
			t.Errorf("%s is %+v, %v", r.orderID, row, ok)
		}
	}
	// A new order that the gate refuses is still refused.
	steps[0].Quantity = 1001
	if err := v.create(steps[:1], results); err != nil || results[0].verdict != refused ||
		results[0].reason != matcher.OrderSize.String() {
		t.Errorf("create: %+v, %v", results[0], err)
	}
}
