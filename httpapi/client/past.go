package client

import (
	"context"
	"net/url"
	"strconv"
	"time"
)

// Past shows the order-matcher's state after an input sequence. What has not been loaded yet is a
// *Problem with status 503; the request may be repeated.
//
// Every method needs an admin token. A sequence beyond the durable head is a 400 whose detail names
// the head. The answers are those of the live methods of the same names, as they were when the
// sequence was the head; the running engine is not asked. At most two moments are loaded at a time:
// stepping forward from one costs less than going back.
type Past struct {
	c  *Client
	at string // the path of the sequence
}

// AsOf returns the state after a sequence; 0 is the state before the first command. It sends
// nothing.
func (c *Client) AsOf(inputSeq uint64) *Past {
	return &Past{c: c, at: "/as-of/" + strconv.FormatUint(inputSeq, 10)}
}

// PastTrade is a trade as the journal's fill decides it: without settlement.
//
// It has no status and no dates of settlement: these follow from the row, not from the sequence.
type PastTrade struct {
	ID        string    `json:"id"`
	TradeSeq  uint64    `json:"tradeSeq"`
	AccountID uint32    `json:"accountId"`
	Security  string    `json:"security"`
	Side      Side      `json:"side"`
	Quantity  int64     `json:"quantity"`
	Price     Price     `json:"price"`
	Timestamp time.Time `json:"timestamp"`
	OrderID   string    `json:"orderId"`
}

// PastTradesQuery selects trades. Zero members do not select.
type PastTradesQuery struct {
	// The members are as those of TradesQuery; Limit is at most 1000.
	AccountID *uint32
	Security  string
	Limit     int
	Cursor    string
}

// PastTradePage is a page of trades; NextCursor "" is the last one.
type PastTradePage struct {
	Items      []PastTrade `json:"items"`
	NextCursor string      `json:"nextCursor"`
}

// PastAccount is an account as the history has it: without its name.
type PastAccount struct {
	ID uint32 `json:"id"`
}

// Book shows the book of a security; depth 0 is the server's default. The levels are those after
// the command of the sequence.
func (p *Past) Book(ctx context.Context, security string, depth int) (book Book, err error) {
	v := url.Values{}
	setCount(v, "depth", uint64(max(depth, 0)))
	err = p.c.get(ctx, p.at+"/book/"+url.PathEscape(security), v, &book)
	return book, err
}

// Positions lists positions.
func (p *Past) Positions(ctx context.Context, q PositionsQuery) (page PositionPage, err error) {
	err = p.c.get(ctx, p.at+"/positions", list(q.AccountID, q.Limit, q.Cursor), &page)
	return page, err
}

// Credit lists the credit that accounts used.
func (p *Past) Credit(ctx context.Context, q PositionsQuery) (page CreditPage, err error) {
	err = p.c.get(ctx, p.at+"/credit", list(q.AccountID, q.Limit, q.Cursor), &page)
	return page, err
}

// Orders lists orders.
//
// An ended order is in the list as long as the views kept it at that sequence.
func (p *Past) Orders(ctx context.Context, q OrdersQuery) (page OrderPage, err error) {
	err = p.c.get(ctx, p.at+"/orders", q.values(), &page)
	return page, err
}

// Order shows one order.
func (p *Past) Order(ctx context.Context, orderID string) (order Order, err error) {
	err = p.c.get(ctx, p.at+"/orders/"+url.PathEscape(orderID), nil, &order)
	return order, err
}

// Accounts lists the accounts, by id.
func (p *Past) Accounts(ctx context.Context) (all []PastAccount, err error) {
	err = p.c.get(ctx, p.at+"/accounts", nil, &all)
	return all, err
}

// RiskControls shows the gate's image. The states of the sources are not in it: no sequence decides
// them.
func (p *Past) RiskControls(ctx context.Context) (controls PastControls, err error) {
	err = p.c.get(ctx, p.at+"/risk/control/snapshot", nil, &controls)
	return controls, err
}

// Trades lists trades, ascending by trade sequence.
//
// The server reads the journal's own fills for it, not the rows of the database.
func (p *Past) Trades(ctx context.Context, q PastTradesQuery) (page PastTradePage, err error) {
	v := list(q.AccountID, q.Limit, q.Cursor)
	set(v, "security", q.Security)
	err = p.c.get(ctx, p.at+"/trades", v, &page)
	return page, err
}

// Contracts lists OTC contracts, ascending by sequence.
func (p *Past) Contracts(ctx context.Context, q ContractsQuery) (page ContractPage, err error) {
	err = p.c.get(ctx, p.at+"/contracts", list(q.AccountID, q.Limit, q.Cursor), &page)
	return page, err
}

// Contract shows one OTC contract.
func (p *Past) Contract(ctx context.Context, contractID string) (contract Contract, err error) {
	err = p.c.get(ctx, p.at+"/contracts/"+url.PathEscape(contractID), nil, &contract)
	return contract, err
}
