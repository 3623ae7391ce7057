package acts

import (
	"bytes"
	"encoding/json"
	"strconv"

	"posttrade/matcher"
	"posttrade/matcher/note"
	"posttrade/matcher/strictjson"
	"posttrade/matcher/timetext"
)

// Record is one act, as GET /audit shows it.
type Record struct {
	// Kind is one of note.Kinds, or "unreadable" for a note whose text does not read.
	Kind string
	// Sequence is that of the act's command; of an act that is no command, that of its note's first
	// part.
	Sequence uint64
	// Millis is the event time of that command, in epoch milliseconds.
	Millis int64
	// Subject is that of the operator's token, Address where the act came from, Reason what the
	// operator gave. "" where it is not known.
	Subject string
	Address string
	Reason  string
	// Object is what the act is about, Old and New the values before and after: JSON texts, nil for
	// null.
	Object   json.RawMessage
	Old, New json.RawMessage
	// accountID and orderID are what the object names, for Query: 0 and "" where it names none.
	accountID uint64
	orderID   string
}

// newRecord completes a record from what its object names.
func newRecord(kind string, sequence uint64, millis int64, n *note.Note) Record {
	r := Record{Kind: kind, Sequence: sequence, Millis: millis, Subject: n.Subject,
		Address: n.Address, Reason: n.Reason, Object: n.Object, Old: n.Old, New: n.New}
	var names struct {
		AccountID uint64 `json:"accountId"`
		OrderID   string `json:"orderId"`
	}
	if json.Unmarshal(n.Object, &names) == nil { // an object of another shape names neither
		r.accountID, r.orderID = names.AccountID, names.OrderID
	}
	return r
}

// refuse makes the record that of an act that changed nothing: what was asked moves from the new
// value into the object, beside what it was about. An object that is no JSON object is left out.
func (r *Record) refuse(code string) {
	var m members
	m.add("act", r.Kind).add("code", code).add("asked", r.New)
	about := r.Object
	r.Kind, r.Object, r.Old, r.New = note.ActRefused, m.object(), nil, nil
	if len(about) > len("{}") && about[0] == '{' {
		r.Object = append(append(r.Object[:len(r.Object)-1], ','), about[1:]...)
	}
}

// line is a record as one line of JSON, in the order of its members.
type line struct {
	Kind     string `json:"kind"`
	Sequence uint64 `json:"sequence"`
	// Time is UTC with milliseconds. What follows is null where it is not known.
	Time    string          `json:"time"`
	Subject *string         `json:"subject"`
	Address *string         `json:"address"`
	Reason  *string         `json:"reason"`
	Object  json.RawMessage `json:"object"`
	Old     json.RawMessage `json:"old"`
	New     json.RawMessage `json:"new"`
}

// AppendJSON appends the record as a line: an object with the members kind, sequence, time,
// subject, address, reason, object, old and new, and a newline. What is not known is null.
//
// The time is UTC in RFC 3339 with milliseconds.
//
// An act, and an act that changed nothing; a line each, broken here:
//
//	{"kind":"kill-switch","sequence":12,"time":"2023-11-14T22:13:20.000Z","subject":"alice",
//	"address":"10.0.0.1","reason":"drill","object":{"policy":"risk"},"old":true,"new":false}
//
//	{"kind":"refused","sequence":13,"time":"2023-11-14T22:13:21.000Z","subject":"bob",
//	"address":"10.0.0.1","reason":null,"object":{"act":"kill-switch","code":"STALE_VERSION",
//	"asked":true,"policy":"risk"},"old":null,"new":null}
func (r *Record) AppendJSON(b []byte) []byte {
	text := note.Value(line{
		Kind: r.Kind, Sequence: r.Sequence,
		Time:    timetext.Of(r.Millis),
		Subject: known(r.Subject), Address: known(r.Address), Reason: known(r.Reason),
		Object: r.Object, Old: r.Old, New: r.New,
	})
	return append(append(b, text...), '\n')
}

