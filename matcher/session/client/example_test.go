package client_test

import (
	"context"
	"fmt"

	"posttrade/matcher"
	"posttrade/matcher/session/client"
	"posttrade/matcher/session/wire"
)

// An order and its outcome.
func Example() {
	ctx := context.Background()
	c, err := client.Dial(ctx, "/run/posttrade/session.sock", "the token", client.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	apple, err := c.Security(ctx, "AAPL")
	if err != nil {
		fmt.Println(err)
		return
	}
	o := client.NewOrder{Account: 7, Security: apple, Side: matcher.Buy, Qty: 10, LimitPx: 101_250_000}
	if err := c.Order(1, &o, "my-id"); err != nil {
		fmt.Println(err)
		return
	}
	c.Flush()
	for {
		r, err := c.Next()
		if err != nil {
			fmt.Println(err) // the outcome is unknown: the same client id tells it later
			return
		}
		if r.Kind == wire.Answer && r.Correlation == 1 {
			fmt.Println(r.Code, r.Reason, r.InputSeq, r.OrderRef, r.Leaves)
			return
		}
	}
}
