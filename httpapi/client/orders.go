package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// CreateOrder creates an order. A refusal is a *Problem with status 422.
//
// The answer comes when the decision is durable, with the fills of the order so far. Without a
// ClientOrderID the request is not repeated while its outcome is unknown; see Unknown.
func (c *Client) CreateOrder(ctx context.Context, o *OrderRequest) (order Order, err error) {
	r := call{path: "/orders", want: http.StatusCreated, repeat: o.ClientOrderID != ""}
	err = c.send(ctx, &r, o, &order)
	return order, err
}

// CreateOrderBatch creates 1 to 1024 orders. A refused order comes back with status REJECTED. An
// order whose ClientOrderID was used before with different terms also has the code TERMS_DIFFER.
//
// The answers are in the order of the request. A body that cannot be read, or an account that the
// token does not cover, refuses the whole batch before anything is sequenced. A batch is repeated
// only when each of its orders has a ClientOrderID.
func (c *Client) CreateOrderBatch(ctx context.Context,
	orders []OrderRequest) (decided []Order, err error) {
	r := call{path: "/orders/batch", want: http.StatusCreated, repeat: true}
	for i := range orders {
		r.repeat = r.repeat && orders[i].ClientOrderID != ""
	}
	err = c.send(ctx, &r, orders, &decided)
	return decided, err
}

// BookMarketTrade books a trade at the last known price.
//
// A refusal is a *Problem with status 422, as of CreateOrder.
func (c *Client) BookMarketTrade(ctx context.Context, t *TradeRequest) (trade Trade, err error) {
	r := call{path: "/trades", want: http.StatusCreated, repeat: t.ClientOrderID != ""}
	err = c.send(ctx, &r, t, &trade)
	return trade, err
}

// Cancel cancels an order. Repeating it can only find it cancelled, as 409.
//
// It is sent again only when the server says that nothing was sequenced. A 409 ORDER_TERMINAL says
// that the order has ended, by this cancel or otherwise. The kill switch and stale control sources
// do not prevent a cancel.
func (c *Client) Cancel(ctx context.Context, orderID string) (order Order, err error) {
	r := call{method: http.MethodPost, path: "/orders/" + url.PathEscape(orderID) + "/cancel"}
	err = c.do(ctx, &r, &order)
	return order, err
}

// Replace gives an order a new total quantity and limit.
//
// Errors: a 409 ORDER_TERMINAL for an order that has ended; a 422 for terms that the engine
// refuses, such as a total at or below the filled quantity. The order then stays as it was.
func (c *Client) Replace(ctx context.Context, orderID string,
	q *ReplaceRequest) (order Order, err error) {
	r := call{path: "/orders/" + url.PathEscape(orderID) + "/replace", repeat: q.ClientOrderID != ""}
	err = c.send(ctx, &r, q, &order)
	return order, err
}

// Order shows one order. 404 ORDER_NOT_FOUND also for an ended order that the server does not keep
// any more.
func (c *Client) Order(ctx context.Context, orderID string) (order Order, err error) {
	err = c.get(ctx, "/orders/"+url.PathEscape(orderID), nil, &order)
	return order, err
}

// Orders lists orders.
//
// They ascend by number. Over several pages an order that matches all the time is listed once; one
// that changes meanwhile may be missing.
func (c *Client) Orders(ctx context.Context, q OrdersQuery) (page OrderPage, err error) {
	err = c.get(ctx, "/orders", q.values(), &page)
	return page, err
}

func (q *OrdersQuery) values() url.Values {
	v := list(q.AccountID, q.Limit, q.Cursor)
	set(v, "status", q.Status)
	set(v, "security", q.Security)
	return v
}

// set leaves out a parameter whose value is "": the server refuses an empty value.
func set(v url.Values, name, value string) {
	if value != "" {
		v.Set(name, value)
	}
}

// setCount sets a parameter whose value 0 stands for the server's default.
func setCount(v url.Values, name string, value uint64) {
	if value > 0 {
		v.Set(name, strconv.FormatUint(value, 10))
	}
}

// setTime sets a parameter that is an instant; the zero time does not select.
func setTime(v url.Values, name string, at time.Time) {
	if !at.IsZero() {
		v.Set(name, at.UTC().Format(time.RFC3339Nano))
	}
}

// list returns the parameters of every list.
//
// A limit of 0 or less is left out, and so is the cursor of a first page.
func list(accountID *uint32, limit int, cursor string) url.Values {
	v := url.Values{}
	if accountID != nil {
		v.Set("accountId", strconv.FormatUint(uint64(*accountID), 10))
	}
	setCount(v, "limit", uint64(max(limit, 0)))
	set(v, "cursor", cursor)
	return v
}
