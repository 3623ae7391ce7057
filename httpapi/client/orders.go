package client

import (
	"encoding/json"
	"net/url"
	"strconv"
	"time"

	"posttrade/matcher"
	"posttrade/matcher/strictjson"
)

// CreateOrder creates an order. A refusal is a *Problem with status 422.
func (c *Client) CreateOrder(o *OrderRequest) (order Order, err error) {
	b := c.buffer()
	defer c.put(b)
	*b = appendOrder(*b, o)
	r := call{method: "POST", path: "/orders", body: *b, want: 201, repeat: o.ClientOrderID != ""}
	err = c.do(&r, func(body []byte) error { return readOrder(body, &order) })
	return order, err
}

// CreateOrderBatch creates 1 to 1024 orders. A refused order comes back with status REJECTED. An
// order whose ClientOrderID was used before with different terms also has the code TERMS_DIFFER.
func (c *Client) CreateOrderBatch(orders []OrderRequest) (decided []Order, err error) {
	b := c.buffer()
	defer c.put(b)
	repeat := true
	*b = append(*b, '[')
	for i := range orders {
		if i > 0 {
			*b = append(*b, ',')
		}
		*b = appendOrder(*b, &orders[i])
		repeat = repeat && orders[i].ClientOrderID != ""
	}
	*b = append(*b, ']')
	r := call{method: "POST", path: "/orders/batch", body: *b, want: 201, repeat: repeat}
	err = c.do(&r, func(body []byte) error {
		decided = make([]Order, 0, len(orders))
		reader := strictjson.NewReader(body)
		for reader.BeginArray(); reader.NextItem(); {
			decided = append(decided, Order{})
			orderFrom(reader, &decided[len(decided)-1])
		}
		return reader.End()
	})
	return decided, err
}

// BookMarketTrade books a trade at the last known price.
func (c *Client) BookMarketTrade(t *TradeRequest) (trade Trade, err error) {
	b := c.buffer()
	defer c.put(b)
	*b = append(appendTerms(*b, t.ClientOrderID, t.AccountID, t.Security, t.Side, t.Quantity), '}')
	r := call{method: "POST", path: "/trades", body: *b, want: 201, repeat: t.ClientOrderID != ""}
	err = c.do(&r, into(&trade))
	return trade, err
}

// Cancel cancels an order. Repeating it can only find it cancelled, as 409.
func (c *Client) Cancel(orderID string) (order Order, err error) {
	r := call{method: "POST", path: "/orders/" + url.PathEscape(orderID) + "/cancel", want: 200}
	err = c.do(&r, func(body []byte) error { return readOrder(body, &order) })
	return order, err
}

// Replace gives an order a new total quantity and limit.
func (c *Client) Replace(orderID string, q *ReplaceRequest) (order Order, err error) {
	b := c.buffer()
	defer c.put(b)
	*b = append(*b, `{"quantity":`...)
	*b = strconv.AppendInt(*b, int64(q.Quantity), 10)
	*b = append(*b, `,"limitPrice":`...)
	*b = strictjson.FormatDecimal(*b, int64(q.LimitPrice))
	if q.ClientOrderID != "" {
		*b = append(*b, `,"clientOrderId":`...)
		*b = appendText(*b, q.ClientOrderID)
	}
	*b = append(*b, '}')
	r := call{
		method: "POST", path: "/orders/" + url.PathEscape(orderID) + "/replace", body: *b,
		want: 200, repeat: q.ClientOrderID != "",
	}
	err = c.do(&r, func(body []byte) error { return readOrder(body, &order) })
	return order, err
}

// Order shows one order.
func (c *Client) Order(orderID string) (order Order, err error) {
	r := call{method: "GET", path: "/orders/" + url.PathEscape(orderID), want: 200, repeat: true}
	err = c.do(&r, func(body []byte) error { return readOrder(body, &order) })
	return order, err
}

// Orders lists orders.
func (c *Client) Orders(q OrdersQuery) (page OrderPage, err error) {
	v := url.Values{}
	set(v, "status", q.Status)
	set(v, "security", q.Security)
	err = c.get("/orders", list(v, q.AccountID, q.Limit, q.Cursor), &page)
	return page, err
}

func set(v url.Values, name, value string) {
	if value != "" {
		v.Set(name, value)
	}
}

// list adds the parameters of every list.
func list(v url.Values, accountID *uint32, limit int, cursor string) url.Values {
	if accountID != nil {
		v.Set("accountId", strconv.FormatUint(uint64(*accountID), 10))
	}
	if limit > 0 {
		v.Set("limit", strconv.Itoa(limit))
	}
	set(v, "cursor", cursor)
	return v
}

