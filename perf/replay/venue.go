package replay

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"posttrade/app/settings"
	httpclient "posttrade/httpapi/client"
	"posttrade/matcher"
	"posttrade/perf/orderflow"
)

// venue is one connection over which a replay sends its orders. It belongs to one goroutine. A call
// returns when the outcome is known and durable.
//
// An error ends the replay, because the outcome is unknown. errBusy alone means that nothing was
// sequenced and the call may be repeated.
//
// Implementations are httpVenue and coreVenue, and one of the tests.
type venue interface {
	// create places 1 to 1024 orders; results has room for as many.
	create(steps []orderflow.Step, results []outcomeOf) error
	// cancel and replace name the order by the venue's own id. A replace has the new total quantity
	// and the new limit price.
	cancel(orderID string) (outcomeOf, error)
	replace(orderID string, step *orderflow.Step) (outcomeOf, error)
	// trade books a market trade at the venue's last price of the security.
	trade(step *orderflow.Step) (outcomeOf, error)
	// price sets the market price of a security; over HTTP that needs the right to do so.
	price(step *orderflow.Step) (outcomeOf, error)
	// depth reads the best levels of a book, not older than the last outcome of
	// this connection.
	depth(security string, levels int) (orderflow.Depth, error)
	close() error
}

// venues opens connections, one for each goroutine that sends.
type venues func() (venue, error)

// verdict is the outcome of a request that was decided.
type verdict uint8

const (
	accepted verdict = iota
	refused          // by the risk gate: reason says why
	gone             // the named order is unknown or can no longer change
)

// outcomeOf is the answer to one step.
type outcomeOf struct {
	verdict verdict
	// reason is that of a refusal, in the venue's word.
	reason string
	// orderID is the venue's id of an order that was placed, of a trade the trade's.
	orderID string
}

// errBusy says that nothing was sequenced and the same call may be repeated.
var errBusy = errors.New("the venue is busy")

// httpVenues returns venues that send to the order-matcher at base, which may end in a routing
// prefix. token is sent with every request, "" for none. A base that is no URL is an error of
// usage; whether a server is there shows only with the first request.
func httpVenues(base, token string) (venues, error) {
	options, err := httpclient.ParseURL(base)
	if err != nil {
		return nil, settings.Usagef("--url: %s is not http://host:port", settings.Printable(base))
	}
	options.Token, options.MaxConns = token, 1
	// A replay is not ended in the middle of a request: its outcome would be unknown.
	ctx := context.Background()
	return func() (venue, error) {
		return &httpVenue{ctx: ctx, client: httpclient.New(options)}, nil
	}, nil
}

// httpVenue is one keep-alive connection to an order-matcher.
type httpVenue struct {
	// ctx never ends.
	ctx    context.Context
	client *httpclient.Client
	// orders is memory for a batch.
	orders []httpclient.OrderRequest
	// sequence is the highest one in an answer so far: a read of the book must have it in it.
	sequence uint64
}

// decided turns the client's result into an outcome. It returns an error only when the outcome is
// open, or when nothing was sequenced.
//
// 422 is a refusal by the risk gate. 404 and 409 mean that the order cannot change any more. 429,
// and every answer that says that nothing was sequenced, is errBusy. Anything else, such as a lost
// connection, is returned as it is: the outcome is open.
func (v *httpVenue) decided(orderID string, sequence uint64, err error) (outcomeOf, error) {
	v.sequence = max(v.sequence, sequence)
	var p *httpclient.Problem
	if err == nil || !errors.As(err, &p) {
		return outcomeOf{orderID: orderID}, err
	}
	v.sequence = max(v.sequence, p.Sequence)
	switch {
	case p.Status == http.StatusUnprocessableEntity:
		return outcomeOf{verdict: refused, reason: p.Reason, orderID: p.OrderID}, nil
	case p.Status == http.StatusNotFound || p.Status == http.StatusConflict:
		return outcomeOf{verdict: gone, reason: p.Code}, nil
	case p.Status == http.StatusTooManyRequests || p.NotSequenced():
		return outcomeOf{}, fmt.Errorf("%w: %w", errBusy, err)
	}
	return outcomeOf{}, err
}

// side is a side in the client's word.
func side(s matcher.Side) httpclient.Side {
	if s == matcher.Sell {
		return httpclient.Sell
	}
	return httpclient.Buy
}

