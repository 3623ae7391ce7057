package httpapi

import (
	"context"
	"errors"
	"io"
	"slices"
	"testing"
	"time"

	"posttrade/httpapi/client"
)

// TestTypedClientTalksToTheRealServer drives every method of the client once.
func TestTypedClientTalksToTheRealServer(t *testing.T) {
	ctx := t.Context()
	r := newRig(t)
	c := client.New(client.Config{Address: r.address, Token: r.token("admin")})
	defer c.Close()
	must[client.PricesAccepted](t)(c.Prices(ctx,
		[]client.PriceRequest{{Security: "AAA", Price: client.Units(100)}}))
	sell := must[client.Order](t)(c.CreateOrder(ctx, &client.OrderRequest{ClientOrderID: "s",
		AccountID: 1, Security: "AAA", Side: client.Sell, Quantity: 10,
		LimitPrice: client.Units(101)}))
	batch := must[[]client.Order](t)(c.CreateOrderBatch(ctx, []client.OrderRequest{
		{AccountID: 2, Security: "AAA", Side: client.Buy, Quantity: 4, LimitPrice: client.Units(101)},
		{AccountID: 9, Security: "AAA", Side: client.Buy, Quantity: 4, LimitPrice: client.Units(101)},
	}))
	if batch[0].Status != "FILLED" || len(batch[0].Fills) != 1 ||
		batch[1].RiskReason != "UNKNOWN_ACCOUNT" {
		t.Errorf("batch %+v", batch)
	}
	trade := must[client.Trade](t)(c.BookMarketTrade(ctx,
		&client.TradeRequest{AccountID: 3, Security: "AAA", Side: client.Buy, Quantity: 1}))
	if trade.Price != client.Units(101) || trade.TradeID != "trd-3" {
		t.Errorf("trade %+v", trade)
	}
	if o := must[client.Order](t)(c.Replace(ctx, sell.OrderID,
		&client.ReplaceRequest{Quantity: 8, LimitPrice: client.Units(102)})); o.RemainingQuantity != 4 {
		t.Errorf("replaced %+v", o)
	}
	if b := must[client.Book](t)(c.Book(ctx, "AAA", 1)); len(b.Asks) != 1 ||
		b.Asks[0].Price != client.Units(102) {
		t.Errorf("book %+v", b)
	}
	if o := must[client.Order](t)(c.Cancel(ctx, sell.OrderID)); o.Status != "CANCELED" {
		t.Errorf("cancelled %+v", o)
	}
	var p *client.Problem
	if _, err := c.Cancel(ctx, sell.OrderID); !errors.As(err, &p) || p.Status != 409 ||
		p.Code != string(CodeOrderTerminal) {
		t.Errorf("cancelled twice: %v", err)
	}
	if o := must[client.Order](t)(c.Order(ctx, sell.OrderID)); o.ClientOrderID != "s" {
		t.Errorf("order %+v", o)
	}
	account := uint32(2)
	if page := must[client.OrderPage](t)(
		c.Orders(ctx, client.OrdersQuery{Status: "all", AccountID: &account, Security: "AAA",
			Limit: 5})); len(
		page.Items) != 1 {
		t.Errorf("orders %+v", page)
	}
	if page := must[client.PositionPage](t)(
		c.Positions(ctx, client.PositionsQuery{AccountID: &account})); len(page.Items) != 1 ||
		page.Items[0].Quantity != 4 {
		t.Errorf("positions %+v", page)
	}
	if page := must[client.BlotterPage](t)(c.Blotter(ctx, 1, 10)); len(page.Items) != 2 ||
		page.NextSinceSeq != 3 {
		t.Errorf("blotter %+v", page)
	}
	must[client.ControlApplied](t)(c.RiskControlAccount(ctx, 2, false))
	must[client.ControlApplied](t)(c.RiskControlSecurity(ctx, "AAA", true, true))
	must[client.ControlApplied](t)(c.RiskControlRestriction(ctx, "AAA", true))
	must[client.ControlApplied](t)(c.RiskControlPolicy(ctx,
		client.Policy{PolicyVersion: 4, KillSwitch: true}))
	if image := must[client.Controls](t)(c.RiskControls(ctx)); !image.KillSwitch ||
		image.PolicyVersion != 4 || !image.Ready {
		t.Errorf("controls %+v", image)
	}
	size := int32(50)
	changed := must[client.ControlApplied](t)(c.Because("a test").RiskControlAccountLimits(ctx, 2, 5,
		client.SomeLimits{MaxOrderQuantity: &size}, "creditLimit"))
	now := must[client.Controls](t)(c.After(changed.Sequence).RiskControls(ctx))
	at := slices.IndexFunc(now.Accounts, func(a client.AccountControl) bool { return a.ID == 2 })
	if own := now.Accounts[at].Limits; own == nil || *own.MaxOrderQuantity != 50 ||
		own.CreditLimit != nil || now.Limits.CreditLimit == 0 {
		t.Errorf("limits %+v of %+v", own, now.Limits)
	}
	if h := must[client.Health](t)(c.Health(ctx)); h.Durability != "fsync" || h.Durable == 0 ||
		h.Projected != nil {
		t.Errorf("health %+v", h)
	}
}

