//perf:hot

package httpapi

import (
	"posttrade/matcher"
	"posttrade/matcher/desk"
	"posttrade/matcher/strictjson"
)

const (
	// maxClientID is the longest clientOrderId, in bytes.
	maxClientID = desk.MaxClientIDBytes
	// maxBatch is the largest order batch: a batch is one ticket.
	maxBatch = desk.MaxBatch
)

// orderRequest is a decoded createOrder or bookMarketTrade. The byte slices point into the
// request's body.
//
// It is also what answers repeat of the request. The zero value of an optional member is what its
// absence means.
type orderRequest struct {
	// clientID is empty for none, else 1 to maxClientID bytes of printable ASCII. security is as the
	// client wrote it.
	clientID []byte
	security []byte
	// limitPx is in millionths; 0 for MARKET.
	limitPx   int64
	accountID uint32
	// qty is 1 or more, in whole units.
	qty    int32
	side   matcher.Side
	flags  uint16 // time in force, as in matcher.Command
	market bool
}

// The bits of the members that an object has shown so far.
const (
	sawAccount uint8 = 1 << iota
	sawSecurity
	sawSide
	sawQuantity
	sawLimit
)

// sawTraded are the members that every order and every trade must have.
const sawTraded = sawAccount | sawSecurity | sawSide | sawQuantity

// decoder reads request bodies. It is kept with its Reader, so that decoding an order allocates
// nothing. field is the member that was read last, for the detail of a refusal. A refusal about an
// unknown member uses stranger instead.
//
// The first error stays (see strictjson): the methods go on with zero values, and the caller asks
// once, at end.
type decoder struct {
	json     strictjson.Reader
	field    string
	stranger string // a member that the object does not have
}

// reset begins with another body, which the decoder keeps a reference to.
func (d *decoder) reset(body []byte) {
	d.field = ""
	d.json.Reset(body)
}

// end checks that the body was read whole and without an error.
func (d *decoder) end() error { return d.json.End() }

// fail refuses the body, unless it is refused already: the first error is the one that the client
// sees.
func (d *decoder) fail(err error) { d.json.Fail(err) }

// members yields the name of every member of the next object. The caller must read its value, or
// refuse the object, before it asks for the next name.
//
// The name is valid until the next one is asked for. A duplicate member is an error of the Reader.
func (d *decoder) members(yield func(key []byte) bool) {
	for d.json.BeginObject(); ; {
		read := d.json.Err() == nil
		key, ok := d.json.NextKey()
		if !ok && read && d.json.Err() != nil {
			d.field = "" // the member that was read last is right
		}
		if !ok || !yield(key) {
			return
		}
	}
}

// order reads one createOrder object.
//
// quickOrder reads what most programs send; the Reader reads everything else, and what quickOrder
// did not take. Both give the same for every text that quickOrder takes.
func (d *decoder) order(o *orderRequest) {
	if n, last := quickOrder(d.json.Ahead(), o); n > 0 {
		d.field = last
		d.json.Take(n)
		return
	}
	d.slowOrder(o)
}

// slowOrder is order for an object that is not written in the usual way, or is wrong.
func (d *decoder) slowOrder(o *orderRequest) {
	*o, d.field = orderRequest{}, ""
	var saw uint8
	for key := range d.members {
		switch string(key) {
		case "limitPrice":
			o.limitPx, saw = d.price("limitPrice"), saw|sawLimit
		case "type":
			o.market = d.market()
		case "timeInForce":
			o.flags = d.timeInForce()
		default:
			saw |= d.traded(key, o)
		}
	}
	switch {
	case d.json.Err() != nil:
	case saw&sawTraded != sawTraded:
		d.missing(saw, "")
	case o.market == (saw&sawLimit != 0):
		d.field = "limitPrice"
		d.fail(errLimitPrice)
	case o.market && o.flags == matcher.FlagPostOnly:
		d.field = "timeInForce"
		d.fail(errPostOnlyMarket)
	}
}

// trade reads a bookMarketTrade object.
//
// It has no price, no type and no time in force: these members are unknown here.
func (d *decoder) trade(o *orderRequest) {
	*o = orderRequest{market: true}
	var saw uint8
	for key := range d.members {
		saw |= d.traded(key, o)
	}
	if saw&sawTraded != sawTraded {
		d.missing(saw, "")
	}
}

// traded reads a member that orders and trades have, and returns which of them it is.
//
// 0 is returned for the client id, which no object must have.
func (d *decoder) traded(key []byte, o *orderRequest) (saw uint8) {
	switch string(key) {
	case "clientOrderId":
		o.clientID = d.clientID()
	case "accountId":
		o.accountID, saw = d.accountID(), sawAccount
	case "security":
		o.security, saw = d.security(), sawSecurity
	case "side":
		o.side, saw = d.side(), sawSide
	case "quantity":
		o.qty, saw = d.quantity(), sawQuantity
	default:
		d.unknown(key)
	}
	return saw
}

