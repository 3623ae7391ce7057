package control

import (
	"errors"
	"fmt"

	"posttrade/matcher"
	"posttrade/matcher/strictjson"
)

// fields records which members of an object have been read.
//
// Each member that an object must have is one bit, from the lowest; a member that it may lack has
// none. strictjson refuses a member that is there twice.
type fields uint16

// need makes the reader fail unless all of the first n members were present.
//
// It does not say which one: the text comes from a source of this system, and has either all of
// them or another form.
func (f fields) need(r *strictjson.Reader, n int) {
	if f != 1<<n-1 {
		r.Fail(fmt.Errorf("a member is missing: %w", ErrMalformed))
	}
}

// unknown returns the error of a member that the object does not define.
func unknown(key []byte) error {
	return fmt.Errorf("%.64q: unknown member: %w", key, ErrMalformed)
}

// number reads a whole number between least and most.
//
// It returns 0 when it fails. The reader keeps the error, so callers need not look.
func number(r *strictjson.Reader, least, most uint64) uint64 {
	n := r.Int()
	if n < int64(least) || uint64(n) > most {
		r.Fail(fmt.Errorf("a number is out of range: %w", ErrMalformed))
		return 0
	}
	return uint64(n)
}

// name reads a display or company name.
func name(r *strictjson.Reader) string {
	text := r.String()
	if len(text) > MaxName {
		r.Fail(fmt.Errorf("a name is longer than %d bytes: %w", MaxName, ErrMalformed))
	}
	return string(text)
}

// readRecord reads a record of a source.
//
// A flag's version must be below the record's own: a change that sets the flag carries no such
// member.
func readRecord(r *strictjson.Reader, s Source) (rec Record) {
	var met fields
	for key := range r.Members {
		switch {
		case string(key) == "version":
			met |= 1
			rec.Version = number(r, 1, MaxVersion)
		case string(key) == "enabled":
			met |= 2
			rec.Enabled = r.Bool()
		case s == Account && string(key) == "displayName", s == Security && string(key) == "companyName":
			met |= 4
			rec.Name = name(r)
		case s == Account && string(key) == "id":
			met |= 8
			rec.ID = uint32(number(r, 1, 1<<32-1))
		case s == Security && string(key) == "ticker":
			met |= 8
			if rec.Ticker = string(r.String()); !matcher.ValidTicker(rec.Ticker) {
				r.Fail(fmt.Errorf("a ticker is not [A-Z0-9.-]{1,16}: %w", ErrMalformed))
			}
		case s == Security && string(key) == "halted":
			met |= 16
			rec.Halted = r.Bool()
		case string(key) == "enabledVersion":
			rec.EnabledVersion = number(r, 1, MaxVersion)
		case s == Security && string(key) == "haltedVersion":
			rec.HaltedVersion = number(r, 1, MaxVersion)
		default:
			r.Fail(unknown(key))
		}
	}
	if s == Account {
		met.need(r, 4)
	} else {
		met.need(r, 5)
	}
	if said := max(rec.EnabledVersion, rec.HaltedVersion); said != 0 && said >= rec.Version {
		r.Fail(fmt.Errorf("a flag was said by a change that is not before the record's own: %w",
			ErrMalformed))
	}
	return rec
}

// malformed makes sure that an error of the reader is an ErrMalformed.
func malformed(what string, s Source, err error) error {
	if errors.Is(err, ErrMalformed) {
		return fmt.Errorf("control: read %s source=%s: %w", what, s, err)
	}
	return fmt.Errorf("control: read %s source=%s: %w: %w", what, s, ErrMalformed, err)
}