// TestTypedClientReadsTheHistory drives the order-matcher's methods over history.
func TestTypedClientReadsTheHistory(t *testing.T) {
	ctx := t.Context()
	r := newRig(t)
	c := client.New(client.Config{Address: r.address, Token: r.token("admin")})
	defer c.Close()
	if info := must[client.Reindexed](t)(c.Reindex(ctx)); info.IndexedTrades != 3 ||
		info.DurationMillis != 12 {
		t.Errorf("reindexed %+v", info)
	}
	if page := must[client.BlotterPage](t)(c.FullHistory(ctx, 1, 1)); len(page.Items) != 1 ||
		page.Items[0].ID != "trd-2" || page.NextSinceSeq != 2 {
		t.Errorf("history %+v", page)
	}
	report := must[*client.Report](t)(c.RegulatoryReport(ctx, 2, 99))
	defer report.Close()
	text := must[[]byte](t)(io.ReadAll(report))
	if string(text) != wantLines(2, 5) || report.FromSeq != 2 || report.ToSeq != 5 ||
		report.Count() != 4 {
		t.Errorf("report %+v\n%s", report, text)
	}
	r.report.each = func(_ context.Context, n int) error {
		if n == 1 {
			return errPlanted
		}
		return nil
	}
	cut := must[*client.Report](t)(c.RegulatoryReport(ctx, 0, 0))
	defer cut.Close()
	if text, err := io.ReadAll(cut); err == nil {
		t.Errorf("a cut report reads as whole: %s", text)
	}
}

