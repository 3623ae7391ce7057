package client

import (
	"errors"
	"testing"
)

func TestSourceRequestsAreWhatTheInterfaceSays(t *testing.T) {
	on, off := true, false
	tests := []struct {
		name   string
		call   func(c *Client) (any, error)
		reply  reply
		want   string // asked
		answer any
	}{
		{"accounts", func(c *Client) (any, error) { all, err := c.Accounts(); return len(all), err },
			reply{200, `[{"id":1,"displayName":"A"},{"id":2,"displayName":"B"}]`},
			`GET /account/ Bearer tok `, 2},
		{"account", func(c *Client) (any, error) { return c.Account(4294967295) },
			reply{200, `{"id":4294967295,"displayName":"é"}`}, `GET /account/4294967295 Bearer tok `,
			Account{4294967295, "é"}},
		{"upsert account", func(c *Client) (any, error) {
			return c.UpsertAccount(AccountRequest{ID: 1, DisplayName: `A"`})
		},
			reply{200, `{"id":1,"displayName":"A\""}`},
			`POST /account/ Bearer tok {"id":1,"displayName":"A\""}`, Account{1, `A"`}},
		{"disable account", func(c *Client) (any, error) {
			return c.UpsertAccount(AccountRequest{ID: 1, DisplayName: "A", Enabled: &off})
		}, reply{200, `{}`}, `POST /account/ Bearer tok {"id":1,"displayName":"A","enabled":false}`,
			Account{}},
		{"account snapshot", func(c *Client) (any, error) {
			b, err := c.AccountSnapshot()
			return string(b), err
		},
			reply{200, `any text`}, `GET /account/control-snapshot Bearer tok `, "any text"},
		{"stocks", func(c *Client) (any, error) { all, err := c.Stocks(); return len(all), err },
			reply{200, `[]`}, `GET /stocks Bearer tok `, 0},
		{"stock", func(c *Client) (any, error) { return c.Stock("BRK.B/x") },
			reply{200, `{"ticker":"BRK.B","companyName":"B"}`}, `GET /stocks/BRK.B%2Fx Bearer tok `,
			Stock{"BRK.B", "B"}},
		{"new stock", func(c *Client) (any, error) {
			s, created, err := c.UpsertStock(StockRequest{Ticker: "A", CompanyName: "B", Enabled: &on,
				Halted: &on})
			return map[Stock]bool{s: created}[Stock{"A", "B"}], err
		}, reply{201, `{"ticker":"A","companyName":"B"}`},
			`POST /stocks Bearer tok {"ticker":"A","companyName":"B","enabled":true,"halted":true}`, true},
		{"known stock", func(c *Client) (any, error) {
			_, created, err := c.UpsertStock(StockRequest{Ticker: "A"})
			return created, err
		}, reply{200, `{}`}, `POST /stocks Bearer tok {"ticker":"A","companyName":""}`, false},
		{"stock snapshot", func(c *Client) (any, error) {
			b, err := c.StockSnapshot()
			return string(b), err
		},
			reply{200, `x`}, `GET /stocks/control-snapshot Bearer tok `, "x"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, s := scripted(t, Config{Token: "tok"}, tt.reply, reply{500, "{}"}, reply{202, "{}"})
			got, err := tt.call(c)
			if err != nil || got != tt.answer || s.requests()[0] != tt.want {
				t.Errorf("%v, %v of %s\nwant %v of %s", got, err, s.requests()[0], tt.answer, tt.want)
			}
			var p *Problem
			for _, status := range []int{500, 202} { // no other status is a success
				if _, err := tt.call(c); !errors.As(err, &p) || p.Status != status {
					t.Errorf("%d: %v", status, err)
				}
			}
			// All of them are safe to repeat.
			c, s = scripted(t, Config{Token: "tok", Retries: 2, Pause: func(int) {}}, reply{},
				reply{503, "{}"}, tt.reply)
			if got, err := tt.call(c); err != nil || got != tt.answer || len(s.requests()) != 3 {
				t.Errorf("repeated: %v, %v after %d requests", got, err, len(s.requests()))
			}
		})
	}
}
