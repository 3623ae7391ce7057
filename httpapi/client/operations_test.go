package client

import (
	"context"
	"io"
	"net/url"
	"testing"
	"time"
)

// operation is a call of a method with everything that can be asked for, and what it must send.
type operation struct {
	id   string // in a service's OpenAPI document
	call func(ctx context.Context, c *Client) (any, error)
	want string // method, target, token, body

	once   bool // not to be repeated when the outcome is unknown
	stream bool // the answer is read as it comes: it has tests of its own
}

var (
	account = uint32(1)
	day     = time.UnixMilli(1772445600001) // 2026-03-02T10:00:00.001Z

	orderTerms = OrderRequest{ClientOrderID: `a"b`, AccountID: 1, Security: "AAA", Side: Sell,
		Quantity: 10, LimitPrice: Units(100) + 500_000, Type: Limit, TimeInForce: IOC}
	swapTerms = SwapRequest{ClientOrderID: "k", AccountID: 1, PayReceive: Pay, Notional: 5,
		FixedRate: -42_500, EffectiveDate: "2026-03-04", MaturityDate: "2031-03-04",
		Conventions: "USD-SOFR-1Y-ACT360"}
)

const (
	orderJSON = `{"clientOrderId":"a\"b","accountId":1,"security":"AAA","side":"Sell",` +
		`"quantity":10,"limitPrice":100.5,"type":"LIMIT","timeInForce":"IOC"}`
	swapJSON = `"clientOrderId":"k","accountId":1,"payReceive":"Pay","notional":5,` +
		`"fixedRate":-0.0425,"effectiveDate":"2026-03-04","maturityDate":"2031-03-04",` +
		`"conventions":"USD-SOFR-1Y-ACT360"`
	limitsJSON = `"maxConcentrationNotional":4,"maxOrderNotional":2,"maxOrderQuantity":1,` +
		`"maxPositionQuantity":3,"priceCollarBps":0,"priceMaxAgeMs":6`
)

func allLimits() SomeLimits {
	order, orders, position, concentration := int32(1), Units(2), int32(3), Units(4)
	credit, age, collar := Units(5), int64(6), int32(0)
	return SomeLimits{MaxOrderQuantity: &order, MaxOrderNotional: &orders,
		MaxPositionQuantity: &position, MaxConcentrationNotional: &concentration,
		CreditLimit: &credit, PriceMaxAgeMs: &age, PriceCollarBps: &collar}
}

// operations are those of every service, by its name.
var operations = map[string][]operation{
	"order-matcher": append(append(ofOrders, ofControls...), append(ofThePast, ofRecords...)...),
	"trade-processor": append(ofTrades,
		operation{id: "getHealth", want: "GET /health Bearer tok ",
			call: func(ctx context.Context, c *Client) (any, error) { return c.Health(ctx) }},
		operation{id: "getOpenAPI", want: "GET /openapi.json Bearer tok ",
			call: func(ctx context.Context, c *Client) (any, error) { return c.OpenAPI(ctx) }}),
	"account-service": {
		{id: "listAccounts", want: "GET /account/ Bearer tok ",
			call: func(ctx context.Context, c *Client) (any, error) { return c.Accounts(ctx) }},
		{id: "getAccount", want: "GET /account/4294967295 Bearer tok ",
			call: func(ctx context.Context, c *Client) (any, error) { return c.Account(ctx, 4294967295) }},
		{id: "createAccount", call: func(ctx context.Context, c *Client) (any, error) {
			return c.UpsertAccount(ctx, AccountRequest{ID: 1, DisplayName: `A"`, Enabled: new(bool)})
		}, want: `POST /account/ Bearer tok {"id":1,"displayName":"A\"","enabled":false}`},
		{id: "createAccount", call: func(ctx context.Context, c *Client) (any, error) {
			return c.UpsertAccount(ctx, AccountRequest{ID: 1, DisplayName: "A"})
		}, want: `POST /account/ Bearer tok {"id":1,"displayName":"A"}`},
		{id: "updateAccount", call: func(ctx context.Context, c *Client) (any, error) {
			return c.UpdateAccount(ctx, AccountRequest{ID: 1, DisplayName: "A", Enabled: new(bool)})
		}, want: `PUT /account/ Bearer tok {"id":1,"displayName":"A","enabled":false}`},
		{id: "getAccountSnapshot", want: "GET /account/control-snapshot Bearer tok ",
			call: func(ctx context.Context, c *Client) (any, error) { return c.AccountSnapshot(ctx) }},
		{id: "getHealth", want: "GET /health Bearer tok ",
			call: func(ctx context.Context, c *Client) (any, error) { return c.Health(ctx) }},
		{id: "getOpenAPI", want: "GET /openapi.json Bearer tok ",
			call: func(ctx context.Context, c *Client) (any, error) { return c.OpenAPI(ctx) }},
	},
	"reference-data": {
		{id: "listStocks", want: "GET /stocks Bearer tok ",
			call: func(ctx context.Context, c *Client) (any, error) { return c.Stocks(ctx) }},
		{id: "getStock", want: "GET /stocks/BRK.B%2Fx Bearer tok ",
			call: func(ctx context.Context, c *Client) (any, error) { return c.Stock(ctx, "BRK.B/x") }},
		{id: "upsertStock", call: func(ctx context.Context, c *Client) (any, error) {
			stock, _, err := c.UpsertStock(ctx, StockRequest{Ticker: "A", CompanyName: "B",
				Enabled: new(bool), Halted: new(bool)})
			return stock, err
		}, want: `POST /stocks Bearer tok {"ticker":"A","companyName":"B","enabled":false,` +
			`"halted":false}`},
		{id: "getStockSnapshot", want: "GET /stocks/control-snapshot Bearer tok ",
			call: func(ctx context.Context, c *Client) (any, error) { return c.StockSnapshot(ctx) }},
		{id: "getHealth", want: "GET /health Bearer tok ",
			call: func(ctx context.Context, c *Client) (any, error) { return c.Health(ctx) }},
		{id: "getOpenAPI", want: "GET /openapi.json Bearer tok ",
			call: func(ctx context.Context, c *Client) (any, error) { return c.OpenAPI(ctx) }},
	},
}

