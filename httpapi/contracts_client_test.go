package httpapi

import (
	"errors"
	"testing"

	"posttrade/httpapi/client"
	"posttrade/ring/must"
)

// TestTypedClientBooksContracts drives the client's methods against the real servers.
func TestTypedClientBooksContracts(t *testing.T) {
	ctx := t.Context()
	r := newRig(t)
	c := client.New(client.Config{Address: r.address, Token: r.token("admin")})
	defer c.Close()
	terms := client.SwapRequest{ClientOrderID: "a", AccountID: 1, PayReceive: client.Receive,
		Notional: 7, FixedRate: -1,
		EffectiveDate: "2026-03-04", MaturityDate: "2027-03-04", Conventions: "GBP-SONIA-1Y-ACT365F"}
	swap := must.Get(c.Swap(ctx, &terms))(t)
	if swap != (client.Booked{ContractID: "SW-1", Sequence: 1, Booked: true}) ||
		must.Get(c.Swap(ctx, &terms))(t) != swap {
		t.Errorf("swap %+v", swap)
	}
	terms.ClientOrderID = ""
	swaption := must.Get(
		c.Swaption(ctx, &client.SwaptionRequest{SwapRequest: terms, ExpiryDate: "2026-03-03",
			ExerciseStyle: "American"}))(t)
	if swaption.ContractID != "SWPT-2" {
		t.Errorf("swaption %+v", swaption)
	}
	var p *client.Problem
	terms.AccountID = 9
	if _, err := c.Swap(ctx, &terms); !errors.As(err, &p) || p.Status != 422 ||
		p.Reason != "UNKNOWN_ACCOUNT" || p.Sequence != 3 {
		t.Errorf("refused: %v", err)
	}
	terms.Notional = 0
	if _, err := c.Swap(ctx, &terms); !errors.As(err, &p) || p.Status != 400 || client.Unknown(err) {
		t.Errorf("notional 0: %v", err)
	}
	shown := must.Get(c.Contract(ctx, swap.ContractID))(t)
	want := client.Contract{ContractID: "SW-1", ProductType: "SWAP", ClientOrderID: "a", AccountID: 1,
		PayReceive: client.Receive, Notional: 7, FixedRate: -1,
		EffectiveDate: "2026-03-04", MaturityDate: "2027-03-04",
		Conventions: "GBP-SONIA-1Y-ACT365F", Sequence: 1}
	if shown != want {
		t.Errorf("%+v, want %+v", shown, want)
	}
	account := uint32(1)
	first := must.Get(
		c.Contracts(ctx, client.ContractsQuery{AccountID: &account, Limit: 1}))(t)
	rest := must.Get(
		c.Contracts(ctx, client.ContractsQuery{Cursor: first.NextCursor}))(t)
	if len(first.Items) != 1 || first.Items[0] != want || len(rest.Items) != 1 ||
		rest.Items[0].ExerciseStyle != "American" || rest.NextCursor != "" {
		t.Errorf("%+v, then %+v", first, rest)
	}
	if n := must.Get(c.RiskExtract(ctx, "2026-03-02", 0))(t); n != 4 {
		t.Errorf("marker at %d", n)
	}

	processor := newProcessorRig(t)
	c = client.New(client.Config{Address: processor.address, Token: r.token("admin")})
	defer c.Close()
	marks := []client.Mark{{Security: "AAA", Price: client.Units(3)},
		{Security: "BBB", Price: 1, Quality: "OFFICIAL"}}
	published := client.MarksPublished{SessionDate: "2026-03-02", PriceVersion: 2, Marks: 2}
	for range 2 {
		got := must.Get(c.PutMarks(ctx, "2026-03-02", 2, marks))(t)
		if got != published {
			t.Errorf("marks %+v", got)
		}
	}
	if _, err := c.PutMarks(ctx, "2026-03-02", 2, marks[:1]); !errors.As(err, &p) || p.Status != 409 ||
		p.Code != string(CodeMarksDiffer) {
		t.Errorf("other marks: %v", err)
	}
}
