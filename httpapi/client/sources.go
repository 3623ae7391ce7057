package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
)

// Account is an account as the account-service shows it.
//
// Whether an account is enabled is not in it: RiskControls of the order-matcher shows what is in
// force.
type Account struct {
	ID          uint32 `json:"id"`
	DisplayName string `json:"displayName"`
	Version     uint64 `json:"-"` // of a write: see AfterVersion
}

// AccountRequest is the new content of an account.
//
// A disabled account stays: its orders, positions and trades are not touched.
type AccountRequest struct {
	// ID is 1 or more; DisplayName is 1 to 256 bytes, not blank, without control characters.
	ID          uint32 `json:"id"`
	DisplayName string `json:"displayName"`
	Enabled     *bool  `json:"enabled,omitempty"` // nil: unchanged; a new account is enabled
}

// Stock is a stock as the reference-data service shows it.
type Stock struct {
	Ticker      string `json:"ticker"`
	CompanyName string `json:"companyName"`
	// Tick is what limit prices are multiples of; 0 where a whole list or a write is answered.
	Tick    Price  `json:"tick,omitempty"`
	Version uint64 `json:"-"` // of a write: see AfterVersion
}

// StockRequest is the new content of a stock. The service trims the ticker and puts it into
// capitals.
//
// The ticker is then 1 to 16 of A-Z 0-9 . -; the name is as an account's.
type StockRequest struct {
	Ticker      string `json:"ticker"`
	CompanyName string `json:"companyName"`
	Enabled     *bool  `json:"enabled,omitempty"` // nil: unchanged; a new stock is enabled
	Halted      *bool  `json:"halted,omitempty"`  // nil: unchanged; a new stock is not halted
}

// These methods are the account-service's and the reference-data service's: a
// Client calls one service, the one at its address.

// Accounts lists every account, by id. It needs no token.
func (c *Client) Accounts(ctx context.Context) (all []Account, err error) {
	err = c.get(ctx, "/account/", nil, &all)
	return all, err
}

// Account shows one account.
func (c *Client) Account(ctx context.Context, id uint32) (account Account, err error) {
	err = c.get(ctx, "/account/"+strconv.FormatUint(uint64(id), 10), nil, &account)
	return account, err
}

// UpsertAccount makes an account, or changes the one of its id. Where writes are protected it needs
// an admin token.
//
// Setting a record twice has the effect of setting it once, so the request is repeated like a read.
// Errors: a 409 CAPACITY when the engine has no room for another account; then nothing was written.
// AfterVersion with the answer's Version reads the change.
func (c *Client) UpsertAccount(ctx context.Context, q AccountRequest) (Account, error) {
	return c.putAccount(ctx, http.MethodPost, q)
}

// UpdateAccount is UpsertAccount sent as a PUT. The server does the same for both: it makes an
// account that is not there.
func (c *Client) UpdateAccount(ctx context.Context, q AccountRequest) (Account, error) {
	return c.putAccount(ctx, http.MethodPut, q)
}

func (c *Client) putAccount(ctx context.Context, method string,
	q AccountRequest) (account Account, err error) {
	r := call{method: method, path: "/account/", repeat: true}
	err = c.send(ctx, &r, q, &account)
	account.Version = r.version()
	return account, err
}

// version is the version of the source that the answer to a write has in it; 0: it is not known.
func (r *call) version() uint64 {
	version, err := strconv.ParseUint(r.header.Get("X-As-Of-Version"), 10, 64)
	if err != nil {
		return 0
	}
	return version
}

// AccountSnapshot returns the bytes of the account source's control snapshot. The caller must
// verify its checksum before it uses the snapshot.
func (c *Client) AccountSnapshot(ctx context.Context) (snapshot []byte, err error) {
	err = c.get(ctx, "/account/control-snapshot", nil, &snapshot)
	return snapshot, err
}

// Stocks lists every stock, by the bytes of the ticker.
func (c *Client) Stocks(ctx context.Context) (all []Stock, err error) {
	err = c.get(ctx, "/stocks", nil, &all)
	return all, err
}

// Stock shows one stock. The ticker is sent as it is given here.
//
// Tickers are capitals: another case is a 404.
func (c *Client) Stock(ctx context.Context, ticker string) (stock Stock, err error) {
	err = c.get(ctx, "/stocks/"+url.PathEscape(ticker), nil, &stock)
	return stock, err
}

// UpsertStock makes a stock, or changes the one of its ticker. created: there was no such stock. If
// the request was repeated, an attempt whose answer was lost may have made it. Where writes are
// protected it needs an admin token.
func (c *Client) UpsertStock(ctx context.Context,
	q StockRequest) (stock Stock, created bool, err error) {
	r := call{path: "/stocks", want: http.StatusOK, also: http.StatusCreated, repeat: true}
	err = c.send(ctx, &r, q, &stock)
	stock.Version = r.version()
	return stock, err == nil && r.status == http.StatusCreated, err
}

// StockSnapshot returns the bytes of the security source's control snapshot. The caller must verify
// its checksum before it uses the snapshot.
func (c *Client) StockSnapshot(ctx context.Context) (snapshot []byte, err error) {
	err = c.get(ctx, "/stocks/control-snapshot", nil, &snapshot)
	return snapshot, err
}
