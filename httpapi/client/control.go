package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
)

// Prices sequences market prices; it needs an admin token. A repeated price is sequenced again, so
// the client does not repeat a request whose outcome is unknown.
//
// Each price is an act on record, with the price before it. The server sequences at most 256 prices
// at a time: after an error an unknown number of the first ones may stand. A price that names an
// unknown security refuses the whole request with 404 before anything is sequenced.
func (c *Client) Prices(ctx context.Context,
	prices []PriceRequest) (accepted PricesAccepted, err error) {
	err = c.send(ctx, &call{path: "/prices", want: http.StatusAccepted}, prices, &accepted)
	return accepted, err
}

// Positions lists positions.
//
// The order is by account, then security. A flat position stays in the list.
func (c *Client) Positions(ctx context.Context, q PositionsQuery) (page PositionPage, err error) {
	err = c.get(ctx, "/positions", list(q.AccountID, q.Limit, q.Cursor), &page)
	return page, err
}

// Credit lists the credit that accounts use. All accounts of a page are of one sequence. The server
// replays to the durable head for it, so the answer may be a 503 BUSY: repeat it.
func (c *Client) Credit(ctx context.Context, q PositionsQuery) (page CreditPage, err error) {
	err = c.get(ctx, "/credit", list(q.AccountID, q.Limit, q.Cursor), &page)
	return page, err
}

// Book shows the book of a security; depth 0 is the server's default.
//
// depth is how many levels of each side, 1 to 1000. It needs no token: a book shows no account.
func (c *Client) Book(ctx context.Context, security string, depth int) (book Book, err error) {
	v := url.Values{}
	setCount(v, "depth", uint64(max(depth, 0)))
	err = c.get(ctx, "/book/"+url.PathEscape(security), v, &book)
	return book, err
}

// Blotter lists fills with a trade sequence above sinceSeq; it needs an admin token. limit 0 is the
// server's default.
//
// The blotter holds the newest fills only. Page.Evicted above sinceSeq says that the difference is
// gone: FullHistory has it.
func (c *Client) Blotter(ctx context.Context, sinceSeq uint64,
	limit int) (page BlotterPage, err error) {
	err = c.get(ctx, "/recon/trades/blotter", since(sinceSeq, limit), &page)
	return page, err
}

// since returns the parameters of a list of fills.
func since(tradeSeq uint64, limit int) url.Values {
	v := list(nil, limit, "")
	setCount(v, "sinceSeq", tradeSeq)
	return v
}

// Controls need an admin token. In production they need a reason: see Because.

// RiskControlAccount enables or disables an account. The flag stays until an operator, or a change
// of the account at its source, sets it again.
func (c *Client) RiskControlAccount(ctx context.Context, accountID uint32,
	enabled bool) (ControlApplied, error) {
	return c.control(ctx, "account", map[string]any{"accountId": accountID, "enabled": enabled})
}

// RiskControlSecurity enables, disables, halts or resumes a security. Both flags are set: a caller
// that changes one passes the other as it is.
func (c *Client) RiskControlSecurity(ctx context.Context, security string,
	enabled, halted bool) (ControlApplied, error) {
	return c.control(ctx, "security", map[string]any{"security": security, "enabled": enabled,
		"halted": halted})
}

// RiskControlRestriction restricts a security, which cancels its resting orders, or lifts that.
func (c *Client) RiskControlRestriction(ctx context.Context, security string,
	restricted bool) (ControlApplied, error) {
	return c.control(ctx, "restriction",
		map[string]any{"security": security, "restricted": restricted})
}

// RiskControlPolicy sets the kill switch and the policy limits.
//
// The version must be above the one in force; otherwise nothing changes, and the error is a 409
// STALE_VERSION.
func (c *Client) RiskControlPolicy(ctx context.Context, p Policy) (ControlApplied, error) {
	return c.control(ctx, "policy", p)
}

// RiskControlLimits changes limits of all accounts; nil ones stay as they are. policyVersion must
// be above every one before, of policies and limits.
func (c *Client) RiskControlLimits(ctx context.Context, policyVersion int64,
	limits SomeLimits) (ControlApplied, error) {
	return c.control(ctx, "limits",
		map[string]any{"policyVersion": policyVersion, "limits": limits})
}

// RiskControlAccountLimits gives an account limits of its own; nil ones stay as they are. For those
// that inherit names, such as creditLimit, the account has the limits of all accounts again.
//
// Errors: a 404 for an unknown account, a 409 STALE_VERSION as for RiskControlLimits. When limits
// do not become JSON nothing is sent.
func (c *Client) RiskControlAccountLimits(ctx context.Context, accountID uint32,
	policyVersion int64, limits SomeLimits, inherit ...string) (applied ControlApplied, err error) {
	text, err := json.Marshal(limits)
	if err != nil {
		return applied, fmt.Errorf("client: limits: %w: %w", errUnsent, err)
	}
	all := map[string]any{}
	if err := json.Unmarshal(text, &all); err != nil {
		return applied, fmt.Errorf("client: limits: %w: %w", errUnsent, err)
	}
	for _, name := range inherit {
		all[name] = nil
	}
	name := "accounts/" + strconv.FormatUint(uint64(accountID), 10) + "/limits"
	return c.control(ctx, name, map[string]any{"policyVersion": policyVersion, "limits": all})
}

// control sends a control of the order-matcher. name is the path below /risk/control/.
func (c *Client) control(ctx context.Context, name string,
	body any) (applied ControlApplied, err error) {
	// Setting a control twice has the effect of setting it once.
	err = c.send(ctx, &call{path: "/risk/control/" + name, repeat: true}, body, &applied)
	return applied, err
}

// RiskControls shows the gate's image; it needs an admin token.
func (c *Client) RiskControls(ctx context.Context) (controls Controls, err error) {
	err = c.get(ctx, "/risk/control/snapshot", nil, &controls)
	return controls, err
}

// Health shows the server's health.
//
// Every service has this endpoint, at every member, and it needs no token.
func (c *Client) Health(ctx context.Context) (health Health, err error) {
	err = c.get(ctx, "/health", nil, &health)
	return health, err
}

// OpenAPI returns the document that describes the service.
func (c *Client) OpenAPI(ctx context.Context) (document []byte, err error) {
	err = c.get(ctx, "/openapi.json", nil, &document)
	return document, err
}
