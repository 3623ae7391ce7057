package client

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"time"
)

// lasting bounds a request that goes through the whole history. It is longer than the server's own
// bound.
const lasting = 31 * time.Minute

// These methods are the trade-processor's, except Reindex and FullHistory: a Client calls one
// service, the one at its address.

// DevToken mints a token for local development. masterSecret is the secret that the server's
// operator has set. The call needs no token.
func (c *Client) DevToken(masterSecret string, q TokenRequest) (token Token, err error) {
	if q.Accounts == nil {
		q.Accounts = []uint32{}
	}
	body, err := json.Marshal(q)
	if err != nil {
		return token, fmt.Errorf("client: dev token: %w", err)
	}
	r := call{method: "POST", path: "/auth/dev-token", body: body, want: 200, repeat: true,
		secret: masterSecret}
	err = c.do(&r, into(&token))
	return token, err
}

// Trades lists trade rows, ascending by trade sequence.
func (c *Client) Trades(q TradesQuery) (page TradePage, err error) {
	v := url.Values{}
	set(v, "security", q.Security)
	set(v, "status", q.Status)
	set(v, "settlementDate", q.SettlementDate)
	err = c.get("/trades", list(v, q.AccountID, q.Limit, q.Cursor), &page)
	return page, err
}

// TradeRow shows one trade row.
func (c *Client) TradeRow(tradeID string) (row TradeRow, err error) {
	err = c.get("/trades/"+url.PathEscape(tradeID), nil, &row)
	return row, err
}

// ForceSettlement settles a trade before its settlement date. A settled trade stays as it is, so
// the request is repeated like a read.
func (c *Client) ForceSettlement(tradeID string) (row TradeRow, err error) {
	err = c.post("/trades/"+url.PathEscape(tradeID)+"/settlement/force", 0, &row)
	return row, err
}

// ReconStatus shows the reconciliation's counts.
func (c *Client) ReconStatus() (status ReconStatus, err error) {
	err = c.get("/recon/status", nil, &status)
	return status, err
}

// ReconBreaks lists open breaks; it needs an admin token. class "" is all of them.
func (c *Client) ReconBreaks(class string, limit int, cursor string) (page BreakPage, err error) {
	v := url.Values{}
	set(v, "class", class)
	err = c.get("/recon/breaks", list(v, nil, limit, cursor), &page)
	return page, err
}

// OrphanSweep reindexes the full history and looks for rows without a fill; it needs an admin token
// and may take long. A second one at the same time is a 409.
func (c *Client) OrphanSweep() (sweep OrphanSweep, err error) {
	err = c.post("/recon/orphan-sweep", lasting, &sweep)
	return sweep, err
}

// LastOrphanSweep shows what the last sweep found; 404 before the first.
func (c *Client) LastOrphanSweep() (sweep OrphanSweep, err error) {
	err = c.get("/recon/orphan-sweep/last", nil, &sweep)
	return sweep, err
}

// RepairRows makes trade rows again from the journal; it needs an admin token and may take long. A
// row that is right stays as it is, so the request is repeated like a read. A second one at the
// same time is a 409.
func (c *Client) RepairRows(q RepairQuery) (done Repair, err error) {
	body, err := json.Marshal(q)
	if err != nil {
		return done, fmt.Errorf("client: repair: %w", err)
	}
	r := call{method: "POST", path: "/recon/repair", body: body, want: 200, repeat: true,
		timeout: lasting, reason: q.Reason}
	err = c.do(&r, into(&done))
	return done, err
}

// TakeStatement states bookings from outside; it needs an admin token. A line replaces an earlier
// one of the same id.
func (c *Client) TakeStatement(lines []StatementLine) (s Statement, err error) {
	body, err := json.Marshal(lines)
	if err != nil {
		return s, fmt.Errorf("client: statement: %w", err)
	}
	r := call{method: "POST", path: "/recon/statement", body: body, want: 200, repeat: true,
		timeout: lasting}
	err = c.do(&r, into(&s))
	return s, err
}

// TCAReport shows what a trade has cost.
func (c *Client) TCAReport(tradeID string) (report TCAReport, err error) {
	err = c.get("/tca/report/"+url.PathEscape(tradeID), nil, &report)
	return report, err
}

// TCASummary shows what the trades executed in [From, To) have cost.
func (c *Client) TCASummary(q TCAQuery) (summary TCASummary, err error) {
	v := url.Values{}
	for name, at := range map[string]time.Time{"from": q.From, "to": q.To} {
		if !at.IsZero() {
			v.Set(name, at.UTC().Format(time.RFC3339Nano))
		}
	}
	err = c.get("/tca/summary", list(v, q.AccountID, 0, ""), &summary)
	return summary, err
}

// Reindex replays the whole journal into the order-matcher's full-history index;
// it needs an admin token and may take long.
func (c *Client) Reindex() (info Reindexed, err error) {
	err = c.post("/recon/full-history/reindex", lasting, &info)
	return info, err
}

// FullHistory lists the index's fills with a trade sequence above sinceSeq; it
// needs an admin token. limit 0 is the server's default.
func (c *Client) FullHistory(sinceSeq uint64, limit int) (page BlotterPage, err error) {
	v := url.Values{}
	if sinceSeq > 0 {
		v.Set("sinceSeq", strconv.FormatUint(sinceSeq, 10))
	}
	err = c.get("/recon/full-history/trades", list(v, nil, limit, ""), &page)
	return page, err
}

// post sends a request without a body. The request may be repeated. A timeout of 0 is the client's.
func (c *Client) post(path string, timeout time.Duration, answer any) error {
	r := call{method: "POST", path: path, want: 200, repeat: true, timeout: timeout}
	return c.do(&r, into(answer))
}
