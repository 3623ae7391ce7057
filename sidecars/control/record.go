package control

import (
	"cmp"
	"errors"
	"strconv"
	"strings"

	"posttrade/matcher"
	"posttrade/matcher/strictjson"
)

// Source names one of the two control sources.
//
// The text is part of the wire and of the database: of stream names and message ids, of checksums
// and of the rows in sources and outbox.
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
//
// Each source has a stream of its own, so that its last message is the source's last change.
func (s Source) Stream() string {
	if s == Account {
		return "SVC_CONTROL_ACCOUNT"
	}
	return "SVC_CONTROL_SECURITY"
}

// Subject returns the subject on which the source publishes.
func (s Source) Subject() string { return "svc.control." + string(s) + ".deltas" }

// MsgID returns the de-duplication id of a version.
//
// Within its window of ids the stream takes a second message with this id for a duplicate. Package
// outbox says when another id is used.
func (s Source) MsgID(version uint64) string {
	return string(s) + ":" + strconv.FormatUint(version, 10)
}

// SchemaVersion is the version of snapshots and deltas.
//
// The texts that AppendJSON writes hold it as a literal.
const SchemaVersion = 1

// Limits of what is read. Epochs and versions stay within the numbers that every JSON reader holds
// exactly.
const (
	// An epoch is a time in milliseconds (store.Tx.DrawEpoch), which leaves room for more than a
	// hundred thousand years.
	MaxEpoch   = 1<<53 - 1
	MaxVersion = 1<<53 - 1
	MaxName    = 256 // bytes of a display or company name
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

// ErrReason reports a change of a flag, which is an operator's act, without the reason that it
// needs.
var ErrReason = errors.New("a flag gets another value: the reason is required")

// Record is one account or one security as its source has it.
//
// It is a value: it holds no reference, and == compares all of it. The fields of the other source
// are zero.
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

// EnabledSetVersion returns the version of the change that last set Enabled.
func (r *Record) EnabledSetVersion() uint64 { return cmp.Or(r.EnabledVersion, r.Version) }

// HaltedSetVersion returns the version of the change that last set Halted.
func (r *Record) HaltedSetVersion() uint64 { return cmp.Or(r.HaltedVersion, r.Version) }

// Same reports whether two records are equal. The versions of the changes that set the flags are
// not compared: an operator that edits the tables by hand need not maintain them.
func (r *Record) Same(o *Record) bool {
	a, b := *r, *o
	a.EnabledVersion, a.HaltedVersion = 0, 0
	b.EnabledVersion, b.HaltedVersion = 0, 0
	return a == b
}

// Key returns the text that identifies the record within its source.
//
// An account's key is its id in decimal.
func (r *Record) Key(s Source) string {
	if s == Account {
		return strconv.FormatUint(uint64(r.ID), 10)
	}
	return r.Ticker
}

// compare orders records as a snapshot lists them: by id, or by the ticker's bytes.
//
// It is the order of the keys in both databases' tables too, where a ticker is compared as bytes.
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
		b = strictjson.AppendString(b, r.Name)
		b = append(b, `,"enabled":`...)
		b = strconv.AppendBool(b, r.Enabled)
		b = appendFlagVersion(b, `,"enabledVersion":`, r.EnabledVersion)
		b = append(b, `,"id":`...)
		b = strconv.AppendUint(b, uint64(r.ID), 10)
	} else {
		b = append(b, `{"companyName":`...)
		b = strictjson.AppendString(b, r.Name)
		b = append(b, `,"enabled":`...)
		b = strconv.AppendBool(b, r.Enabled)
		b = appendFlagVersion(b, `,"enabledVersion":`, r.EnabledVersion)
		b = append(b, `,"halted":`...)
		b = strconv.AppendBool(b, r.Halted)
		b = appendFlagVersion(b, `,"haltedVersion":`, r.HaltedVersion)
		b = append(b, `,"ticker":`...)
		b = strictjson.AppendString(b, r.Ticker)
	}
	b = append(b, `,"version":`...)
	return append(strconv.AppendUint(b, r.Version, 10), '}')
}

// appendFlagVersion appends the version of the change that set a flag when it is not the record's
// own version. A reader that does not know the member so reads most records.
func appendFlagVersion(b []byte, member string, version uint64) []byte {
	if version == 0 {
		return b
	}
	return strconv.AppendUint(append(b, member...), version, 10)
}

// NewTicker reports whether a new security may have the ticker: a valid one that a path can name,
// which dots alone are not.
func NewTicker(text string) bool {
	return matcher.ValidTicker(text) && strings.Trim(text, ".") != ""
}
