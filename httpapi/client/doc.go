// Package client calls the HTTP interfaces of the order-matcher, the
// trade-processor, the account-service and the reference-data service: typed
// requests and answers over keep-alive connections, for users, the replay
// command, the load generators and the crash harness. A Client calls the service
// at its address; of a cluster it may know every member's, and then goes from one
// that is gone, or knows no leader, to the next.
//
//	c := client.New(client.Config{Address: "127.0.0.1:18110"})
//	defer c.Close()
//	order, err := c.CreateOrder(&client.OrderRequest{
//		ClientOrderID: "a-1", AccountID: 7, Security: "ACME",
//		Side: matcher.Buy, Quantity: 100, LimitPrice: client.Units(101) + 250_000,
//	})
//
// An answer that is not a success is a *Problem, to be found with errors.As; its
// Reason says why the risk gate refused. Any other error is the transport's.
//
// A request is sent again, at most Config.Retries times, only when that cannot
// decide twice: there was no connection, the answer said "sequenced":false, the
// request reads, or every order or booking in it has a clientOrderId, which stays
// the same. What remains unknown after that is returned; Unknown reports it.
//
// Methods take no context: Config.Timeout bounds every attempt, and those that go
// through the whole history have a bound of their own. RegulatoryReport alone
// streams, as long as its context lasts; what it has read to the end is whole and
// has the server's checksum. A Client may be used by any number of goroutines. It
// verifies nothing else and logs nothing.
package client
