package httpapi

import (
	"errors"
	"math"

	"posttrade/matcher"
	"posttrade/matcher/gate"
	"posttrade/matcher/note"
	"posttrade/matcher/strictjson"
)

// maxCollarBps is the largest collar that a request can set, as for the setting. It is 100 times
// the market price.
const maxCollarBps = 1_000_000

var (
	errNoLimit       = errors.New("at least one limit is required")
	errNothingBehind = errors.New("null removes the limit of one account; all accounts need a value")
)

// limits is the body of POST /risk/control/limits and POST /risk/control/accounts/{id}/limits. An
// absent limit stays as it is. A null, of one account, removes the account's own limit.
//
// The limits of all accounts always have a value, so null is refused for them. At least one limit
// must be named.
func (d *decoder) limits(forAccount bool) (c matcher.LimitsChange) {
	var version, limits bool
	c.ForAccount = forAccount
	for key := range d.members {
		switch string(key) {
		case "policyVersion":
			c.Version, version = d.whole("policyVersion", 1, math.MaxInt64), true
		case "limits":
			d.field, limits = "limits", true
			for key := range d.members {
				d.limit(&c, key)
			}
			if d.json.Err() == nil && c.Set|c.Remove == 0 {
				d.field = "limits"
				d.fail(errNoLimit)
			}
		default:
			d.unknown(key)
		}
	}
	d.require("policyVersion", version)
	d.require("limits", limits)
	return c
}

// limit reads one member of limits.
//
// Quantities and ages are whole numbers, money is a decimal above 0. Each range is within
// LimitID.Range, so the engine does not refuse the value as INVALID.
func (d *decoder) limit(c *matcher.LimitsChange, key []byte) {
	id := matcher.LimitID(0)
	for ; id < matcher.LimitCount && id.String() != string(key); id++ {
	}
	if id == matcher.LimitCount {
		d.unknown(key)
		return
	}
	name := id.String()
	d.field = name
	if d.json.Peek() == strictjson.KindNull {
		d.json.Null()
		c.Remove |= 1 << id
		if !c.ForAccount {
			d.fail(errNothingBehind)
		}
		return
	}
	c.Set |= 1 << id
	switch id {
	case matcher.LimitOrderQty, matcher.LimitPosition:
		c.Values[id] = d.whole(name, 1, math.MaxInt32)
	case matcher.LimitPriceAge:
		c.Values[id] = d.whole(name, 1, math.MaxInt64)
	case matcher.LimitCollar:
		c.Values[id] = d.whole(name, 0, maxCollarBps)
	default:
		c.Values[id] = d.price(name)
	}
}

// whole reads a whole number of a range.
func (d *decoder) whole(field string, least, most int64) int64 {
	d.field = field
	n := d.json.Int()
	if d.json.Err() == nil && (n < least || n > most) {
		d.fail(strictjson.ErrRange)
	}
	return n
}

// controlLimits is POST /risk/control/limits.
//
// A change is one command for each limit, sequenced side by side: it comes into force as a whole.
func (x *exchange) controlLimits() problem {
	if p := x.controlBody(); p.status != 0 {
		return p
	}
	change := x.body.limits(false)
	if p := x.bodyRead(); p.status != 0 {
		return p
	}
	return x.policy(change.AppendTo(nil), func() act { return x.limitsAct(&change) })
}

// controlAccountLimits is POST /risk/control/accounts/{id}/limits.
//
// The body is read before the path: a bad body of an unknown account is 400. The account must be
// known, enabled or not.
func (x *exchange) controlAccountLimits(id []byte) problem {
	if p := x.controlBody(); p.status != 0 {
		return p
	}
	change := x.body.limits(true)
	if p := x.bodyRead(); p.status != 0 {
		return p
	}
	account, ok := number(id, 1, math.MaxUint32)
	if !ok {
		return problemAccountID
	}
	change.AccountID = uint32(account)
	if _, ok := x.m.Views.Account(change.AccountID); !ok {
		return problemAccount
	}
	return x.policy(change.AppendTo(nil), func() act { return x.limitsAct(&change) })
}

// limitsValue is the value of a change of limits in its act: before it, or after it.
type limitsValue struct {
	PolicyVersion int64             `json:"policyVersion"`
	Limits        *gate.LimitValues `json:"limits"` // of an account its own ones, null for none
}

// limitsAct is the act of a change of limits: all limits before and after it, of an account those
// that it has of its own.
//
// The caller is alone among changes of the policy, so the image is the one that the change meets.
// An account's own limits are null when it has none, before or after.
func (x *exchange) limitsAct(c *matcher.LimitsChange) act {
	image := x.m.Gate.Snapshot()
	was, a := &gate.LimitValues{Set: matcher.AllLimits, Values: x.m.Gate.RiskLimits()},
		act{kind: note.Limits, object: byPolicy{"risk"}}
	if c.ForAccount {
		was, a.object = nil, byAccount{c.AccountID}
		for i := range image.Accounts {
			if image.Accounts[i].ID == c.AccountID {
				was = image.Accounts[i].Limits
			}
		}
	}
	is := gate.LimitValues{}
	if was != nil {
		is = *was
	}
	is.Set = is.Set&^c.Remove | c.Set
	is.Values = c.Set.Over(&is.Values, &c.Values)
	a.old, a.new = limitsValue{image.PolicyVersion, was}, limitsValue{c.Version, &is}
	if is.Set == 0 {
		a.new = limitsValue{c.Version, nil}
	}
	return a
}
