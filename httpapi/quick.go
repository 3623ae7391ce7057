//perf:hot

package httpapi

import (
	"posttrade/matcher"
	"posttrade/matcher/strictjson"
)

// quickOrder reads a createOrder object that is written as most programs write it and has no error.
// It takes a fraction of the time of a Reader. It returns the object's length and the member that
// was read last. When it returns 0, o holds nothing of use: the Reader reads the object again and
// finds what is wrong with it, or that nothing is.
//
// The usual way: no white space but one blank behind a comma, a colon or the brace, no escapes, no
// duplicate member, Buy and Sell as documented. It never refuses: a text with an error takes the
// other way, so errors are found in one place. The slices of o point into b.
func quickOrder(b []byte, o *orderRequest) (n int, last string) {
	*o = orderRequest{}
	if len(b) == 0 || b[0] != '{' {
		return 0, ""
	}
	var saw quickMember
	for i := 1; i < len(b); i++ { // after the brace or a comma
		i = quickSpace(b, i)
		member, name := quickMemberOf(b[i:])
		if saw&member != 0 {
			return 0, ""
		}
		saw |= member
		i = o.quickValue(member, b, quickSpace(b, i+len(name)+len(`"":`)))
		switch {
		case i == 0 || i >= len(b):
			return 0, ""
		case b[i] == ',':
		case b[i] == '}' && saw.whole(o):
			return i + 1, name
		default:
			return 0, ""
		}
	}
	return 0, ""
}

// quickSpace is the index after the one space that may be at i.
func quickSpace(b []byte, i int) int {
	if i < len(b) && b[i] == ' ' {
		i++
	}
	return i
}

// quickMember is a set of members of an object.
//
// The bits are those of the members of createOrder, and no others: 0 is no member.
type quickMember uint8

const (
	quickClientID quickMember = 1 << iota
	quickAccount
	quickSecurity
	quickSide
	quickQuantity
	quickLimit
	quickType
	quickForce
)

// whole reports that nothing is missing and that the members fit together.
func (saw quickMember) whole(o *orderRequest) bool {
	const required = quickAccount | quickSecurity | quickSide | quickQuantity
	return saw&required == required && o.market == (saw&quickLimit == 0) &&
		!(o.market && o.flags == matcher.FlagPostOnly)
}

// quickMemberOf returns the member that b starts with, by its name, quotes and colon; 0 for none.
//
// The second byte decides which names are compared. The constants are the lengths of the names with
// their quotes and the colon.
func quickMemberOf(b []byte) (member quickMember, name string) {
	if len(b) < len(`"x":0}`) {
		return 0, ""
	}
	switch n := len(b); b[1] {
	case 'c':
		if n >= 16 && string(b[:16]) == `"clientOrderId":` {
			return quickClientID, "clientOrderId"
		}
	case 'a':
		if n >= 12 && string(b[:12]) == `"accountId":` {
			return quickAccount, "accountId"
		}
	case 's':
		if n >= 11 && string(b[:11]) == `"security":` {
			return quickSecurity, "security"
		}
		if n >= 7 && string(b[:7]) == `"side":` {
			return quickSide, "side"
		}
	case 'q':
		if n >= 11 && string(b[:11]) == `"quantity":` {
			return quickQuantity, "quantity"
		}
	case 'l':
		if n >= 13 && string(b[:13]) == `"limitPrice":` {
			return quickLimit, "limitPrice"
		}
	case 't':
		if n >= 7 && string(b[:7]) == `"type":` {
			return quickType, "type"
		}
		if n >= 14 && string(b[:14]) == `"timeInForce":` {
			return quickForce, "timeInForce"
		}
	}
	return 0, ""
}

// quickValue reads the value of a member at i and returns the index after it; 0 for a value that is
// not plainly right.
//
// The checks are those of the decoder's methods for the same members. member 0 has no value: it
// ends the quick way.
func (o *orderRequest) quickValue(member quickMember, b []byte, i int) (end int) {
	var (
		n  int64
		ok bool
	)
	switch member {
	case quickClientID:
		o.clientID, end = strictjson.ScanText(b, i)
		ok = len(o.clientID) > 0 && len(o.clientID) <= maxClientID
	case quickAccount:
		n, end = strictjson.ScanInt(b, i)
		o.accountID, ok = uint32(n), n <= 1<<32-1
	case quickSecurity:
		o.security, end = strictjson.ScanText(b, i)
		ok = len(o.security) > 0 && len(o.security) <= matcher.TickerBytes
	case quickSide:
		end, ok = o.quickSide(b, i)
	case quickQuantity:
		n, end = strictjson.ScanInt(b, i)
		o.qty, ok = int32(n), n >= 1 && n <= 1<<31-1
	case quickLimit:
		o.limitPx, end = strictjson.ScanDecimal(b, i)
		ok = o.limitPx > 0
	case quickType, quickForce:
		end, ok = o.quickWord(member, b, i)
	}
	if !ok {
		return 0
	}
	return end
}

// quickSide reads a side as the documentation writes it.
func (o *orderRequest) quickSide(b []byte, i int) (end int, ok bool) {
	switch rest := b[i:]; {
	case len(rest) >= 5 && string(rest[:5]) == `"Buy"`:
		o.side = matcher.Buy
		return i + 5, true
	case len(rest) >= 6 && string(rest[:6]) == `"Sell"`:
		o.side = matcher.Sell
		return i + 6, true
	}
	return 0, false
}

// quickWord reads a type or a time in force.
func (o *orderRequest) quickWord(member quickMember, b []byte, i int) (end int, ok bool) {
	text, end := strictjson.ScanText(b, i)
	if member == quickType {
		o.market = string(text) == "MARKET"
		return end, o.market || string(text) == "LIMIT"
	}
	switch string(text) {
	case "GTC":
	case "IOC":
		o.flags = matcher.FlagIOC
	case "FOK":
		o.flags = matcher.FlagFOK
	case "POST_ONLY":
		o.flags = matcher.FlagPostOnly
	default:
		return 0, false
	}
	return end, true
}
