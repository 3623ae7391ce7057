package control

import (
	"fmt"
	"strconv"

	"posttrade/matcher/strictjson"
)

// Delta is one change of one record, as it is sent on the source's stream.
//
// Its payload, here of an account:
//
//	{"epoch":1700000000000,"record":{"displayName":"Desk A","enabled":true,"id":7,"version":42},
//	 "schemaVersion":1,"source":"account","version":42}
//
// on one line. The record is whole, not a difference: a replica needs no earlier message to apply
// it.
type Delta struct {
	Source Source
	// Epoch and Version are at least 1, and at most MaxEpoch and MaxVersion.
	Epoch   uint64
	Version uint64
	Record  Record // carries the same version
}

// AppendJSON appends the message's payload.
//
// The same delta always gives the same bytes: members are in the order of their names, without
// white space. The outbox recognises its own messages by that.
func (d *Delta) AppendJSON(b []byte) []byte {
	b = append(b, `{"epoch":`...)
	b = strconv.AppendUint(b, d.Epoch, 10)
	b = append(b, `,"record":`...)
	b = d.Record.appendJSON(b, d.Source)
	b = append(b, `,"schemaVersion":1,"source":"`...)
	b = append(b, d.Source...)
	b = append(b, `","version":`...)
	return append(strconv.AppendUint(b, d.Version, 10), '}')
}

// ParseDelta reads a payload of a source. It returns ErrMalformed for any text that AppendJSON
// could not have written, except that members may be in another order.
//
// A message of the other source is ErrMalformed as well. Each bit of met stands for one member.
func ParseDelta(s Source, data []byte) (Delta, error) {
	d := Delta{Source: s}
	r := strictjson.NewReader(data)
	var met fields
	for key := range r.Members {
		switch string(key) {
		case "schemaVersion":
			met |= 1
			schema(r)
		case "source":
			met |= 2
			source(r, s)
		case "epoch":
			met |= 4
			d.Epoch = number(r, 1, MaxEpoch)
		case "version":
			met |= 8
			d.Version = number(r, 1, MaxVersion)
		case "record":
			met |= 16
			d.Record = readRecord(r, s)
		default:
			r.Fail(unknown(key))
		}
	}
	met.need(r, 5)
	if err := r.End(); err != nil {
		return Delta{}, malformed("delta", s, err)
	}
	if d.Version != d.Record.Version {
		return Delta{}, malformed("delta", s, fmt.Errorf("version %d with a record of version %d: %w",
			d.Version, d.Record.Version, ErrMalformed))
	}
	return d, nil
}

// schema reads the schema version. Only one is known.
//
// A later schema is refused, not guessed at: a replica of this build then stays not ready.
func schema(r *strictjson.Reader) {
	if n := r.Int(); n != SchemaVersion {
		r.Fail(fmt.Errorf("schema version %d, known is %d: %w", n, SchemaVersion, ErrMalformed))
	}
}

// source reads the name of the source, which must be want.
func source(r *strictjson.Reader, want Source) {
	if string(r.String()) != string(want) {
		r.Fail(fmt.Errorf("it is of another source: %w", ErrMalformed))
	}
}
