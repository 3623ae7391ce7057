package httpapi

import (
	"posttrade/matcher"
	"posttrade/matcher/strictjson"
)

// extractRequest is the body of POST /risk/extract.
//
// The marker carries both, so every member cuts the same day with the same marks.
type extractRequest struct {
	session      uint16 // epoch day
	priceVersion uint32 // of the closing marks
}

// extract reads the body; an absent price version is 1.
func (d *decoder) extract() extractRequest {
	r := extractRequest{priceVersion: 1}
	var session bool
	for key := range d.members {
		switch string(key) {
		case "sessionDate":
			r.session, session = d.day("sessionDate"), true
		case "priceVersion":
			r.priceVersion = d.priceVersion()
		default:
			d.unknown(key)
		}
	}
	d.require("sessionDate", session)
	return r
}

// priceVersion reads the version of a set of closing marks: 0 is none.
func (d *decoder) priceVersion() uint32 {
	d.field = "priceVersion"
	n := d.json.Int()
	if d.json.Err() == nil && (n < 1 || n > 1<<32-1) {
		d.fail(strictjson.ErrRange)
	}
	return uint32(n)
}

// riskExtract is POST /risk/extract. It sequences the marker at which the cut is taken, and does
// not wait for the extract. Like a control, it does not check readiness: the day has to end also
// while the control state is stale.
//
// 202 says that the marker is durable. A second request makes a second marker. It is no operator's
// act on record.
func (x *exchange) riskExtract() problem {
	if p := x.controlBody(); p.status != 0 {
		return p
	}
	r := x.body.extract()
	if p := x.bodyRead(); p.status != 0 {
		return p
	}
	if p := x.open(); p.status != 0 {
		return p
	}
	if p := x.acquire(1); p.status != 0 {
		return p
	}
	*x.ticket.Command(0) = matcher.NewRiskExtract(int64(r.session), r.priceVersion)
	if p := x.sequence(); p.status != 0 {
		return p
	}
	a := x.ticket.Answer(0)
	mustApply(a)
	b := append(x.begin(), `{"sequence":`...)
	return x.send(202, append(appendUint(b, a.InputSeq), '}'))
}
