package client

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"

	"posttrade/matcher/strictjson"
)

// Prices sequences market prices; it needs an admin token. A repeated price is sequenced again, so
// the client does not repeat a request whose outcome is unknown.
func (c *Client) Prices(prices []PriceRequest) (accepted PricesAccepted, err error) {
	b := c.buffer()
	defer c.put(b)
	*b = append(*b, '[')
	for i, p := range prices {
		if i > 0 {
			*b = append(*b, ',')
		}
		*b = append(*b, `{"security":`...)
		*b = appendText(*b, p.Security)
		*b = append(*b, `,"price":`...)
		*b = append(strictjson.FormatDecimal(*b, int64(p.Price)), '}')
	}
	*b = append(*b, ']')
	r := call{method: "POST", path: "/prices", body: *b, want: 202}
	err = c.do(&r, into(&accepted))
	return accepted, err
}

// Positions lists positions.
func (c *Client) Positions(q PositionsQuery) (page PositionPage, err error) {
	err = c.get("/positions", list(url.Values{}, q.AccountID, q.Limit, q.Cursor), &page)
	return page, err
}

// Book shows the book of a security; depth 0 is the server's default.
func (c *Client) Book(security string, depth int) (book Book, err error) {
	v := url.Values{}
	if depth > 0 {
		v.Set("depth", strconv.Itoa(depth))
	}
	err = c.get("/book/"+url.PathEscape(security), v, &book)
	return book, err
}

// Blotter lists fills with a trade sequence above sinceSeq; it needs an admin
// token. limit 0 is the server's default.
func (c *Client) Blotter(sinceSeq uint64, limit int) (page BlotterPage, err error) {
	v := url.Values{}
	if sinceSeq > 0 {
		v.Set("sinceSeq", strconv.FormatUint(sinceSeq, 10))
	}
	err = c.get("/recon/trades/blotter", list(v, nil, limit, ""), &page)
	return page, err
}

// RiskControlAccount enables or disables an account. Controls need an admin token.
func (c *Client) RiskControlAccount(accountID uint32, enabled bool) (ControlApplied, error) {
	return c.control("account", map[string]any{"accountId": accountID, "enabled": enabled})
}

// RiskControlSecurity enables, disables, halts or resumes a security.
func (c *Client) RiskControlSecurity(security string,
	enabled, halted bool) (ControlApplied, error) {
	return c.control("security", map[string]any{"security": security, "enabled": enabled,
		"halted": halted})
}

// RiskControlRestriction restricts a security, which cancels its resting orders, or lifts that.
func (c *Client) RiskControlRestriction(security string, restricted bool) (ControlApplied, error) {
	return c.control("restriction", map[string]any{"security": security, "restricted": restricted})
}

// RiskControlPolicy sets the kill switch and the policy limits.
func (c *Client) RiskControlPolicy(p Policy) (ControlApplied, error) {
	return c.control("policy", p)
}

func (c *Client) control(name string, body any) (applied ControlApplied, err error) {
	b, err := json.Marshal(body)
	if err != nil {
		return applied, fmt.Errorf("client: control %s: %w", name, err)
	}
	// Setting a control twice has the effect of setting it once.
	r := call{method: "POST", path: "/risk/control/" + name, body: b, want: 200, repeat: true}
	err = c.do(&r, into(&applied))
	return applied, err
}

// RiskControls shows the gate's image; it needs an admin token.
func (c *Client) RiskControls() (controls Controls, err error) {
	err = c.get("/risk/control/snapshot", nil, &controls)
	return controls, err
}

// Health shows the server's health.
func (c *Client) Health() (health Health, err error) {
	err = c.get("/health", nil, &health)
	return health, err
}
