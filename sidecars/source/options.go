package source

import (
	"context"
	"strings"
	"time"
	"unicode/utf8"

	"posttrade/sidecars/control"
	"posttrade/sidecars/store"
)

// Options of New, shared by the services.
//
// DB is required. The functions are called on the goroutine of the caller whose request they serve.
type Options struct {
	DB  *store.DB
	Now func() time.Time // nil: the system's clock
	// Changed must not wait: it wakes the outbox, which looks by itself as well.
	Changed func() // called after a change is committed; nil: no call

	// Flagged is called in the transaction of an operator's change that sets a flag of an existing
	// record to another value: it puts the act on record. nil: no call.
	Flagged func(tx *store.Tx, by *store.Act, was, is *control.Record) error

	// Capacity is for what the engine behind the replicas has room; nil: for any record.
	Capacity Capacity

	// Seed fills the table if it is empty. It runs before the first change, which would otherwise
	// leave the table without its seeds for good. nil: there are no seeds.
	Seed func(context.Context) (int, error)
}

// Columns describe how a table stores the records of a source. The texts are constants of accounts
// and securities; no part of them comes from a client.
type Columns struct {
	Table  string // its name
	Select string // all columns of all records, without condition or order
	Key    string // the column that names a record
	Upsert string // one record, with the arguments that Args gives
	Args   func(r *control.Record) []any
	// Scan reads a row of Select; Args gives the parameters of Upsert, in its order.
	Scan func(row *store.Row) control.Record
}

// ValidName reports whether a name can be stored and sent: not blank, no more than control.MaxName
// bytes, and text without control characters. A replica would treat any other name as a malformed
// message, and never become ready.
//
// It does not trim: blanks around a name are kept. The limit is in bytes of UTF-8.
func ValidName(name string) bool {
	isControl := func(r rune) bool { return r < ' ' }
	return strings.TrimSpace(name) != "" && len(name) <= control.MaxName &&
		utf8.ValidString(name) && !strings.ContainsFunc(name, isControl)
}
