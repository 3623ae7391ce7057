package store

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"posttrade/matcher"
)

// Status is the state of a trade's settlement.
type Status uint8

// A trade is Processing until its settlement date is reached or an operator forces it.
const (
	Processing Status = iota
	Settled
)

// String returns the word of the status column and of the JSON field.
func (s Status) String() string {
	switch s {
	case Processing:
		return "Processing"
	case Settled:
		return "Settled"
	}
	return "Status(" + strconv.Itoa(int(s)) + ")"
}

// ParseStatus reads the word of a status, in exactly this spelling.
func ParseStatus(text string) (Status, error) {
	switch text {
	case "Processing":
		return Processing, nil
	case "Settled":
		return Settled, nil
	}
	return 0, fmt.Errorf("store: status %q is neither Processing nor Settled", text)
}

// Trade is one row of the table trades.
//
// The journal gives all of them but Status, BookedAt and UpdatedAt, and SettlementDate is computed
// from ExecutedAt when the row is made. A match gives two fills, and each fill gives one row.
type Trade struct {
	ID string // trd-<Seq> for every trade of this system
	// Seq is the tradeSeq of a fill of the journal, at most MaxInt64. Other rows have numbers from
	// FirstExternal on.
	Seq            uint64
	AccountID      uint32
	Security       string
	Side           matcher.Side
	Quantity       int64
	Price          int64 // x 1e6
	Status         Status
	SettlementDate Date  // NoDate when the column was edited to hold none
	ExecutedAt     int64 // epoch milliseconds, like the next two
	// BookedAt is when the row was made, UpdatedAt when its status changed last.
	BookedAt  int64
	UpdatedAt int64
	OrderID   string // "" = none
	Sequence  uint64 // the inputSeq of the command that executed it; 0 = unknown
}

// The trade sequences of rows that no fill gives lie above every history, so that the column stays
// unique: from FirstExternal on those of bookings from outside, from FirstVoid on those of rows
// that an operator gave up.
const (
	FirstExternal uint64 = 1<<61 + 1
	FirstVoid     uint64 = 1<<62 + 1
)

// Due is the SQL condition of the trades that are still to be settled. Those that were given up,
// from FirstVoid on, never are.
//
// It is the condition of the index trades_to_settle. A database uses that index where a statement
// has the same condition with the same number in its text, not as an argument.
const Due = "status = 'Processing' and trade_seq < 4611686018427387905"

// externalPrefix begins the id of every booking from outside, and maxExternal is the most
// characters behind it.
const (
	externalPrefix = "ext-"
	maxExternal    = 60
)

// ExternalID reports whether id is that of a booking from outside: ext- and 1 to 60 characters of
// A-Za-z0-9._-.
func ExternalID(id string) bool {
	name, found := strings.CutPrefix(id, externalPrefix)
	if !found || name == "" || len(name) > maxExternal {
		return false
	}
	for i := range len(name) {
		switch c := name[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '.', c == '_',
			c == '-':
		default:
			return false
		}
	}
	return true
}

// External reports whether the trade is a booking from outside.
//
// Rows of such a sequence with another id, and rows with such an id and another sequence, are not.
// Reconciliation reports them.
func (t *Trade) External() bool {
	return t.Seq >= FirstExternal && t.Seq < FirstVoid && ExternalID(t.ID)
}

// sideText is the word of the side column.
func sideText(s matcher.Side) (string, bool) {
	switch s {
	case matcher.Buy:
		return "Buy", true
	case matcher.Sell:
		return "Sell", true
	}
	return "", false
}

// check returns why a trade cannot be a row. It runs before any row of the batch is written.
//
// The errors are not ErrUnavailable: the same row would be refused again. Security, order id and
// price are not looked at; the engine has accepted them.
func (t *Trade) check() error {
	_, side := sideText(t.Side)
	switch {
	case t.ID == "":
		return fmt.Errorf("store: trade_seq=%d has no id", t.Seq)
	case t.Seq == 0 || t.Seq > math.MaxInt64:
		return fmt.Errorf("store: trade id=%q: trade_seq %d is not in 1..%d", t.ID,
			t.Seq, int64(math.MaxInt64))
	case t.Sequence > math.MaxInt64:
		return fmt.Errorf("store: trade id=%q: sequence %d is above %d", t.ID,
			t.Sequence, int64(math.MaxInt64))
	case !side:
		return fmt.Errorf("store: trade id=%q: side %d is neither Buy nor Sell", t.ID, t.Side)
	case t.Status > Settled:
		return fmt.Errorf("store: trade id=%q: unknown status %d", t.ID, t.Status)
	case !t.SettlementDate.known():
		return fmt.Errorf("store: trade id=%q: settlement date out of 0001-01-01..9999-12-31", t.ID)
	}
	return nil
}

// The range of a date column in either dialect.
const (
	firstDate Date = -719162 // 0001-01-01
	lastDate  Date = 2932896 // 9999-12-31
)

// PostgresText reports text that PostgreSQL takes: UTF-8 without NUL. A row of SQLite may have any
// bytes in its id.
func PostgresText(s string) bool { return utf8.ValidString(s) && !strings.Contains(s, "\x00") }
