package control

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"

	"posttrade/matcher/strictjson"
)

// Source names one of the two control sources.
type Source string

// The sources.
const (
	Account  Source = "account"
	Security Source = "security"
)

// Sources returns both.
func Sources() []Source { return []Source{Account, Security} }

// Valid reports whether s is a source.
func (s Source) Valid() bool { return s == Account || s == Security }

// Stream returns the name of the durable stream that carries the source's deltas.
func (s Source) Stream() string {
	if s == Account {
		return "SVC_CONTROL_ACCOUNT"
	}
	return "SVC_CONTROL_SECURITY"
}

// Subject returns the subject on which the source publishes.
func (s Source) Subject() string { return "svc.control." + string(s) + ".deltas" }

// MsgID returns the de-duplication id of a version.
func (s Source) MsgID(version uint64) string {
	return string(s) + ":" + strconv.FormatUint(version, 10)
}

// SchemaVersion is the version of snapshots and deltas.
const SchemaVersion = 1

// Limits of what is read. Epochs and versions stay within the numbers that every JSON reader holds
// exactly.
const (
	MaxEpoch   = 1<<53 - 1
	MaxVersion = 1<<53 - 1
	MaxName    = 256 // bytes of a display or company name
	MaxTicker  = 16
)

// Errors of reading; test by errors.Is.
var (
	// ErrMalformed: the text has the wrong form, or is not of this source.
	ErrMalformed = errors.New("malformed")
	// ErrCount: the snapshot holds another number of records than it states.
	ErrCount = errors.New("count mismatch")
	// ErrChecksum: the snapshot's checksum does not match its content.
	ErrChecksum = errors.New("checksum failure")
)

// ErrCapacity reports a new record for which the engine has no room.
var ErrCapacity = errors.New("the engine has no room for another one")

// Record is one account or one security as its source has it.
type Record struct {
	ID      uint32 // of an account
	Ticker  string // of a security
	Name    string // displayName, companyName
	Enabled bool
	Halted  bool // of a security
	Version uint64

	// The versions of the changes that last set Enabled and Halted; 0 is Version itself. A change that
	// does not set a flag leaves the value that an operator has set by hand.
	EnabledVersion uint64
	HaltedVersion  uint64 // of a security
}

// SaidEnabled returns the version of the change that last set Enabled.
func (r *Record) SaidEnabled() uint64 { return cmp.Or(r.EnabledVersion, r.Version) }

// SaidHalted returns the version of the change that last set Halted.
func (r *Record) SaidHalted() uint64 { return cmp.Or(r.HaltedVersion, r.Version) }

// Same reports whether two records are equal. The versions of the changes that set the flags are
// not compared: an operator that edits the tables by hand need not maintain them.
func (r *Record) Same(o *Record) bool {
	a, b := *r, *o
	a.EnabledVersion, a.HaltedVersion = 0, 0
	b.EnabledVersion, b.HaltedVersion = 0, 0
	return a == b
}

// Key returns the text that identifies the record within its source.
func (r *Record) Key(s Source) string {
	if s == Account {
		return strconv.FormatUint(uint64(r.ID), 10)
	}
	return r.Ticker
}

// compare orders records as a snapshot lists them: by id, or by the ticker's bytes.
func (r *Record) compare(o *Record, s Source) int {
	if s == Account {
		return cmp.Compare(r.ID, o.ID)
	}
	return cmp.Compare(r.Ticker, o.Ticker)
}

// appendJSON appends the record in canonical form: members in the order of their names, no white
// space.
func (r *Record) appendJSON(b []byte, s Source) []byte {
	if s == Account {
		b = append(b, `{"displayName":`...)
		b = appendString(b, r.Name)
		b = append(b, `,"enabled":`...)
		b = strconv.AppendBool(b, r.Enabled)
		b = appendSaid(b, `,"enabledVersion":`, r.EnabledVersion)
		b = append(b, `,"id":`...)
		b = strconv.AppendUint(b, uint64(r.ID), 10)
	} else {
		b = append(b, `{"companyName":`...)
		b = appendString(b, r.Name)
		b = append(b, `,"enabled":`...)
		b = strconv.AppendBool(b, r.Enabled)
		b = appendSaid(b, `,"enabledVersion":`, r.EnabledVersion)
		b = append(b, `,"halted":`...)
		b = strconv.AppendBool(b, r.Halted)
		b = appendSaid(b, `,"haltedVersion":`, r.HaltedVersion)
		b = append(b, `,"ticker":`...)
		b = appendString(b, r.Ticker)
	}
	b = append(b, `,"version":`...)
	return append(strconv.AppendUint(b, r.Version, 10), '}')
}

// appendSaid appends the version of the change that set a flag when it is not the record's own
// version. So most records look as they did before this member existed.
func appendSaid(b []byte, member string, version uint64) []byte {
	if version == 0 {
		return b
	}
	return strconv.AppendUint(append(b, member...), version, 10)
}

const hexDigits = "0123456789abcdef"

// appendString appends a JSON string as RFC 8785 requires: the two-character escapes where they
// exist, \u00xx for other control characters, every other character unchanged. The text is valid
// UTF-8: readers and services refuse any other.
func appendString(b []byte, text string) []byte {
	b = append(b, '"')
	for i := range len(text) {
		switch ch := text[i]; {
		case ch == '"' || ch == '\\':
			b = append(b, '\\', ch)
		case ch >= ' ':
			b = append(b, ch)
		case ch == '\b':
			b = append(b, '\\', 'b')
		case ch == '\t':
			b = append(b, '\\', 't')
		case ch == '\n':
			b = append(b, '\\', 'n')
		case ch == '\f':
			b = append(b, '\\', 'f')
		case ch == '\r':
			b = append(b, '\\', 'r')
		default:
			b = append(b, '\\', 'u', '0', '0', hexDigits[ch>>4], hexDigits[ch&15])
		}
	}
	return append(b, '"')
}

// fields records which members of an object have been read.
type fields uint16

// need makes the reader fail unless all of the first n members were present.
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

// ValidTicker reports whether text is [A-Z0-9.-]{1,16}.
func ValidTicker(text string) bool {
	if len(text) == 0 || len(text) > MaxTicker {
		return false
	}
	for i := range len(text) {
		switch ch := text[i]; {
		case ch >= 'A' && ch <= 'Z', ch >= '0' && ch <= '9', ch == '.', ch == '-':
		default:
			return false
		}
	}
	return true
}

// readRecord reads a record of a source.
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
			if rec.Ticker = string(r.String()); !ValidTicker(rec.Ticker) {
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