// get reads a resource as JSON.
func (c *Client) get(path string, query url.Values, answer any) error {
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	r := call{method: "GET", path: path, want: 200, repeat: true}
	return c.do(&r, into(answer))
}

func into(answer any) func(body []byte) error {
	return func(body []byte) error { return json.Unmarshal(body, answer) }
}

// appendTerms appends the members that orders and trades share, without the closing brace.
func appendTerms(b []byte, clientID string, accountID uint32, security string, side matcher.Side,
	qty int32) []byte {
	b = append(b, `{"accountId":`...)
	b = appendUint(b, uint64(accountID))
	b = append(b, `,"security":`...)
	b = appendText(b, security)
	if side == matcher.Sell {
		b = append(b, `,"side":"Sell","quantity":`...)
	} else {
		b = append(b, `,"side":"Buy","quantity":`...)
	}
	b = strconv.AppendInt(b, int64(qty), 10)
	if clientID != "" {
		b = append(b, `,"clientOrderId":`...)
		b = appendText(b, clientID)
	}
	return b
}

func appendOrder(b []byte, o *OrderRequest) []byte {
	b = appendTerms(b, o.ClientOrderID, o.AccountID, o.Security, o.Side, o.Quantity)
	if o.LimitPrice != 0 {
		b = append(b, `,"limitPrice":`...)
		b = strictjson.FormatDecimal(b, int64(o.LimitPrice))
	}
	if o.Type != "" {
		b = append(b, `,"type":`...)
		b = appendText(b, string(o.Type))
	}
	if o.TimeInForce != "" {
		b = append(b, `,"timeInForce":`...)
		b = appendText(b, string(o.TimeInForce))
	}
	return append(b, '}')
}

// appendText appends a JSON string; what is not printable ASCII goes through the
// standard encoder, and the server refuses it.
func appendText(b []byte, text string) []byte {
	for i := 0; i < len(text); i++ {
		if ch := text[i]; ch < ' ' || ch > '~' || ch == '"' || ch == '\\' {
			quoted, err := json.Marshal(text)
			if err != nil {
				panic("client: a string does not marshal: " + err.Error())
			}
			return append(b, quoted...)
		}
	}
	b = append(b, '"')
	b = append(b, text...)
	return append(b, '"')
}

func readOrder(body []byte, o *Order) error {
	reader := strictjson.NewReader(body)
	orderFrom(reader, o)
	return reader.End()
}

// orderFrom reads an Order. It skips members that this version does not know.
func orderFrom(r *strictjson.Reader, o *Order) {
	*o = Order{}
	for r.BeginObject(); ; {
		key, ok := r.NextKey()
		if !ok {
			return
		}
		if r.Null() {
			continue
		}
		switch string(key) {
		case "orderId":
			o.OrderID = string(r.String())
		case "clientOrderId":
			o.ClientOrderID = string(r.String())
		case "accountId":
			o.AccountID = uint32(r.Int())
		case "security":
			o.Security = string(r.String())
		case "side":
			o.Side = string(r.String())
		case "type":
			o.Type = OrderType(r.String())
		case "timeInForce":
			o.TimeInForce = TimeInForce(r.String())
		case "quantity":
			o.Quantity = int32(r.Int())
		case "remainingQuantity":
			o.RemainingQuantity = int32(r.Int())
		case "limitPrice":
			o.LimitPrice = Price(r.Decimal())
		case "status":
			o.Status = string(r.String())
		case "riskReason":
			o.RiskReason = string(r.String())
		case "lastExecutionPrice":
			o.LastExecutionPrice = Price(r.Decimal())
		case "lastFillQuantity":
			o.LastFillQuantity = int32(r.Int())
		case "createdAt":
			o.CreatedAt = timeFrom(r)
		case "updatedAt":
			o.UpdatedAt = timeFrom(r)
		case "sequence":
			o.Sequence = uint64(r.Int())
		case "fills":
			o.Fills = fillsFrom(r)
		case "code":
			o.Code = string(r.String())
		default:
			r.Skip()
		}
	}
}

func timeFrom(r *strictjson.Reader) time.Time {
	text := r.String()
	if r.Err() != nil {
		return time.Time{}
	}
	at, err := time.Parse(time.RFC3339, string(text))
	if err != nil {
		r.Fail(err)
	}
	return at
}

func fillsFrom(r *strictjson.Reader) (fills []Fill) {
	for r.BeginArray(); r.NextItem(); {
		var f Fill
		for r.BeginObject(); ; {
			key, ok := r.NextKey()
			if !ok {
				break
			}
			switch string(key) {
			case "tradeId":
				f.TradeID = string(r.String())
			case "price":
				f.Price = Price(r.Decimal())
			case "quantity":
				f.Quantity = int32(r.Int())
			default:
				r.Skip()
			}
		}
		fills = append(fills, f)
	}
	return fills
}
