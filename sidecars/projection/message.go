package projection

import (
	"errors"
	"fmt"
	"math"

	"posttrade/matcher"
	"posttrade/matcher/strictjson"
	"posttrade/sidecars/store"
)

// MaxMessageBytes is the largest booking message that is read. All other bodies have the same
// limit.
const MaxMessageBytes = 64 << 10

// The reasons of a malformed message that strictjson has no error for.
//
// They contain nothing of the message; ErrMalformed wraps them.
var (
	errLong    = errors.New("message too long")
	errUnknown = errors.New("unknown field")
	errMissing = errors.New("missing")
	errValue   = errors.New("not a valid value")
	errOtherID = errors.New("not the number of the id")
)

// field is a member of a booking message.
type field uint8

// The order is that of fieldNames: first the members that must be there, then those that may be
// absent. fields is their number, and noField stands for a member that is none.
const (
	fieldID field = iota
	fieldAccount
	fieldSecurity
	fieldSide
	fieldQuantity
	fieldPrice
	fieldTimestamp
	fieldTradeSeq
	fieldOrder
	fieldStatus
	fieldSettlement
	fieldUpdated
	fields
	noField
)

// required is the first field that may be absent.
const required = fieldTradeSeq

// fieldNames are the members' names in the message.
var fieldNames = [fields]string{
	"id", "accountId", "security", "side", "quantity", "price", "timestamp",
	"tradeSeq", "orderId", "status", "settlementDate", "updatedAt",
}

// fieldOf finds the field of a member's name. The case must match.
func fieldOf(name []byte) field {
	for f, known := range fieldNames {
		if string(name) == known {
			return field(f)
		}
	}
	return noField
}

// message reads booking messages, one after the other. One goroutine uses it.
//
// It keeps the reader's memory between messages, so a pool of them costs little for a booking.
type message struct {
	r strictjson.Reader
	// trade is that of the last message; status and the dates of settlement and booking are not set,
	// and Seq is 0 for a booking from outside
	trade store.Trade
}

// read reads body into m.trade. Its error is an ErrMalformed that names the field and contains
// nothing of the body.
//
// Three things are checked only at the end, because members may come in any order: that all
// required ones are there, that a tradeSeq is the number of the id, and that a booking from outside
// has null or nothing for it.
func (m *message) read(body []byte) error {
	m.trade = store.Trade{}
	if len(body) > MaxMessageBytes {
		return malformed(noField, errLong)
	}
	r := &m.r
	r.Reset(body)
	at, met := noField, uint(0)
	var tradeSeq int64
	null := false // it is
	for name := range r.Members {
		if at = fieldOf(name); at == noField {
			r.Fail(errUnknown)
			break
		}
		met |= 1 << at
		if at == fieldTradeSeq {
			if null = r.Null(); !null {
				tradeSeq = r.Int()
			}
		} else {
			m.member(at)
		}
		if r.Err() != nil {
			break
		}
		at = noField
	}
	if err := r.End(); err != nil {
		return malformed(at, err)
	}
	for f := field(0); f < required; f++ {
		if met&(1<<f) == 0 {
			return malformed(f, errMissing)
		}
	}
	if met&(1<<fieldTradeSeq) != 0 &&
		(null != (m.trade.Seq == 0) || uint64(tradeSeq) != m.trade.Seq) {
		return malformed(fieldTradeSeq, errOtherID)
	}
	return nil
}

// malformed is an ErrMalformed with the field and the reason.
func malformed(f field, reason error) error {
	if f == noField {
		return fmt.Errorf("projection: %w: %w", ErrMalformed, reason)
	}
	return fmt.Errorf("projection: %w: %s: %w", ErrMalformed, fieldNames[f], reason)
}

// member reads the value of one field. Fields that are computed anew are read as strictly as the
// others.
//
// A value that cannot be is errValue; the reader's own errors, of the JSON form, win over it.
func (m *message) member(f field) {
	t, ok := &m.trade, true
	switch f {
	case fieldID:
		t.ID = string(m.r.String())
		t.Seq, ok = matcher.ParseTradeID(t.ID)
		ok = ok || store.ExternalID(t.ID)
	case fieldAccount:
		t.AccountID = uint32(m.whole(math.MaxUint32))
	case fieldSecurity:
		t.Security = string(m.r.String())
		ok = matcher.ValidTicker(t.Security)
	case fieldSide:
		t.Side, ok = sideOf(m.r.String())
	case fieldQuantity:
		t.Quantity = m.whole(math.MaxInt32)
	case fieldPrice:
		t.Price = m.r.Decimal()
		ok = t.Price > 0
	case fieldTimestamp:
		t.ExecutedAt, ok = store.ParseExactTime(m.r.String())
	case fieldOrder:
		if m.r.Null() { // Trade JSON has null for a market trade
			return
		}
		t.OrderID = string(m.r.String())
		ok = orderID(t.OrderID)
	case fieldStatus:
		_, err := store.ParseStatus(string(m.r.String()))
		ok = err == nil
	case fieldSettlement:
		_, err := store.ParseDate(string(m.r.String()))
		ok = err == nil
	case fieldUpdated:
		_, ok = store.ParseExactTime(m.r.String())
	}
	if !ok {
		m.r.Fail(errValue) // keeps an error that the reader found first
	}
}

// whole reads a whole number from 1 to most.
//
// An account id has 32 bits, a quantity 31.
func (m *message) whole(most int64) int64 {
	v := m.r.Int()
	if m.r.Err() == nil && (v < 1 || v > most) {
		m.r.Fail(strictjson.ErrRange)
	}
	return v
}

// orderID reports whether s is the id of an order that an engine can number.
func orderID(s string) bool {
	number, ok := matcher.ParseOrderID(s)
	return ok && number <= matcher.MaxOrderNumber
}