// TestTypedClientTalksToTheTradeProcessor drives every method once.
func TestTypedClientTalksToTheTradeProcessor(t *testing.T) {
	ctx := t.Context()
	r := newProcessorRig(t)
	open := client.New(client.Config{Address: r.address})
	defer open.Close()
	token := must[client.Token](t)(open.DevToken(ctx, testMaster,
		client.TokenRequest{Subject: "t", Admin: true, TTLSeconds: 60}))
	if !token.ExpiresAt.Equal(time.UnixMilli(testStart+60_000)) || token.TokenType != "Bearer" {
		t.Errorf("token %+v", token)
	}
	var p *client.Problem
	if _, err := open.DevToken(ctx, "wrong",
		client.TokenRequest{Subject: "t", TTLSeconds: 60}); !errors.As(err, &p) || p.Status != 401 {
		t.Errorf("a wrong master secret: %v", err)
	}
	c := client.New(client.Config{Address: r.address, Token: token.Token})
	defer c.Close()
	account := uint32(1)
	page := must[client.TradePage](t)(c.Trades(ctx, client.TradesQuery{AccountID: &account,
		Status: "Settled", SettlementDate: "2026-03-04", Limit: 1}))
	if len(page.Items) != 1 || page.Items[0].ID != "trd-2" || page.Items[0].OrderID != "" ||
		page.NextCursor == "" {
		t.Errorf("trades %+v", page)
	}
	row := must[client.TradeRow](t)(c.TradeRow(ctx, "trd-1"))
	if row.Price != client.Units(100)+250_000 ||
		row.OrderID != "ord-1" || row.Status != "Processing" {
		t.Errorf("row %+v", row)
	}
	if row := must[client.TradeRow](t)(c.ForceSettlement(ctx, "trd-1")); row.Status != "Settled" {
		t.Errorf("forced %+v", row)
	}
	if _, err := c.ForceSettlement(ctx, "trd-99"); !errors.As(err, &p) || p.Status != 404 ||
		p.Code != string(CodeTradeNotFound) {
		t.Errorf("an unknown trade: %v", err)
	}
	status := must[client.ReconStatus](t)(c.ReconStatus(ctx))
	if s := status; s.Matched != 3 || !s.LastSweepAt.IsZero() {
		t.Errorf("status %+v", s)
	}
	breaks := must[client.BreakPage](t)(c.ReconBreaks(ctx, "", 0, ""))
	if len(breaks.Items) != 5 || breaks.Items[0].Projection != nil ||
		breaks.Items[1].Projection.Price != -1_500_000 || breaks.NextCursor != "page2" ||
		breaks.Items[2].Projection.Sequence != 7 || breaks.Items[4].Statement.AccountID != 2 {
		t.Errorf("breaks %+v", breaks)
	}
	repair := must[client.Repair](t)(c.Because("a test").RepairRows(ctx,
		client.RepairQuery{From: "trd-1", To: "trd-6"}))
	if repair.RepairID != 3 || repair.Repaired != 2 || repair.Items[0].Was != nil ||
		repair.Items[1].Was.SettlementDate != "infinity" || repair.Items[1].Now.Sequence != 12 ||
		r.fakes.repaired.Reason != "a test" {
		t.Errorf("repair %+v", repair)
	}
	line := client.StatementLine{ID: "ext-A.1", AccountID: 1, Security: "AAA", Side: "Buy",
		Quantity: 5,
		Price:    client.Units(2), Timestamp: time.UnixMilli(testStart)}
	lines := []client.StatementLine{line}
	if s := must[client.Statement](t)(c.TakeStatement(ctx, lines)); s.Accepted !=
		1 ||
		r.fakes.lines[0].Price != 2_000_000 || r.fakes.lines[0].TimeMillis != testStart {
		t.Errorf("statement %+v of %+v", s, r.fakes.lines)
	}
	if _, err := c.LastOrphanSweep(ctx); !errors.As(err, &p) || p.Code != string(CodeSweepNotFound) {
		t.Errorf("no sweep yet: %v", err)
	}
	if s := must[client.OrphanSweep](t)(c.OrphanSweep(ctx)); s.OrphanCount != 1 ||
		s.OrphanIDs[0] != "trd-6" {
		t.Errorf("sweep %+v", s)
	}
	must[client.OrphanSweep](t)(c.LastOrphanSweep(ctx))
	if s := must[client.ReconStatus](t)(c.ReconStatus(ctx)); s.LastSweepAt.IsZero() {
		t.Errorf("status %+v", s)
	}
	if report := must[client.TCAReport](t)(c.TCAReport(ctx, "trd-1")); report.Twap != 99_500_000 ||
		report.SlippageBps != nil || report.ArrivalAt.IsZero() {
		t.Errorf("report %+v", report)
	}
	summary := must[client.TCASummary](t)(
		c.TCASummary(ctx, client.TCAQuery{AccountID: &account, To: time.UnixMilli(testStart)}))
	if summary.Trades != 3 || len(summary.BySecurity) != 2 || summary.BySecurity[1].Trades != 2 ||
		r.fakes.summary.ToMillis != testStart {
		t.Errorf("summary %+v", summary)
	}
	if h := must[client.Health](t)(c.Health(ctx)); h.Service != "trade-processor" ||
		*h.Projected != 10 {
		t.Errorf("health %+v", h)
	}
}

// TestTypedClientTalksToACluster with the addresses of all members, one of them gone.
func TestTypedClientTalksToACluster(t *testing.T) {
	ctx := t.Context()
	engine := newRig(t)
	leader := newLeader(t, "order-matcher", engine.m)
	follower := newFollower(t, "order-matcher", "1", leader.address)
	gone := newFollower(t, "order-matcher", "1", leader.address)
	gone.stop()
	c := client.New(client.Config{Address: gone.address,
		Others: []string{follower.address, leader.address}})
	defer c.Close()
	order := client.OrderRequest{ClientOrderID: "a", AccountID: 1, Security: "AAA", Side: client.Buy,
		Quantity: 1, LimitPrice: client.Units(100)}
	first := must[client.Order](t)(c.CreateOrder(ctx, &order))
	if h := must[client.Health](t)(c.Health(ctx)); h.Role != "FOLLOWER" || h.Member != "2" ||
		h.Leader != "1" {
		t.Errorf("health %+v", h)
	}
	follower.cluster.lead("", nil) // it has lost the leader: the client goes there by itself
	again := must[client.Order](t)(c.CreateOrder(ctx, &order))
	if again.OrderID != first.OrderID || engine.sequence() != 1 {
		t.Errorf("%+v, first %+v; %d commands", again, first, engine.sequence())
	}
	if h := must[client.Health](t)(c.Health(ctx)); h.Role != "LEADER" && h.Role != "SINGLE" {
		t.Errorf("health %+v", h)
	}
	leader.cluster.lead("", nil)
	var p *client.Problem
	if _, err := c.CreateOrder(ctx, &order); !errors.As(err, &p) || p.Code != string(CodeNoLeader) ||
		client.Unknown(err) {
		t.Errorf("%v", err)
	}
}
