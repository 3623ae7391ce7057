package client

import (
	"context"
	"time"
)

var ofControls = []operation{
	{id: "publishPrices", once: true, call: func(ctx context.Context, c *Client) (any, error) {
		return c.Prices(ctx, []PriceRequest{{"A", 1}, {"B", Units(2)}})
	}, want: `POST /prices Bearer tok [{"security":"A","price":0.000001},{"security":"B","price":2}]`},
	{id: "controlAccount", want: `POST /risk/control/account Bearer tok ` +
		`{"accountId":1,"enabled":true}`,
		call: func(ctx context.Context, c *Client) (any, error) {
			return c.RiskControlAccount(ctx, 1, true)
		}},
	{id: "controlSecurity", want: `POST /risk/control/security Bearer tok ` +
		`{"enabled":true,"halted":false,"security":"A"}`,
		call: func(ctx context.Context, c *Client) (any, error) {
			return c.RiskControlSecurity(ctx, "A", true, false)
		}},
	{id: "controlRestriction", want: `POST /risk/control/restriction Bearer tok ` +
		`{"restricted":true,"security":"A"}`,
		call: func(ctx context.Context, c *Client) (any, error) {
			return c.RiskControlRestriction(ctx, "A", true)
		}},
	{id: "controlPolicy", call: func(ctx context.Context, c *Client) (any, error) {
		return c.RiskControlPolicy(ctx, Policy{1, true, 5, Units(1)})
	}, want: `POST /risk/control/policy Bearer tok {"policyVersion":1,"killSwitch":true,` +
		`"maxPositionQuantity":5,"maxConcentrationNotional":1}`},
	{id: "controlLimits", call: func(ctx context.Context, c *Client) (any, error) {
		return c.RiskControlLimits(ctx, 7, allLimits())
	}, want: `POST /risk/control/limits Bearer tok {"limits":{"maxOrderQuantity":1,` +
		`"maxOrderNotional":2,"maxPositionQuantity":3,"maxConcentrationNotional":4,` +
		`"creditLimit":5,"priceMaxAgeMs":6,"priceCollarBps":0},"policyVersion":7}`},
	{id: "controlAccountLimits", call: func(ctx context.Context, c *Client) (any, error) {
		return c.RiskControlAccountLimits(ctx, 3, 7, allLimits(), "creditLimit")
	}, want: `POST /risk/control/accounts/3/limits Bearer tok {"limits":{"creditLimit":null,` +
		limitsJSON + `},"policyVersion":7}`},
	{id: "getControls", want: "GET /risk/control/snapshot Bearer tok ",
		call: func(ctx context.Context, c *Client) (any, error) { return c.RiskControls(ctx) }},
	{id: "getHealth", want: "GET /health Bearer tok ",
		call: func(ctx context.Context, c *Client) (any, error) { return c.Health(ctx) }},
	{id: "getOpenAPI", want: "GET /openapi.json Bearer tok ",
		call: func(ctx context.Context, c *Client) (any, error) { return c.OpenAPI(ctx) }},
}