// replacement reads a replace object into qty, limitPx and clientID of o.
//
// Both numbers are required. The other fields of o come from the order itself.
func (d *decoder) replacement(o *orderRequest) {
	*o = orderRequest{}
	var saw uint8
	for key := range d.members {
		switch string(key) {
		case "clientOrderId":
			o.clientID = d.clientID()
		case "quantity":
			o.qty, saw = d.quantity(), saw|sawQuantity
		case "limitPrice":
			o.limitPx, saw = d.price("limitPrice"), saw|sawLimit
		default:
			d.unknown(key)
		}
	}
	if saw != sawQuantity|sawLimit {
		d.missing(saw|sawAccount|sawSecurity|sawSide, "limitPrice")
	}
}

// tick reads a {security, price} object.
func (d *decoder) tick() (security []byte, px int64) {
	var saw uint8
	d.field = ""
	for key := range d.members {
		switch string(key) {
		case "security":
			security, saw = d.security(), saw|sawSecurity
		case "price":
			px, saw = d.price("price"), saw|sawLimit
		default:
			d.unknown(key)
		}
	}
	if saw != sawSecurity|sawLimit {
		d.missing(saw|sawAccount|sawSide|sawQuantity, "price")
	}
	return security, px
}

// missing refuses an object for the first required member that it does not have. price is the
// object's name of the one behind sawLimit.
func (d *decoder) missing(saw uint8, price string) {
	if d.json.Err() != nil {
		return
	}
	switch {
	case saw&sawAccount == 0:
		d.field = "accountId"
	case saw&sawSecurity == 0:
		d.field = "security"
	case saw&sawSide == 0:
		d.field = "side"
	case saw&sawQuantity == 0:
		d.field = "quantity"
	default:
		d.field = price
	}
	d.fail(errMissingField)
}

// clientID reads 1 to 64 bytes of printable ASCII.
//
// The result points into the body.
func (d *decoder) clientID() []byte {
	d.field = "clientOrderId"
	s := d.json.String()
	if d.json.Err() == nil && !printable(s, maxClientID) {
		d.fail(errText)
	}
	return s
}

// security reads a ticker that a record can carry. The gate decides whether it is known. An unknown
// ticker is no error of the body.
func (d *decoder) security() []byte {
	d.field = "security"
	s := d.json.String()
	if d.json.Err() == nil && !printable(s, matcher.TickerBytes) {
		d.fail(errText)
	}
	return s
}

// printable reports 1 to limit bytes of printable ASCII.
func printable(s []byte, limit int) bool {
	if len(s) == 0 || len(s) > limit {
		return false
	}
	for _, ch := range s {
		if ch < ' ' || ch > '~' {
			return false
		}
	}
	return true
}

// accountID reads a whole number of 32 bits. Whether it is an account is the gate's to say.
func (d *decoder) accountID() uint32 {
	d.field = "accountId"
	n := d.json.Int()
	if n < 0 || n > 1<<32-1 {
		d.fail(strictjson.ErrRange)
	}
	return uint32(n)
}

// quantity reads a whole number of 1 to 2147483647.
func (d *decoder) quantity() int32 {
	d.field = "quantity"
	n := d.json.Int()
	if d.json.Err() == nil && (n < 1 || n > 1<<31-1) {
		d.fail(strictjson.ErrRange)
	}
	return int32(n)
}

// price reads a price of more than zero, in millionths. More than six decimals are refused unless
// they are 0.
func (d *decoder) price(field string) int64 {
	d.field = field
	px := d.json.Decimal()
	if d.json.Err() == nil && px <= 0 {
		d.fail(strictjson.ErrRange)
	}
	return px
}

// side reads Buy or Sell in any case.
func (d *decoder) side() matcher.Side { return d.sideOf("side", "buy", "sell") }

// sideOf reads a side that the API states with two words of its own, given in lower case.
func (d *decoder) sideOf(field, buy, sell string) matcher.Side {
	d.field = field
	s := d.json.String()
	switch {
	case equalFold(s, buy):
		return matcher.Buy
	case equalFold(s, sell):
		return matcher.Sell
	}
	d.fail(errChoice)
	return matcher.Buy
}

// market reads the type of an order, in capitals only.
func (d *decoder) market() bool {
	d.field = "type"
	switch string(d.json.String()) {
	case "LIMIT":
		return false
	case "MARKET":
		return true
	}
	d.fail(errChoice)
	return false
}

// timeInForce reads a time in force as the flag that a record carries; 0 is GTC.
func (d *decoder) timeInForce() uint16 {
	d.field = "timeInForce"
	switch string(d.json.String()) {
	case "GTC":
		return 0
	case "IOC":
		return matcher.FlagIOC
	case "FOK":
		return matcher.FlagFOK
	case "POST_ONLY":
		return matcher.FlagPostOnly
	}
	d.fail(errChoice)
	return 0
}
