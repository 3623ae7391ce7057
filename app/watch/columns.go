package watch

import (
	"fmt"
	"strings"
	"unicode"

	"posttrade/httpapi/client"
)

// document has the members of all events that the columns show.
//
// Members that an event does not have stay zero. Its names are those of the feed's JSON documents,
// read without regard to case.
type document struct {
	Security string
	Side     string
	Price    client.Price
	Quantity int64
	// Orders that rest at Price, of an event of kind book.
	Orders int
	// The best levels of an event of kind bbo; nil for an empty side.
	Bid, Ask *client.Level
	// All levels of a snapshot, best first.
	Bids []client.Level
	Asks []client.Level
	// 0 for an event that is of no account, such as a public trade.
	AccountID uint32

	TradeID       string
	AggressorSide string

	OrderID           string
	Status            string
	RiskReason        string
	RemainingQuantity int64
	LimitPrice        client.Price
}

// text says in words what an event states; empty: its document says it.
//
// kind is the event's. Kinds without words are printed as their JSON.
func (d *document) text(kind string) string {
	switch kind {
	case "snapshot":
		return fmt.Sprintf("%s, %d and %d levels", best(first(d.Bids), first(d.Asks)), len(d.Bids),
			len(d.Asks))
	case "book":
		return fmt.Sprintf("%s %s: %d in %d orders", d.Side, d.Price, d.Quantity, d.Orders)
	case "bbo":
		return best(d.Bid, d.Ask)
	case "price":
		return d.Price.String()
	case "trade":
		return d.trade()
	case "order":
		return d.order()
	}
	return ""
}

// trade is a public trade by its aggressor, or an account's own fill with its order.
func (d *document) trade() string {
	if d.AccountID == 0 {
		return fmt.Sprintf("%s %d at %s  %s", d.AggressorSide, d.Quantity, d.Price, d.TradeID)
	}
	return fmt.Sprintf("%s %d at %s  %s of account %d, %s", d.Side, d.Quantity, d.Price, d.TradeID,
		d.AccountID, d.OrderID)
}

// order is what an order asks for and what has become of it. A refusal has its reason instead of
// what is left.
func (d *document) order() string {
	at := "at the market"
	if d.LimitPrice != 0 {
		at = "at " + d.LimitPrice.String()
	}
	text := fmt.Sprintf("%s %d %s  %s of account %d  %s", d.Side, d.Quantity, at, d.OrderID,
		d.AccountID, d.Status)
	if d.RiskReason != "" {
		return text + " " + d.RiskReason
	}
	return fmt.Sprintf("%s, %d left", text, d.RemainingQuantity)
}

// first is the best level of a list that has it first; nil for an empty one.
func first(levels []client.Level) *client.Level {
	if len(levels) == 0 {
		return nil
	}
	return &levels[0]
}

// best is the best bid and ask as quantity x price, a dash for an empty side.
func best(bid, ask *client.Level) string {
	side := func(l *client.Level) string {
		if l == nil {
			return "-"
		}
		return fmt.Sprintf("%d x %s", l.Quantity, l.Price)
	}
	return side(bid) + " / " + side(ask)
}

// printable leaves out of a text what a terminal would not show as a character.
//
// A server's text could otherwise move the cursor, or change colours and titles.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, text)
}