// known makes "" the null of JSON.
func known(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// amount is a number of millionths as JSON, null for 0: 0 stands for "unchanged" or "none".
func amount(px int64) json.RawMessage {
	if px == 0 {
		return json.RawMessage("null")
	}
	return strictjson.FormatDecimal(nil, px)
}

// members builds a JSON object whose members keep the order in which they were added; a map would
// sort them. add may be chained; object ends it, after at least one add.
type members struct{ b bytes.Buffer }

func (m *members) add(name string, value any) *members {
	sep := byte(',')
	if m.b.Len() == 0 {
		sep = '{'
	}
	m.b.WriteByte(sep)
	m.b.WriteString(strconv.Quote(name))
	m.b.WriteByte(':')
	m.b.Write(note.Value(value))
	return m
}

func (m *members) object() json.RawMessage {
	m.b.WriteByte('}')
	return m.b.Bytes()
}

// bare is the record of an act without a note, false for a command that is none. Each kind is the
// one that the same command has in a note, as far as the command alone tells.
//
// A control of the feed is no act: its OrderRef has the mark of the source's epoch. A price is none
// either: the command alone does not tell a price by hand from the feed's.
func bare(c *matcher.Command, ticker func(id uint32) string) (Record, bool) {
	var n note.Note
	var new members
	switch c.Type {
	case matcher.PolicyControl:
		n.Kind = note.KillSwitch
		new.add("policyVersion", c.PriceTicks).add("killSwitch", c.Side == 1)
		if c.Side == 0 && (c.Qty > 0 || c.LimitPx > 0) {
			n.Kind = note.Limits
		}
		if c.Qty > 0 {
			new.add("maxPositionQuantity", c.Qty)
		}
		if c.LimitPx > 0 {
			new.add("maxConcentrationNotional", amount(c.LimitPx))
		}
		n.Object = named("policy", "risk")
	case matcher.AccountControl:
		if c.OrderRef != 0 {
			return Record{}, false // of the control feed
		}
		n.Kind = enabling(c.Side)
		new.add("enabled", c.Side&matcher.SecurityEnabled != 0)
		n.Object = named("accountId", c.AccountID)
	case matcher.SecurityControl:
		if c.OrderRef != 0 {
			return Record{}, false
		}
		if n.Kind = enabling(c.Side); c.Side&matcher.SecurityHalted != 0 {
			n.Kind = note.Halt
		}
		new.add("enabled", c.Side&matcher.SecurityEnabled != 0).
			add("halted", c.Side&matcher.SecurityHalted != 0)
		n.Object = named("security", ticker(c.SecurityID))
	case matcher.RestrictionControl:
		n.Kind = note.Restrict
		new.add("restricted", c.Side == 1)
		n.Object = named("security", ticker(c.SecurityID))
	case matcher.ForceFill:
		n.Kind = note.ForceFill
		new.add("quantity", c.Qty).add("price", amount(c.LimitPx))
		var object members // the reference is the order's number but for the era, which no record has
		n.Object = object.add("orderId", matcher.OrderID(uint64(c.OrderRef))).
			add("accountId", c.AccountID).object()
	case matcher.CapacityControl:
		n.Kind = note.Capacity
		new.add("accounts", c.AccountID).add("securities", c.SecurityID).add("contracts", c.Qty)
		if c.OrderRef != 0 {
			new.add("openOrders", c.OrderRef).add("retainedOrders", c.PriceTicks).
				add("keys", c.LimitPx)
		}
		n.Object = named("capacity", "engine")
	case matcher.TokenRevoke:
		n.Kind = note.Revoke
		n.Object = named("subjectHash", c.Revocation().Subject.String())
		new.add("issuedUpTo", timetext.Of(c.EventTimeMillis))
	default:
		return Record{}, false
	}
	n.New = new.object()
	return newRecord(n.Kind, c.InputSeq, c.EventTimeMillis, &n), true
}

// named is an object of one member.
func named(name string, value any) json.RawMessage {
	var m members
	return m.add(name, value).object()
}

func enabling(side matcher.Side) string {
	if side&matcher.SecurityEnabled != 0 {
		return note.Enable
	}
	return note.Disable
}
