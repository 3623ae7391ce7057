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

// AccountRequest is what an account shall be.
type AccountRequest struct {
	ID          uint32 `json:"id"`
	DisplayName string `json:"displayName"`
	Enabled     *bool  `json:"enabled,omitempty"` // nil: as it is; a new one is enabled
}

// Stock is a stock as the reference-data service shows it.
type Stock struct {
	Ticker      string `json:"ticker"`
	CompanyName string `json:"companyName"`
}

// StockRequest is what a stock shall be. The service trims the ticker and puts it
// into capitals.
type StockRequest struct {
	Ticker      string `json:"ticker"`
	CompanyName string `json:"companyName"`
	Enabled     *bool  `json:"enabled,omitempty"` // nil: as it is; a new one is enabled
	Halted      *bool  `json:"halted,omitempty"`  // nil: as it is; a new one is not halted
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

// AccountSnapshot returns the control snapshot of the account source as it came:
// whoever uses it must verify its checksum first.
func (c *Client) AccountSnapshot() ([]byte, error) { return c.raw("/account/control-snapshot") }

// Stocks lists every stock, by the bytes of the ticker.
func (c *Client) Stocks() (all []Stock, err error) {
	err = c.get("/stocks", nil, &all)
	return all, err
}

// Stock shows one stock; the ticker is looked for as it is written here.
func (c *Client) Stock(ticker string) (stock Stock, err error) {
	err = c.get("/stocks/"+url.PathEscape(ticker), nil, &stock)
	return stock, err
}

// UpsertStock makes a stock, or changes the one of its ticker; created is that
// it was not there. When the request had to be repeated, an attempt whose answer
// was lost may have made it. Where writes are protected it needs an admin token.
func (c *Client) UpsertStock(q StockRequest) (stock Stock, created bool, err error) {
	body, err := json.Marshal(q)
	if err != nil {
		return stock, false, fmt.Errorf("client: upsert stock: %w", err)
	}
	r := call{method: "POST", path: "/stocks", body: body, want: 200, also: 201, repeat: true}
	err = c.do(&r, into(&stock))
	return stock, err == nil && r.status == 201, err
}

// StockSnapshot returns the control snapshot of the security source as it came:
// whoever uses it must verify its checksum first.
func (c *Client) StockSnapshot() ([]byte, error) { return c.raw("/stocks/control-snapshot") }

// raw reads an answer as it is.
func (c *Client) raw(path string) (text []byte, err error) {
	r := call{method: "GET", path: path, want: 200, repeat: true}
	err = c.do(&r, func(body []byte) error {
		text = slices.Clone(body) // the response's buffer is used again
		return nil
	})
	return text, err
}
