package replay

// maxTracked is the number of orders that a replay knows by the venue's id, over all connections.
// The oldest leaves first, so that memory stays bounded for a flow of any length; a later step
// about it is not sent.
const maxTracked = 1 << 17

// idTable maps client order ids to the venue's, for the last so many orders of one connection.
type idTable struct {
	// byClient has at most as many entries as order has places.
	byClient map[string]string
	// order is a ring of the client ids, in order of arrival; "" for a place that was never used.
	order []string
	// next is the place for the next id, which has the oldest one.
	next int
}

func newIDTable(capacity int) *idTable {
	return &idTable{byClient: map[string]string{}, order: make([]string, max(capacity, 1))}
}

// put forgets the oldest entry, so a flow of any length needs the same memory. A client id that
// comes twice has the newer order's id.
func (t *idTable) put(client, order string) {
	if old := t.order[t.next]; old != "" {
		delete(t.byClient, old)
	}
	t.order[t.next] = client
	t.next = (t.next + 1) % len(t.order)
	t.byClient[client] = order
}

// get returns the venue's id of a client order id; false for one that was never accepted, is final,
// or is older than the table.
func (t *idTable) get(client string) (order string, ok bool) {
	order, ok = t.byClient[client]
	return order, ok
}

// drop removes an order that is final. Its place in the ring becomes free when the ring comes
// round.
func (t *idTable) drop(client string) { delete(t.byClient, client) }
