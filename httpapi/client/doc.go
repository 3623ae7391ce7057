// Package client calls the HTTP interfaces of the order-matcher, the trade-processor, the
// account-service and the reference-data service. It has typed requests and answers over keep-alive
// connections. No exported name shows a type of another package of this program. A Client calls the
// service at its address. In a cluster it may have the addresses of all members: when one member is
// gone, or knows no leader, it calls the next.
//
//	c := client.New(client.Config{Address: "127.0.0.1:18110"})
//	defer c.Close()
//	order, err := c.CreateOrder(ctx, &client.OrderRequest{
//		ClientOrderID: "a-1", AccountID: 7, Security: "ACME",
//		Side: client.Buy, Quantity: 100, LimitPrice: client.Units(101) + 250_000,
//	})
//
// An answer that is not a success is a *Problem; find it with errors.As. Its Reason says why the
// risk gate refused. Any other error is the transport's.
//
// A request is sent again, at most Config.Retries times, and only when that cannot decide twice:
// there was no connection, the answer said "sequenced":false, the request reads, or every order or
// booking in it has a clientOrderId, which stays the same. When the outcome stays unknown the error
// is returned; Unknown reports such an error.
//
// Every method that asks takes a context: its end closes the connection of a request that is under
// way, and nothing is sent again. Config.Timeout bounds every attempt, and the methods that go
// through the whole history have a bound of their own. RegulatoryReport, Export and Feed stream, as
// long as their context lasts. A report that is read to the end is whole and has the server's
// checksum. A feed goes on by itself where its connection ended:
//
//	for event, err := range c.Feed(ctx, lastID, "book:ACME", "trades") {
//		if err != nil {
//			return err // ctx has ended, or the server will not give this feed
//		}
//		lastID = event.ID
//	}
//
// After makes a Client whose reads show a write; Because gives the reason of an operator's act:
//
//	positions, err := c.After(order.Sequence).Positions(ctx, client.PositionsQuery{})
//	applied, err := c.Because("exchange notice 7").RiskControlSecurity(ctx, "ACME", true, true)
//
// Any number of goroutines may use a Client. It verifies nothing else and logs nothing.
package client
