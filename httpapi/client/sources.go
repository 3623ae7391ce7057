package client

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
)

// Account is an account as the account-service shows it.
type Account struct {
	ID          uint32 `json:"id"`
	DisplayName string `json:"displayName"`
}

// AccountRequest is the new content of an account.
type AccountRequest struct {
	ID          uint32 `json:"id"`
	DisplayName string `json:"displayName"`
	Enabled     *bool  `json:"enabled,omitempty"` // nil: unchanged; a new account is enabled
}

// Stock is a stock as the reference-data service shows it.
type Stock struct {
	Ticker      string `json:"ticker"`
	CompanyName string `json:"companyName"`
}

// StockRequest is the new content of a stock. The service trims the ticker and puts it into
// capitals.
type StockRequest struct {
	Ticker      string `json:"ticker"`
	CompanyName string `json:"companyName"`
	Enabled     *bool  `json:"enabled,omitempty"` // nil: unchanged; a new stock is enabled
	Halted      *bool  `json:"halted,omitempty"`  // nil: unchanged; a new stock is not halted
}

// These methods are the account-service's and the reference-data service's: a
// Client calls one service, the one at its address.

// Accounts lists every account, by id.
func (c *Client) Accounts() (all []Account, err error) {
	err = c.get("/account/", nil, &all)
	return all, err
}

// Account shows one account.
func (c *Client) Account(id uint32) (account Account, err error) {
	err = c.get("/account/"+strconv.FormatUint(uint64(id), 10), nil, &account)
	return account, err
}

// UpsertAccount makes an account, or changes the one of its id. Where writes are
// protected it needs an admin token.
func (c *Client) UpsertAccount(q AccountRequest) (account Account, err error) {
	body, err := json.Marshal(q)
	if err != nil {
		return account, fmt.Errorf("client: upsert account: %w", err)
	}
	r := call{method: "POST", path: "/account/", body: body, want: 200, repeat: true}
	err = c.do(&r, into(&account))
	return account, err
}

// AccountSnapshot returns the bytes of the account source's control snapshot. The caller must
// verify its checksum before it uses the snapshot.
func (c *Client) AccountSnapshot() ([]byte, error) { return c.raw("/account/control-snapshot") }

// Stocks lists every stock, by the bytes of the ticker.
func (c *Client) Stocks() (all []Stock, err error) {
	err = c.get("/stocks", nil, &all)
	return all, err
}

// Stock shows one stock. The ticker is sent as it is given here.
func (c *Client) Stock(ticker string) (stock Stock, err error) {
	err = c.get("/stocks/"+url.PathEscape(ticker), nil, &stock)
	return stock, err
}

// UpsertStock makes a stock, or changes the one of its ticker. created: there was no such stock. If
// the request was repeated, an attempt whose answer was lost may have made it. Where writes are
// protected it needs an admin token.
func (c *Client) UpsertStock(q StockRequest) (stock Stock, created bool, err error) {
	body, err := json.Marshal(q)
	if err != nil {
		return stock, false, fmt.Errorf("client: upsert stock: %w", err)
	}
	r := call{method: "POST", path: "/stocks", body: body, want: 200, also: 201, repeat: true}
	err = c.do(&r, into(&stock))
	return stock, err == nil && r.status == 201, err
}

// StockSnapshot returns the bytes of the security source's control snapshot. The caller must verify
// its checksum before it uses the snapshot.
func (c *Client) StockSnapshot() ([]byte, error) { return c.raw("/stocks/control-snapshot") }

// raw reads the bytes of an answer.
func (c *Client) raw(path string) (text []byte, err error) {
	r := call{method: "GET", path: path, want: 200, repeat: true}
	err = c.do(&r, func(body []byte) error {
		text = slices.Clone(body) // the response's buffer is reused
		return nil
	})
	return text, err
}