var ofThePast = []operation{
	{id: "getPastBook", want: "GET /as-of/7/book/A%2FB?depth=3 Bearer tok ",
		call: func(ctx context.Context, c *Client) (any, error) {
			return c.AsOf(7).Book(ctx, "A/B", 3)
		}},
	{id: "listPastPositions", want: "GET /as-of/0/positions?accountId=1&cursor=x&limit=5 Bearer tok ",
		call: func(ctx context.Context, c *Client) (any, error) {
			return c.AsOf(0).Positions(ctx, PositionsQuery{&account, 5, "x"})
		}},
	{id: "listCredit", want: "GET /credit?accountId=1&cursor=x&limit=5 Bearer tok ",
		call: func(ctx context.Context, c *Client) (any, error) {
			return c.Credit(ctx, PositionsQuery{&account, 5, "x"})
		}},
	{id: "listPastCredit", want: "GET /as-of/7/credit?accountId=1&cursor=x&limit=5 Bearer tok ",
		call: func(ctx context.Context, c *Client) (any, error) {
			return c.AsOf(7).Credit(ctx, PositionsQuery{&account, 5, "x"})
		}},
	{id: "listPastOrders", call: func(ctx context.Context, c *Client) (any, error) {
		return c.AsOf(7).Orders(ctx, OrdersQuery{"open", &account, "A", 5, "x"})
	}, want: "GET /as-of/7/orders?accountId=1&cursor=x&limit=5&security=A&status=open Bearer tok "},
	{id: "getPastOrder", want: "GET /as-of/7/orders/ord-1 Bearer tok ",
		call: func(ctx context.Context, c *Client) (any, error) { return c.AsOf(7).Order(ctx, "ord-1") }},
	{id: "listPastAccounts", want: "GET /as-of/7/accounts Bearer tok ",
		call: func(ctx context.Context, c *Client) (any, error) { return c.AsOf(7).Accounts(ctx) }},
	{id: "getPastControls", want: "GET /as-of/7/risk/control/snapshot Bearer tok ",
		call: func(ctx context.Context, c *Client) (any, error) { return c.AsOf(7).RiskControls(ctx) }},
	{id: "listPastTrades", call: func(ctx context.Context, c *Client) (any, error) {
		return c.AsOf(7).Trades(ctx, PastTradesQuery{&account, "A", 5, "x"})
	}, want: "GET /as-of/7/trades?accountId=1&cursor=x&limit=5&security=A Bearer tok "},
	{id: "listPastContracts", want: "GET /as-of/7/contracts?accountId=1&cursor=x&limit=5 Bearer tok ",
		call: func(ctx context.Context, c *Client) (any, error) {
			return c.AsOf(7).Contracts(ctx, ContractsQuery{&account, 5, "x"})
		}},
	{id: "getPastContract", want: "GET /as-of/7/contracts/SW-1 Bearer tok ",
		call: func(ctx context.Context, c *Client) (any, error) {
			return c.AsOf(7).Contract(ctx, "SW-1")
		}},
}

var ofRecords = []operation{
	{id: "whyOrder", want: "GET /orders/ord-1/why Bearer tok ",
		call: func(ctx context.Context, c *Client) (any, error) { return c.WhyOrder(ctx, "ord-1") }},
	{id: "whyContract", want: "GET /contracts/SW-1/why Bearer tok ",
		call: func(ctx context.Context, c *Client) (any, error) { return c.WhyContract(ctx, "SW-1") }},
	{id: "why", want: "GET /why?inputSeq=7 Bearer tok ",
		call: func(ctx context.Context, c *Client) (any, error) { return c.Why(ctx, 7) }},
	{id: "getOperatorActs", call: func(ctx context.Context, c *Client) (any, error) {
		acts, err := c.Audit(ctx, AuditQuery{7, 5, "J O+s", "halt", &account, "ord-1"})
		if len(acts) == 1 {
			return acts[0], err
		}
		return acts, err
	}, want: "GET /audit?accountId=1&fromSeq=7&kind=halt&limit=5&orderId=ord-1&subject=J%20O%2Bs " +
		"Bearer tok "},
	{id: "getCheckpoint", want: "GET /log/checkpoint Bearer tok ",
		call: func(ctx context.Context, c *Client) (any, error) { return c.Checkpoint(ctx) }},
	{id: "getTile", want: "GET /log/tile/entries/x001/234.p/5 Bearer tok ",
		call: func(ctx context.Context, c *Client) (any, error) {
			return c.Tile(ctx, "entries/x001/234.p/5")
		}},
	{id: "getLogMember", want: "GET /log/member?size=9 Bearer tok ",
		call: func(ctx context.Context, c *Client) (any, error) { return c.LogMember(ctx, 9) }},
	{id: "getProof", call: func(ctx context.Context, c *Client) (any, error) {
		return c.Proof(ctx, ProofQuery{InputSeq: 1, TradeID: "trd-2", OrderID: "ord-3",
			ContractID: "SW-4"})
	}, want: "GET /evidence/proof?contractId=SW-4&inputSeq=1&orderId=ord-3&tradeId=trd-2 Bearer tok "},
}

