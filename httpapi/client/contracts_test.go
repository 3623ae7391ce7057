package client

import (
	"errors"
	"testing"
)

// TestContractRequestsAreWhatTheInterfaceSays also shows which requests are repeated while their
// outcome is unknown.
func TestContractRequestsAreWhatTheInterfaceSays(t *testing.T) {
	account := uint32(1)
	swap := SwapRequest{AccountID: 1, PayReceive: Pay, Notional: 5, FixedRate: -42_500,
		EffectiveDate: "2026-03-04",
		MaturityDate:  "2031-03-04", Conventions: "USD-SOFR-1Y-ACT360"}
	keyed := swap
	keyed.ClientOrderID = `a"b`
	const terms = `"accountId":1,"payReceive":"Pay","notional":5,"fixedRate":-0.0425,` +
		`"effectiveDate":"2026-03-04",` +
		`"maturityDate":"2031-03-04","conventions":"USD-SOFR-1Y-ACT360"`
	const contract = `{"contractId":"SWPT-7","productType":"SWAPTION","clientOrderId":null,` + terms +
		`,"expiryDate":"2026-03-02","exerciseStyle":"American","sequence":7}`
	shown := Contract{"SWPT-7", "SWAPTION", "", 1, Pay, 5, -42_500, "2026-03-04", "2031-03-04",
		"USD-SOFR-1Y-ACT360", "2026-03-02", "American", 7}
	tests := []struct {
		name   string
		call   func(c *Client) (any, error)
		reply  reply
		want   string // asked
		answer any
		repeat bool
	}{
		{"swap", func(c *Client) (any, error) { return c.Swap(&swap) },
			reply{200, `{"contractId":"SW-3","sequence":3,"booked":true}`},
			`POST /swaps Bearer tok {` + terms + `}`, Booked{"SW-3", 3, true}, false},
		{"swap with a key", func(c *Client) (any, error) { return c.Swap(&keyed) },
			reply{200, `{"contractId":"SW-3","sequence":3,"booked":true}`},
			`POST /swaps Bearer tok {"clientOrderId":"a\"b",` + terms + `}`, Booked{"SW-3", 3, true}, true},
		{"swaption", func(c *Client) (any, error) {
			return c.Swaption(&SwaptionRequest{swap, "2026-03-02", "American"})
		},
			reply{200, `{"contractId":"SWPT-7","sequence":7,"booked":true}`},
			`POST /swaptions Bearer tok {` + terms +
				`,"expiryDate":"2026-03-02","exerciseStyle":"American"}`, Booked{"SWPT-7", 7, true}, false},
		{"swaption with a key", func(c *Client) (any, error) {
			return c.Swaption(&SwaptionRequest{keyed, "2026-03-02", "European"})
		}, reply{200, `{}`},
			`POST /swaptions Bearer tok {"clientOrderId":"a\"b",` + terms +
				`,"expiryDate":"2026-03-02","exerciseStyle":"European"}`, Booked{}, true},
		{"contract", func(c *Client) (any, error) { return c.Contract("SWPT/7") }, reply{200, contract},
			`GET /contracts/SWPT%2F7 Bearer tok `, shown, true},
		{"contracts", func(c *Client) (any, error) {
			page, err := c.Contracts(ContractsQuery{&account, 5, "x"})
			return len(page.Items) == 1 && page.Items[0] == shown && page.NextCursor == "y", err
		}, reply{200, `{"items":[` + contract + `],"nextCursor":"y"}`},
			`GET /contracts?accountId=1&cursor=x&limit=5 Bearer tok `, true, true},
		{"extract", func(c *Client) (any, error) { return c.RiskExtract("2026-03-02", 0) },
			reply{202, `{"sequence":9}`},
			`POST /risk/extract Bearer tok {"sessionDate":"2026-03-02"}`, uint64(9), false},
		{"extract of other marks", func(c *Client) (any, error) { return c.RiskExtract("2026-03-02", 2) },
			reply{202, `{"sequence":9}`},
			`POST /risk/extract Bearer tok {"sessionDate":"2026-03-02","priceVersion":2}`, uint64(9), false},
		{"marks", func(c *Client) (any, error) {
			return c.PutMarks("2026-03-02", 3, []Mark{{"A", 1, ""}, {"B", Units(2), "OFFICIAL"}})
		},
			reply{200, `{"sessionDate":"2026-03-02","priceVersion":3,"marks":2}`},
			`PUT /eod/prices/2026-03-02/v3 Bearer tok [{"security":"A","price":0.000001},{"security":"B",` +
				`"price":2,"quality":"OFFICIAL"}]`,
			MarksPublished{"2026-03-02", 3, 2}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, s := scripted(t, Config{Token: "tok"}, tt.reply, reply{422, `{"code":"RISK_REFUSED"}`},
				reply{201, "{}"}, reply{tt.reply.status, "["})
			got, err := tt.call(c)
			if err != nil || got != tt.answer || s.requests()[0] != tt.want {
				t.Errorf("%v, %v of %s\nwant %v of %s", got, err, s.requests()[0], tt.answer, tt.want)
			}
			var p *Problem
			for _, status := range []int{422, 201} { // no other status is a success
				if _, err := tt.call(c); !errors.As(err, &p) || p.Status != status {
					t.Errorf("%d: %v", status, err)
				}
			}
			if _, err := tt.call(c); !errors.Is(err, ErrAnswer) {
				t.Errorf("an unreadable answer: %v", err)
			}
			c, s = scripted(t, Config{Token: "tok", Retries: 2, Pause: func(int) {}}, reply{},
				reply{504, "{}"}, tt.reply)
			if _, err := tt.call(c); (err == nil) != tt.repeat || (len(s.requests()) == 3) != tt.repeat {
				t.Errorf("unknown: %v after %d requests", err, len(s.requests()))
			}
			c, s = scripted(t, Config{Token: "tok", Retries: 1, Pause: func(int) {}},
				reply{503, `{"code":"X","sequenced":false}`}, tt.reply)
			if _, err := tt.call(c); err != nil || len(s.requests()) != 2 {
				t.Errorf("not sequenced: %v after %d requests", err, len(s.requests()))
			}
		})
	}
}
