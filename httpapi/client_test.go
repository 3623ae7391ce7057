package httpapi

import (
	"errors"
	"testing"

	"posttrade/httpapi/client"
	"posttrade/matcher"
)

// TestTypedClientTalksToTheRealServer drives every method of the client once.
func TestTypedClientTalksToTheRealServer(t *testing.T) {
	r := newRig(t)
	c := client.New(client.Config{Address: r.address, Token: r.token("admin")})
	defer c.Close()
	must[client.PricesAccepted](t)(c.Prices([]client.PriceRequest{{Security: "AAA", Price: client.Units(100)}}))
	sell := must[client.Order](t)(c.CreateOrder(&client.OrderRequest{ClientOrderID: "s", AccountID: 1, Security: "AAA",
		Side: matcher.Sell, Quantity: 10, LimitPrice: client.Units(101)}))
	batch := must[[]client.Order](t)(c.CreateOrderBatch([]client.OrderRequest{
		{AccountID: 2, Security: "AAA", Quantity: 4, LimitPrice: client.Units(101)},
		{AccountID: 9, Security: "AAA", Quantity: 4, LimitPrice: client.Units(101)},
	}))
	if batch[0].Status != "FILLED" || len(batch[0].Fills) != 1 || batch[1].RiskReason != "UNKNOWN_ACCOUNT" {
		t.Errorf("batch %+v", batch)
	}
	trade := must[client.Trade](t)(c.BookMarketTrade(&client.TradeRequest{AccountID: 3, Security: "AAA", Quantity: 1}))
	if trade.Price != client.Units(101) || trade.TradeID != "trd-3" {
		t.Errorf("trade %+v", trade)
	}
	if o := must[client.Order](t)(c.Replace(sell.OrderID, &client.ReplaceRequest{Quantity: 8, LimitPrice: client.Units(102)})); o.RemainingQuantity != 4 {
		t.Errorf("replaced %+v", o)
	}
	if b := must[client.Book](t)(c.Book("AAA", 1)); len(b.Asks) != 1 || b.Asks[0].Price != client.Units(102) {
		t.Errorf("book %+v", b)
	}
	if o := must[client.Order](t)(c.Cancel(sell.OrderID)); o.Status != "CANCELED" {
		t.Errorf("cancelled %+v", o)
	}
	var p *client.Problem
	if _, err := c.Cancel(sell.OrderID); !errors.As(err, &p) || p.Status != 409 || p.Code != string(CodeOrderTerminal) {
		t.Errorf("cancelled twice: %v", err)
	}
	if o := must[client.Order](t)(c.Order(sell.OrderID)); o.ClientOrderID != "s" {
		t.Errorf("order %+v", o)
	}
	account := uint32(2)
	if page := must[client.OrderPage](t)(c.Orders(client.OrdersQuery{Status: "all", AccountID: &account, Security: "AAA", Limit: 5})); len(page.Items) != 1 {
		t.Errorf("orders %+v", page)
	}
	if page := must[client.PositionPage](t)(c.Positions(client.PositionsQuery{AccountID: &account})); len(page.Items) != 1 || page.Items[0].Quantity != 4 {
		t.Errorf("positions %+v", page)
	}
	if page := must[client.BlotterPage](t)(c.Blotter(1, 10)); len(page.Items) != 2 || page.NextSinceSeq != 3 {
		t.Errorf("blotter %+v", page)
	}
	must[client.ControlApplied](t)(c.RiskControlAccount(2, false))
	must[client.ControlApplied](t)(c.RiskControlSecurity("AAA", true, true))
	must[client.ControlApplied](t)(c.RiskControlRestriction("AAA", true))
	must[client.ControlApplied](t)(c.RiskControlPolicy(client.Policy{PolicyVersion: 4, KillSwitch: true}))
	if image := must[client.Controls](t)(c.RiskControls()); !image.KillSwitch || image.PolicyVersion != 4 || !image.Ready {
		t.Errorf("controls %+v", image)
	}
	if h := must[client.Health](t)(c.Health()); h.Durability != "fsync" || h.Durable == 0 || h.Projected != nil {
		t.Errorf("health %+v", h)
	}
}
