package client

import (
	"context"
	"net/url"
	"time"
)

// lasting bounds a request that goes through the whole history. It is longer than the server's own
// bound.
const lasting = 31 * time.Minute

// These methods are the trade-processor's, except Reindex and FullHistory: a Client calls one
// service, the one at its address.

// DevToken mints a token for local development. masterSecret is the secret that the server's
// operator has set. The call needs no token. A wrong secret is a 401; after five of them the
// address waits a minute, with 429. Where the server has no master secret the endpoint is a 404.
func (c *Client) DevToken(ctx context.Context, masterSecret string,
	q TokenRequest) (token Token, err error) {
	if q.Accounts == nil {
		q.Accounts = []uint32{}
	}
	r := call{path: "/auth/dev-token", repeat: true, secret: masterSecret}
	err = c.send(ctx, &r, q, &token)
	return token, err
}

// RevokeTokens refuses every token of a subject that was issued until now, and those that do not
// say when; it needs an admin token. A second request also refuses the tokens issued between the
// two, so the client does not repeat a request whose outcome is unknown.
func (c *Client) RevokeTokens(ctx context.Context, subject string) (revoked Revoked, err error) {
	err = c.send(ctx, &call{path: "/auth/revoke"}, map[string]any{"subject": subject}, &revoked)
	return revoked, err
}

// Trades lists trade rows by trade sequence. In both orders bookings from outside come behind the
// journal's trades.
//
// Rows of accounts that the token does not cover are not in it. The projection follows the journal
// by milliseconds: After waits for a row.
func (c *Client) Trades(ctx context.Context, q TradesQuery) (page TradePage, err error) {
	v := list(q.AccountID, q.Limit, q.Cursor)
	set(v, "security", q.Security)
	set(v, "status", q.Status)
	set(v, "settlementDate", q.SettlementDate)
	set(v, "tradeDate", q.TradeDate)
	setTime(v, "from", q.From)
	setTime(v, "to", q.To)
	set(v, "order", q.Order)
	err = c.get(ctx, "/trades", v, &page)
	return page, err
}

// TradeRow shows one trade row. tradeID is trd-N, or the ext- id of a booking from outside.
func (c *Client) TradeRow(ctx context.Context, tradeID string) (row TradeRow, err error) {
	err = c.get(ctx, "/trades/"+url.PathEscape(tradeID), nil, &row)
	return row, err
}

// ForceSettlement settles a trade before its settlement date. A settled trade stays as it is, so
// the request is repeated like a read.
//
// It needs a token for the trade's account, and is an act on record.
func (c *Client) ForceSettlement(ctx context.Context, tradeID string) (row TradeRow, err error) {
	err = c.post(ctx, "/trades/"+url.PathEscape(tradeID)+"/settlement/force", 0, &row)
	return row, err
}

// SettlementCalendar counts the trades of the settlement dates from to to, yyyy-mm-dd, of one
// account or, for nil, of all that the token may see; to "" is from. At most 400 days are shown at
// a time.
func (c *Client) SettlementCalendar(ctx context.Context, accountID *uint32,
	from, to string) (calendar SettlementCalendar, err error) {
	v := list(accountID, 0, "")
	set(v, "from", from)
	set(v, "to", to)
	err = c.get(ctx, "/settlement/calendar", v, &calendar)
	return calendar, err
}

// ReconStatus shows the reconciliation's counts. Any valid token is enough.
func (c *Client) ReconStatus(ctx context.Context) (status ReconStatus, err error) {
	err = c.get(ctx, "/recon/status", nil, &status)
	return status, err
}

// ReconBreaks lists open breaks; it needs an admin token. class "" is all of them.
func (c *Client) ReconBreaks(ctx context.Context, class string, limit int,
	cursor string) (page BreakPage, err error) {
	v := list(nil, limit, cursor)
	set(v, "class", class)
	err = c.get(ctx, "/recon/breaks", v, &page)
	return page, err
}

// OrphanSweep reindexes the full history and looks for rows without a fill; it needs an admin token
// and may take long. A second one at the same time is a 409.
func (c *Client) OrphanSweep(ctx context.Context) (sweep OrphanSweep, err error) {
	err = c.post(ctx, "/recon/orphan-sweep", lasting, &sweep)
	return sweep, err
}

// LastOrphanSweep shows what the last sweep found; 404 before the first.
func (c *Client) LastOrphanSweep(ctx context.Context) (sweep OrphanSweep, err error) {
	err = c.get(ctx, "/recon/orphan-sweep/last", nil, &sweep)
	return sweep, err
}

// RepairRows makes trade rows again from the journal; it needs an admin token and may take long. A
// row that is right stays as it is, so the request is repeated like a read. A second one at the
// same time is a 409.
//
// The rows as they were are kept in the database beside the repair. DryRun changes nothing and is
// no act.
func (c *Client) RepairRows(ctx context.Context, q RepairQuery) (done Repair, err error) {
	r := call{path: "/recon/repair", repeat: true, timeout: lasting}
	err = c.send(ctx, &r, q, &done)
	return done, err
}

// TakeStatement states bookings from outside; it needs an admin token. A line replaces an earlier
// one of the same id.
//
// All lines are kept or none, so the request is repeated like a read.
func (c *Client) TakeStatement(ctx context.Context,
	lines []StatementLine) (s Statement, err error) {
	r := call{path: "/recon/statement", repeat: true, timeout: lasting}
	err = c.send(ctx, &r, lines, &s)
	return s, err
}

// TCAReport shows what a trade has cost.
//
// Errors: a 404 for a booking from outside, of which the journal has no prices; a 503 NOT_CAUGHT_UP
// while the price history is behind the trade.
func (c *Client) TCAReport(ctx context.Context, tradeID string) (report TCAReport, err error) {
	err = c.get(ctx, "/tca/report/"+url.PathEscape(tradeID), nil, &report)
	return report, err
}

// TCASummary shows what the trades executed in [From, To) have cost.
func (c *Client) TCASummary(ctx context.Context, q TCAQuery) (summary TCASummary, err error) {
	v := list(q.AccountID, 0, "")
	setTime(v, "from", q.From)
	setTime(v, "to", q.To)
	err = c.get(ctx, "/tca/summary", v, &summary)
	return summary, err
}

// Reindex replays the whole journal into the order-matcher's full-history index; it needs an admin
// token and may take long. The index belongs to the member that answers, and lasts until its
// process ends. A second reindex at the same time is a 409.
func (c *Client) Reindex(ctx context.Context) (info Reindexed, err error) {
	err = c.post(ctx, "/recon/full-history/reindex", lasting, &info)
	return info, err
}

// FullHistory lists the index's fills with a trade sequence above sinceSeq; it needs an admin
// token. limit 0 is the server's default.
//
// Errors: a 503 NOT_INDEXED before the first Reindex at that member.
func (c *Client) FullHistory(ctx context.Context, sinceSeq uint64,
	limit int) (page BlotterPage, err error) {
	err = c.get(ctx, "/recon/full-history/trades", since(sinceSeq, limit), &page)
	return page, err
}

// Metrics returns the trade-processor's figures in Prometheus' text format.
//
// It needs no token.
func (c *Client) Metrics(ctx context.Context) (text []byte, err error) {
	err = c.get(ctx, "/actuator/prometheus", nil, &text)
	return text, err
}