// request is a step in the form of the HTTP client. Zero members are left out.
func request(s *orderflow.Step) httpclient.OrderRequest {
	r := httpclient.OrderRequest{
		ClientOrderID: s.ClientOrderID, AccountID: s.AccountID, Security: s.Security, Side: side(s.Side),
		Quantity: s.Quantity, LimitPrice: httpclient.Price(s.LimitPx),
	}
	if s.Type != orderflow.Limit {
		r.Type = httpclient.OrderType(s.Type.String())
	}
	if s.TimeInForce != orderflow.GTC {
		r.TimeInForce = httpclient.TimeInForce(s.TimeInForce.String())
	}
	return r
}

// create sends a single order by the route of orders, and several by the route of batches, which
// decides them side by side and answers for each.
func (v *httpVenue) create(steps []orderflow.Step, results []outcomeOf) (err error) {
	if len(steps) == 1 {
		q := request(&steps[0])
		order, err := v.client.CreateOrder(v.ctx, &q)
		results[0], err = v.decided(order.OrderID, order.Sequence, err)
		return err
	}
	return v.createBatch(steps, results)
}

// createBatch sends a batch. An answer with another number of orders than were sent is an error: it
// could not be said which was which.
func (v *httpVenue) createBatch(steps []orderflow.Step, results []outcomeOf) error {
	v.orders = v.orders[:0]
	for i := range steps {
		v.orders = append(v.orders, request(&steps[i]))
	}
	orders, err := v.client.CreateOrderBatch(v.ctx, v.orders)
	if err == nil && len(orders) != len(steps) {
		return fmt.Errorf("%d answers to a batch of %d orders", len(orders), len(steps))
	}
	if o, err := v.decided("", 0, err); err != nil || o.verdict != accepted {
		return errors.Join(err, batchRefused(o))
	}
	for i := range orders {
		results[i], _ = v.decided(orders[i].OrderID, orders[i].Sequence, nil)
		if orders[i].Status == "REJECTED" {
			results[i].verdict, results[i].reason = refused, orders[i].RiskReason
		}
	}
	return nil
}

// batchRefused is an error when a batch was not decided order by order, such as one that is too
// large.
func batchRefused(o outcomeOf) error {
	if o.verdict == accepted {
		return nil
	}
	return fmt.Errorf("the whole batch was refused: %s", o.reason)
}

func (v *httpVenue) cancel(orderID string) (outcomeOf, error) {
	order, err := v.client.Cancel(v.ctx, orderID)
	return v.decided(order.OrderID, order.Sequence, err)
}

func (v *httpVenue) replace(orderID string, s *orderflow.Step) (outcomeOf, error) {
	order, err := v.client.Replace(v.ctx, orderID, &httpclient.ReplaceRequest{
		ClientOrderID: s.ClientOrderID, Quantity: s.Quantity, LimitPrice: httpclient.Price(s.LimitPx),
	})
	return v.decided(order.OrderID, order.Sequence, err)
}

func (v *httpVenue) trade(s *orderflow.Step) (outcomeOf, error) {
	trade, err := v.client.BookMarketTrade(v.ctx, &httpclient.TradeRequest{
		ClientOrderID: s.ClientOrderID, AccountID: s.AccountID, Security: s.Security,
		Side: side(s.Side), Quantity: s.Quantity,
	})
	return v.decided(trade.TradeID, trade.Sequence, err)
}

func (v *httpVenue) price(s *orderflow.Step) (outcomeOf, error) {
	answer, err := v.client.Prices(v.ctx, []httpclient.PriceRequest{{Security: s.Security,
		Price: httpclient.Price(s.LimitPx)}})
	return v.decided("", answer.Sequence, err)
}

// depth reads the book with this connection's last sequence in it.
func (v *httpVenue) depth(security string, levels int) (orderflow.Depth, error) {
	book, err := v.client.After(v.sequence).Book(v.ctx, security, levels)
	if err != nil {
		return orderflow.Depth{}, err
	}
	return orderflow.Depth{Bids: levelsOf(book.Bids), Asks: levelsOf(book.Asks)}, nil
}

func levelsOf(levels []httpclient.Level) (out []orderflow.Level) {
	for _, l := range levels {
		out = append(out, orderflow.Level{Px: int64(l.Price), Qty: l.Quantity})
	}
	return out
}

// close ends the connection. Nothing is under way then: every call waits for its answer.
func (v *httpVenue) close() error {
	v.client.Close()
	return nil
}