var ofTrades = []operation{
	{id: "mintDevToken", call: func(ctx context.Context, c *Client) (any, error) {
		return c.DevToken(ctx, "master", TokenRequest{Subject: "a", TTLSeconds: 5})
	}, want: `POST /auth/dev-token Bearer tok {"subject":"a","accounts":[],"admin":false,` +
		`"ttlSeconds":5} master`},
	{id: "revokeTokens", want: `POST /auth/revoke Bearer tok {"subject":"a"}`, once: true,
		call: func(ctx context.Context, c *Client) (any, error) { return c.RevokeTokens(ctx, "a") }},
	{id: "listTrades", call: func(ctx context.Context, c *Client) (any, error) {
		return c.Trades(ctx, TradesQuery{&account, "A", "Settled", "2026-03-02", "2026-03-03", day,
			day.Add(time.Hour), 5, "x", "newest"})
	}, want: "GET /trades?accountId=1&cursor=x&from=2026-03-02T10%3A00%3A00.001Z&limit=5&" +
		"order=newest&security=A&settlementDate=2026-03-02&status=Settled&" +
		"to=2026-03-02T11%3A00%3A00.001Z&" +
		"tradeDate=2026-03-03 Bearer tok "},
	{id: "listTrades", want: "GET /trades?asOf=2026-03-02&format=csv Bearer tok ", stream: true,
		call: func(ctx context.Context, c *Client) (any, error) {
			return exported(c.Export(ctx, ExportQuery{TableTrades, "csv", "2026-03-02", nil}))
		}},
	{id: "getTrade", want: "GET /trades/trd-1 Bearer tok ",
		call: func(ctx context.Context, c *Client) (any, error) { return c.TradeRow(ctx, "trd-1") }},
	{id: "forceSettlement", want: "POST /trades/trd-1/settlement/force Bearer tok ",
		call: func(ctx context.Context, c *Client) (any, error) {
			return c.ForceSettlement(ctx, "trd-1")
		}},
	{id: "getSettlementCalendar", call: func(ctx context.Context, c *Client) (any, error) {
		return c.SettlementCalendar(ctx, &account, "2026-03-02", "2026-03-09")
	}, want: "GET /settlement/calendar?accountId=1&from=2026-03-02&to=2026-03-09 Bearer tok "},
	{id: "getReconStatus", want: "GET /recon/status Bearer tok ",
		call: func(ctx context.Context, c *Client) (any, error) { return c.ReconStatus(ctx) }},
	{id: "listBreaks", want: "GET /recon/breaks?class=FIELD_MISMATCH&cursor=y&limit=3 Bearer tok ",
		call: func(ctx context.Context, c *Client) (any, error) {
			return c.ReconBreaks(ctx, "FIELD_MISMATCH", 3, "y")
		}},
	{id: "sweepOrphans", want: "POST /recon/orphan-sweep Bearer tok ",
		call: func(ctx context.Context, c *Client) (any, error) { return c.OrphanSweep(ctx) }},
	{id: "getLastOrphanSweep", want: "GET /recon/orphan-sweep/last Bearer tok ",
		call: func(ctx context.Context, c *Client) (any, error) { return c.LastOrphanSweep(ctx) }},
	{id: "repairTrades", call: func(ctx context.Context, c *Client) (any, error) {
		return c.RepairRows(ctx, RepairQuery{From: "trd-1", To: "trd-9", DryRun: true})
	}, want: `POST /recon/repair Bearer tok {"from":"trd-1","to":"trd-9","dryRun":true}`},
	{id: "takeStatement", call: func(ctx context.Context, c *Client) (any, error) {
		return c.TakeStatement(ctx, []StatementLine{{"ext-1", 1, "A", Buy, 2, Units(3), day.UTC()}})
	}, want: `POST /recon/statement Bearer tok [{"id":"ext-1","accountId":1,"security":"A",` +
		`"side":"Buy","quantity":2,"price":3,"timestamp":"2026-03-02T10:00:00.001Z"}]`},
	{id: "getTCAReport", want: "GET /tca/report/trd-1 Bearer tok ",
		call: func(ctx context.Context, c *Client) (any, error) { return c.TCAReport(ctx, "trd-1") }},
	{id: "getTCASummary", call: func(ctx context.Context, c *Client) (any, error) {
		return c.TCASummary(ctx, TCAQuery{&account, day, day.Add(time.Hour)})
	}, want: "GET /tca/summary?accountId=1&from=2026-03-02T10%3A00%3A00.001Z&" +
		"to=2026-03-02T11%3A00%3A00.001Z Bearer tok "},
	{id: "scrape", want: "GET /actuator/prometheus Bearer tok ",
		call: func(ctx context.Context, c *Client) (any, error) { return c.Metrics(ctx) }},
	{id: "putMarks", call: func(ctx context.Context, c *Client) (any, error) {
		return c.PutMarks(ctx, "2026-03-02", 3, []Mark{{"A", 1, ""}, {"B", Units(2), "OFFICIAL"}})
	}, want: `PUT /eod/prices/2026-03-02/v3 Bearer tok [{"security":"A","price":0.000001},` +
		`{"security":"B","price":2,"quality":"OFFICIAL"}]`},
}
