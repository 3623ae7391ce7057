package audit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"strings"
	"testing"

	"posttrade/matcher"
	"posttrade/ring/must"
)

// naive renders a list of events in the plainest way: a map for every object, exact rationals for
// prices, and orders followed by their own arithmetic. It shares only the contract with the
// renderer.
type naive struct {
	t      testing.TB
	names  []string         // of security 1, 2, ...
	leaves map[uint32]int64 // of every order, by reference
	total  map[uint32]int64
	cmd    matcher.Command // of the event's command
	out    bytes.Buffer
	ends   []int // where the records of every sequence end in out
	done   int   // events rendered
}

func newNaive(t testing.TB, g *matcher.Genesis) *naive {
	n := &naive{t: t, leaves: map[uint32]int64{}, total: map[uint32]int64{}, ends: []int{0}}
	for _, s := range g.Securities {
		n.names = append(n.names, s.Ticker)
	}
	return n
}

// members are the members of a record, in the order of the contract.
var members = strings.Fields(
	"kind sequence orderId tradeId accountId security side quantity price timestampMillis riskReason")

// line writes one record; a member that is not in it is null.
func (n *naive) line(record map[string]any) {
	for i, name := range members {
		var text bytes.Buffer
		enc := json.NewEncoder(&text)
		enc.SetEscapeHTML(false)
		must.OK(n.t, enc.Encode(record[name]))
		separator := ","
		if i == 0 {
			separator = "{"
		}
		fmt.Fprintf(&n.out, "%s%q:%s", separator, name, strings.TrimSpace(text.String()))
		delete(record, name)
	}
	n.out.WriteString("}\n")
	if len(record) > 0 {
		n.t.Fatalf("members %v are not in the contract", record)
	}
}

// price is a decimal without trailing zeros, nil for none.
func price(px int64) any {
	if px <= 0 {
		return nil
	}
	text := big.NewRat(px, matcher.PriceScale).FloatString(6)
	return json.Number(strings.TrimSuffix(strings.TrimRight(text, "0"), "."))
}

// rate is price for a number that may be negative.
func rate(fixed int64) any {
	if fixed < 0 {
		return json.Number("-" + string(price(-fixed).(json.Number)))
	}
	return price(fixed)
}

func orderID(ref uint32) any {
	if ref == 0 {
		return nil
	}
	return fmt.Sprintf("ord-%d", ref)
}

// side is for commands that have one: a security's control has bits there.
func side(s matcher.Side) string { return []string{"Buy", "Sell", "?", "?"}[s] }

func (n *naive) security(id uint32) any {
	if id == 0 || int(id) > len(n.names) {
		return nil
	}
	return n.names[id-1]
}

func (n *naive) event(ev *matcher.Event) {
	if ev.Flags&matcher.EventFirst != 0 {
		n.cmd = *ev.Cmd()
	}
	about := func(kind string) map[string]any {
		return map[string]any{
			"kind": kind, "sequence": ev.InputSeq, "orderId": orderID(ev.OrderRef),
			"accountId": ev.AccountID,
			"security":  n.security(ev.SecurityID), "side": side(ev.Side), "quantity": ev.Qty,
			"price":           price(ev.Px),
			"timestampMillis": ev.TimeMillis,
		}
	}
	switch ev.Kind {
	case matcher.EventAccepted:
		n.leaves[ev.OrderRef], n.total[ev.OrderRef] = int64(ev.Qty), int64(ev.Qty)
		n.line(about("accept"))
	case matcher.EventReplaced:
		n.leaves[ev.OrderRef] += int64(ev.Qty) - n.total[ev.OrderRef]
		n.total[ev.OrderRef] = int64(ev.Qty)
		n.line(about("accept"))
	case matcher.EventCanceled:
		if n.leaves[ev.OrderRef] != int64(ev.Qty) {
			n.t.Errorf("inputSeq=%d: %d of order %d cancelled, %d are open",
				ev.InputSeq, ev.Qty, ev.OrderRef, n.leaves[ev.OrderRef])
		}
		record := about("cancel")
		if ev.Reason != matcher.Accepted {
			record["riskReason"] = ev.Reason.String()
		}
		n.line(record)
	case matcher.EventFilled:
		kinds := []string{"partial-fill", "trade-booked"}
		if ev.OrderRef == 0 {
			kinds = kinds[1:]
		} else if n.leaves[ev.OrderRef] -= int64(ev.Qty); n.leaves[ev.OrderRef] == 0 {
			kinds[0] = "fill"
		}
		for _, kind := range kinds {
			record := about(kind)
			record["tradeId"] = fmt.Sprintf("trd-%d", ev.TradeSeq)
			n.line(record)
		}
	case matcher.EventContract:
		record := map[string]any{
			"kind": "trade-booked", "sequence": ev.InputSeq, "accountId": n.cmd.AccountID,
			"side":     side(n.cmd.Side),
			"quantity": n.cmd.Qty, "price": rate(n.cmd.LimitPx), "timestampMillis": n.cmd.EventTimeMillis,
			"orderId": fmt.Sprintf("SW-%d", ev.InputSeq),
		}
		if n.cmd.Type == matcher.SwaptionBook {
			record["orderId"] = fmt.Sprintf("SWPT-%d", ev.InputSeq)
		}
		n.line(record)
	case matcher.EventRejected:
		n.rejected(ev)
	case matcher.EventApplied:
		if name, err := n.cmd.Symbol(); err == nil && int(ev.SecurityID) == len(n.names)+1 {
			n.names = append(n.names, name)
		}
	}
}

// rejected follows the table of doc.go.
func (n *naive) rejected(ev *matcher.Event) {
	c := n.cmd
	if c.TemplateID != matcher.TemplateCommand {
		return
	}
	record := map[string]any{
		"kind": "reject", "sequence": ev.InputSeq, "accountId": c.AccountID,
		"security": n.security(c.SecurityID),
		"side":     side(c.Side), "quantity": c.Qty, "price": price(c.LimitPx),
		"timestampMillis": c.EventTimeMillis, "riskReason": ev.Reason.String(),
	}
	switch c.Type {
	case matcher.OrderNew:
		record["orderId"] = orderID(ev.OrderRef)
	case matcher.OrderReplace:
		record["orderId"] = orderID(c.OrderRef)
	case matcher.OrderCancel:
		record["orderId"] = orderID(c.OrderRef)
		delete(record, "side")
		delete(record, "quantity")
		delete(record, "price")
	case matcher.ForceFill:
		record["orderId"] = orderID(c.OrderRef)
		delete(record, "side")
	case matcher.TradeNew:
		delete(record, "price")
	case matcher.SwapBook, matcher.SwaptionBook:
		delete(record, "security")
		record["price"] = rate(c.LimitPx)
	default:
		return
	}
	n.line(record)
}

// report renders the events that have come since the last call, and returns the
// report of [from, to].
func (n *naive) report(events []matcher.Event, from, to uint64) []byte {
	n.t.Helper()
	for ; n.done < len(events); n.done++ {
		n.event(&events[n.done])
		for uint64(len(n.ends)) <= events[n.done].InputSeq {
			n.ends = append(n.ends, 0)
		}
		n.ends[events[n.done].InputSeq] = n.out.Len()
	}
	to = min(to, uint64(len(n.ends)-1))
	if from > to {
		return nil
	}
	return n.out.Bytes()[n.ends[from-1]:n.ends[to]]
}
