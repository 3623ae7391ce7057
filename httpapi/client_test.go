package httpapi

import (
	"context"
	"errors"
	"io"
	"slices"
	"testing"
	"time"

	"posttrade/httpapi/client"
	"posttrade/ring/must"
)

// TestTypedClientTalksToTheRealServer drives every method of the client once.
func TestTypedClientTalksToTheRealServer(t *testing.T) {
	ctx := t.Context()
	r := newRig(t)
	c := client.New(client.Config{Address: r.address, Token: r.token("admin")})
	defer c.Close()
	must.Get(c.Prices(ctx,
		[]client.PriceRequest{{Security: "AAA", Price: client.Units(100)}}))(t)
	sell := must.Get(c.CreateOrder(ctx, &client.OrderRequest{ClientOrderID: "s",
		AccountID: 1, Security: "AAA", Side: client.Sell, Quantity: 10,
		LimitPrice: client.Units(101)}))(t)
	batch := must.Get(c.CreateOrderBatch(ctx, []client.OrderRequest{
		{AccountID: 2, Security: "AAA", Side: client.Buy, Quantity: 4, LimitPrice: client.Units(101)},
		{AccountID: 9, Security: "AAA", Side: client.Buy, Quantity: 4, LimitPrice: client.Units(101)},
	}))(t)
	if batch[0].Status != "FILLED" || len(batch[0].Fills) != 1 ||
		batch[1].RiskReason != "UNKNOWN_ACCOUNT" {
		t.Errorf("batch %+v", batch)
	}
	trade := must.Get(c.BookMarketTrade(ctx,
		&client.TradeRequest{AccountID: 3, Security: "AAA", Side: client.Buy, Quantity: 1}))(t)
	if trade.Price != client.Units(101) || trade.TradeID != "trd-3" {
		t.Errorf("trade %+v", trade)
	}
	smaller := &client.ReplaceRequest{Quantity: 8, LimitPrice: client.Units(102)}
	if o := must.Get(c.Replace(ctx, sell.OrderID, smaller))(t); o.RemainingQuantity != 4 {
		t.Errorf("replaced %+v", o)
	}
	if b := must.Get(c.Book(ctx, "AAA", 1))(t); len(b.Asks) != 1 ||
		b.Asks[0].Price != client.Units(102) {
		t.Errorf("book %+v", b)
	}
	if o := must.Get(c.Cancel(ctx, sell.OrderID))(t); o.Status != "CANCELED" {
		t.Errorf("cancelled %+v", o)
	}
	var p *client.Problem
	if _, err := c.Cancel(ctx, sell.OrderID); !errors.As(err, &p) || p.Status != 409 ||
		p.Code != string(CodeOrderTerminal) {
		t.Errorf("cancelled twice: %v", err)
	}
	if o := must.Get(c.Order(ctx, sell.OrderID))(t); o.ClientOrderID != "s" {
		t.Errorf("order %+v", o)
	}
	account := uint32(2)
	if page := must.Get(
		c.Orders(ctx, client.OrdersQuery{Status: "all", AccountID: &account, Security: "AAA",
			Limit: 5}))(t); len(
		page.Items) != 1 {
		t.Errorf("orders %+v", page)
	}
	if page := must.Get(
		c.Positions(ctx, client.PositionsQuery{AccountID: &account}))(t); len(page.Items) != 1 ||
		page.Items[0].Quantity != 4 {
		t.Errorf("positions %+v", page)
	}
	if page := must.Get(c.Blotter(ctx, 1, 10))(t); len(page.Items) != 2 ||
		page.NextSinceSeq != 3 {
		t.Errorf("blotter %+v", page)
	}
	must.Get(c.RiskControlAccount(ctx, 2, false))(t)
	must.Get(c.RiskControlSecurity(ctx, "AAA", true, true))(t)
	must.Get(c.RiskControlRestriction(ctx, "AAA", true))(t)
	must.Get(c.RiskControlPolicy(ctx,
		client.Policy{PolicyVersion: 4, KillSwitch: true}))(t)
	if image := must.Get(c.RiskControls(ctx))(t); !image.KillSwitch ||
		image.PolicyVersion != 4 || !image.Ready {
		t.Errorf("controls %+v", image)
	}
	size := int32(50)
	changed := must.Get(c.Because("a test").RiskControlAccountLimits(ctx, 2, 5,
		client.SomeLimits{MaxOrderQuantity: &size}, "creditLimit"))(t)
	now := must.Get(c.After(changed.Sequence).RiskControls(ctx))(t)
	at := slices.IndexFunc(now.Accounts, func(a client.AccountControl) bool { return a.ID == 2 })
	if own := now.Accounts[at].Limits; own == nil || *own.MaxOrderQuantity != 50 ||
		own.CreditLimit != nil || now.Limits.CreditLimit == 0 {
		t.Errorf("limits %+v of %+v", own, now.Limits)
	}
	if h := must.Get(c.Health(ctx))(t); h.Durability != "fsync" || h.Durable == 0 ||
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
	if info := must.Get(c.Reindex(ctx))(t); info.IndexedTrades != 3 ||
		info.DurationMillis != 12 {
		t.Errorf("reindexed %+v", info)
	}
	if page := must.Get(c.FullHistory(ctx, 1, 1))(t); len(page.Items) != 1 ||
		page.Items[0].ID != "trd-2" || page.NextSinceSeq != 2 {
		t.Errorf("history %+v", page)
	}
	report := must.Get(c.RegulatoryReport(ctx, 2, 99))(t)
	defer report.Close()
	text := must.Get(io.ReadAll(report))(t)
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
	cut := must.Get(c.RegulatoryReport(ctx, 0, 0))(t)
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
	token := must.Get(open.DevToken(ctx, testMaster,
		client.TokenRequest{Subject: "t", Admin: true, TTLSeconds: 60}))(t)
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
	page := must.Get(c.Trades(ctx, client.TradesQuery{AccountID: &account,
		Status: "Settled", SettlementDate: "2026-03-04", Limit: 1}))(t)
	if len(page.Items) != 1 || page.Items[0].ID != "trd-2" || page.Items[0].OrderID != "" ||
		page.NextCursor == "" {
		t.Errorf("trades %+v", page)
	}
	row := must.Get(c.TradeRow(ctx, "trd-1"))(t)
	if row.Price != client.Units(100)+250_000 ||
		row.OrderID != "ord-1" || row.Status != "Processing" {
		t.Errorf("row %+v", row)
	}
	if row := must.Get(c.ForceSettlement(ctx, "trd-1"))(t); row.Status != "Settled" {
		t.Errorf("forced %+v", row)
	}
	if _, err := c.ForceSettlement(ctx, "trd-99"); !errors.As(err, &p) || p.Status != 404 ||
		p.Code != string(CodeTradeNotFound) {
		t.Errorf("an unknown trade: %v", err)
	}
	status := must.Get(c.ReconStatus(ctx))(t)
	if s := status; s.Matched != 3 || !s.LastSweepAt.IsZero() {
		t.Errorf("status %+v", s)
	}
	breaks := must.Get(c.ReconBreaks(ctx, "", 0, ""))(t)
	if len(breaks.Items) != 5 || breaks.Items[0].Projection != nil ||
		breaks.Items[1].Projection.Price != -1_500_000 || breaks.NextCursor != "page2" ||
		breaks.Items[2].Projection.Sequence != 7 || breaks.Items[4].Statement.AccountID != 2 {
		t.Errorf("breaks %+v", breaks)
	}
	repair := must.Get(c.Because("a test").RepairRows(ctx,
		client.RepairQuery{From: "trd-1", To: "trd-6"}))(t)
	if repair.RepairID != 3 || repair.Repaired != 2 || repair.Items[0].Was != nil ||
		repair.Items[1].Was.SettlementDate != "infinity" || repair.Items[1].Now.Sequence != 12 ||
		r.fakes.repaired.Reason != "a test" {
		t.Errorf("repair %+v", repair)
	}
	line := client.StatementLine{ID: "ext-A.1", AccountID: 1, Security: "AAA", Side: "Buy",
		Quantity: 5,
		Price:    client.Units(2), Timestamp: time.UnixMilli(testStart)}
	lines := []client.StatementLine{line}
	if s := must.Get(c.TakeStatement(ctx, lines))(t); s.Accepted !=
		1 ||
		r.fakes.lines[0].Price != 2_000_000 || r.fakes.lines[0].TimeMillis != testStart {
		t.Errorf("statement %+v of %+v", s, r.fakes.lines)
	}
	if _, err := c.LastOrphanSweep(ctx); !errors.As(err, &p) || p.Code != string(CodeSweepNotFound) {
		t.Errorf("no sweep yet: %v", err)
	}
	if s := must.Get(c.OrphanSweep(ctx))(t); s.OrphanCount != 1 ||
		s.OrphanIDs[0] != "trd-6" {
		t.Errorf("sweep %+v", s)
	}
	must.Get(c.LastOrphanSweep(ctx))(t)
	if s := must.Get(c.ReconStatus(ctx))(t); s.LastSweepAt.IsZero() {
		t.Errorf("status %+v", s)
	}
	if report := must.Get(c.TCAReport(ctx, "trd-1"))(t); report.Twap != 99_500_000 ||
		report.SlippageBps != nil || report.ArrivalAt.IsZero() {
		t.Errorf("report %+v", report)
	}
	summary := must.Get(
		c.TCASummary(ctx, client.TCAQuery{AccountID: &account, To: time.UnixMilli(testStart)}))(t)
	if summary.Trades != 3 || len(summary.BySecurity) != 2 || summary.BySecurity[1].Trades != 2 ||
		r.fakes.summary.ToMillis != testStart {
		t.Errorf("summary %+v", summary)
	}
	if h := must.Get(c.Health(ctx))(t); h.Service != "trade-processor" ||
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
	first := must.Get(c.CreateOrder(ctx, &order))(t)
	if h := must.Get(c.Health(ctx))(t); h.Role != "FOLLOWER" || h.Member != "2" ||
		h.Leader != "1" {
		t.Errorf("health %+v", h)
	}
	follower.cluster.lead("", nil) // it has lost the leader: the client goes there by itself
	again := must.Get(c.CreateOrder(ctx, &order))(t)
	if again.OrderID != first.OrderID || engine.sequence() != 1 {
		t.Errorf("%+v, first %+v; %d commands", again, first, engine.sequence())
	}
	if h := must.Get(c.Health(ctx))(t); h.Role != "LEADER" && h.Role != "SINGLE" {
		t.Errorf("health %+v", h)
	}
	leader.cluster.lead("", nil)
	var p *client.Problem
	if _, err := c.CreateOrder(ctx, &order); !errors.As(err, &p) || p.Code != string(CodeNoLeader) ||
		client.Unknown(err) {
		t.Errorf("%v", err)
	}
}