var ofOrders = []operation{
	{id: "createOrder", want: "POST /orders Bearer tok " + orderJSON,
		call: func(ctx context.Context, c *Client) (any, error) {
			return c.CreateOrder(ctx, &orderTerms)
		}},
	{id: "createOrderBatch", want: "POST /orders/batch Bearer tok [" + orderJSON +
		`,{"clientOrderId":"k","accountId":0,"security":"","side":"","quantity":0}]`,
		call: func(ctx context.Context, c *Client) (any, error) {
			return c.CreateOrderBatch(ctx, []OrderRequest{orderTerms, {ClientOrderID: "k"}})
		}},
	{id: "bookMarketTrade", call: func(ctx context.Context, c *Client) (any, error) {
		return c.BookMarketTrade(ctx, &TradeRequest{ClientOrderID: "k", AccountID: 1, Security: "A",
			Side: Buy, Quantity: 2})
	}, want: `POST /trades Bearer tok {"clientOrderId":"k","accountId":1,"security":"A",` +
		`"side":"Buy","quantity":2}`},
	{id: "bookMarketTrade", once: true, call: func(ctx context.Context, c *Client) (any, error) {
		return c.BookMarketTrade(ctx, &TradeRequest{AccountID: 1, Security: "A", Side: Buy, Quantity: 2})
	}, want: `POST /trades Bearer tok {"accountId":1,"security":"A","side":"Buy","quantity":2}`},
	{id: "cancelOrder", want: "POST /orders/ord-1/cancel Bearer tok ", once: true,
		call: func(ctx context.Context, c *Client) (any, error) { return c.Cancel(ctx, "ord-1") }},
	{id: "replaceOrder", call: func(ctx context.Context, c *Client) (any, error) {
		return c.Replace(ctx, "ord-1", &ReplaceRequest{"é", 5, Units(7)})
	}, want: `POST /orders/ord-1/replace Bearer tok ` +
		`{"clientOrderId":"é","quantity":5,"limitPrice":7}`},
	{id: "getOrder", want: "GET /orders/ord%2F1 Bearer tok ",
		call: func(ctx context.Context, c *Client) (any, error) { return c.Order(ctx, "ord/1") }},
	{id: "listOrders", call: func(ctx context.Context, c *Client) (any, error) {
		return c.Orders(ctx, OrdersQuery{"open", &account, "A&B", 5, "xyz"})
	}, want: "GET /orders?accountId=1&cursor=xyz&limit=5&security=A%26B&status=open Bearer tok "},
	{id: "listPositions", want: "GET /positions?accountId=1&cursor=x&limit=5 Bearer tok ",
		call: func(ctx context.Context, c *Client) (any, error) {
			return c.Positions(ctx, PositionsQuery{&account, 5, "x"})
		}},
	{id: "listPositions", want: "GET /positions?accountId=1&asOf=2026-03-02&format=csv Bearer tok ",
		stream: true, call: func(ctx context.Context, c *Client) (any, error) {
			return exported(c.Export(ctx, ExportQuery{TablePositions, "csv", "2026-03-02",
				url.Values{"accountId": {"1"}}}))
		}},
	{id: "getBook", want: "GET /book/BRK.B?depth=3 Bearer tok ",
		call: func(ctx context.Context, c *Client) (any, error) { return c.Book(ctx, "BRK.B", 3) }},
	{id: "getBlotter", want: "GET /recon/trades/blotter?limit=10&sinceSeq=9 Bearer tok ",
		call: func(ctx context.Context, c *Client) (any, error) { return c.Blotter(ctx, 9, 10) }},
	{id: "getBlotter", want: "GET /recon/trades/blotter?asOf=2026-03-02&format=parquet Bearer tok ",
		stream: true, call: func(ctx context.Context, c *Client) (any, error) {
			return exported(c.Export(ctx, ExportQuery{TableBlotter, "parquet", "2026-03-02", nil}))
		}},
	{id: "reindexFullHistory", want: "POST /recon/full-history/reindex Bearer tok ",
		call: func(ctx context.Context, c *Client) (any, error) { return c.Reindex(ctx) }},
	{id: "getFullHistory", want: "GET /recon/full-history/trades?limit=10&sinceSeq=9 Bearer tok ",
		call: func(ctx context.Context, c *Client) (any, error) {
			page, err := c.FullHistory(ctx, 9, 10)
			return struct { // the page of a blotter also has what the blotter has lost
				Items        []BlotterEntry `json:"items"`
				NextSinceSeq uint64         `json:"nextSinceSeq"`
			}{page.Items, page.NextSinceSeq}, err
		}},
	{id: "getRegulatoryReport", want: "GET /regulatory/report?fromSeq=2&toSeq=9 Bearer tok ",
		stream: true, call: func(ctx context.Context, c *Client) (any, error) {
			report, err := c.RegulatoryReport(ctx, 2, 9)
			return report, err
		}},
	{id: "getFeed", want: "GET /feed?accountId=1&fromSeq=7&topics=trades%2Cbook%3AA Bearer tok ",
		stream: true, call: func(ctx context.Context, c *Client) (any, error) {
			for range c.FeedOf(ctx, FeedQuery{Topics: []string{"trades", "book:A"},
				AccountID: &account, From: "7"}) {
				return nil, nil
			}
			return nil, nil
		}},
	{id: "bookSwap", want: "POST /swaps Bearer tok {" + swapJSON + "}",
		call: func(ctx context.Context, c *Client) (any, error) { return c.Swap(ctx, &swapTerms) }},
	{id: "bookSwap", want: `POST /swaps Bearer tok {"accountId":0,"payReceive":"","notional":0,` +
		`"fixedRate":0,"effectiveDate":"","maturityDate":"","conventions":""}`, once: true,
		call: func(ctx context.Context, c *Client) (any, error) { return c.Swap(ctx, &SwapRequest{}) }},
	{id: "bookSwaption", call: func(ctx context.Context, c *Client) (any, error) {
		return c.Swaption(ctx, &SwaptionRequest{swapTerms, "2026-03-02", "American"})
	}, want: "POST /swaptions Bearer tok {" + swapJSON +
		`,"expiryDate":"2026-03-02","exerciseStyle":"American"}`},
	{id: "showContract", want: "GET /contracts/SWPT%2F7 Bearer tok ",
		call: func(ctx context.Context, c *Client) (any, error) { return c.Contract(ctx, "SWPT/7") }},
	{id: "listContracts", want: "GET /contracts?accountId=1&cursor=x&limit=5 Bearer tok ",
		call: func(ctx context.Context, c *Client) (any, error) {
			return c.Contracts(ctx, ContractsQuery{&account, 5, "x"})
		}},
	{id: "riskExtract", once: true, call: func(ctx context.Context, c *Client) (any, error) {
		sequence, err := c.RiskExtract(ctx, "2026-03-02", 2)
		return map[string]uint64{"sequence": sequence}, err
	}, want: `POST /risk/extract Bearer tok {"sessionDate":"2026-03-02","priceVersion":2}`},
	{id: "riskExtract", once: true, call: func(ctx context.Context, c *Client) (any, error) {
		sequence, err := c.RiskExtract(ctx, "2026-03-02", 0)
		return map[string]uint64{"sequence": sequence}, err
	}, want: `POST /risk/extract Bearer tok {"sessionDate":"2026-03-02"}`},
}

// exported closes a file that was asked for.
func exported(file *Export, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	_, err = io.ReadAll(file)
	if bad := file.Close(); err == nil {
		err = bad
	}
	return nil, err
}

// TestRequestsAreWhatTheInterfaceSays: the method of every operation asks as its golden line says
// and as the service's document says, and reads every member of the answer.
func TestRequestsAreWhatTheInterfaceSays(t *testing.T) {
	for service, all := range operations {
		t.Run(service, func(t *testing.T) {
			d := readDocument(t, service)
			for _, o := range all {
				t.Run(o.id, func(t *testing.T) { d.check(t, o) })
			}
			d.everythingAsked(t)
		})
	}
}
